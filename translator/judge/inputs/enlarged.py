"""What of a launch can be made large: scalars, sizes together with the grid, indices in memory."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace

import numpy as np

from gluonize.judge.inputs.inputs import Inputs, Tensor, changed_tensors, size_arguments, with_values
from gluonize.judge.inputs.scalar_candidates import INTEGERS
from gluonize.judge.machine.dtypes import held
from gluonize.read.spec.launch import LaunchSpec

WORK_ITEMS = (1 << 32) - 1  # that a dispatch packet has room for along one axis, in which HIP launches a grid's x
LANES = 64  # of a warp, at most
PROGRAMS = (1 << 31) - 1  # along the other axes of a grid


@dataclass(frozen=True)
class Knob:
    """Something of a launch that can be made large. now: its value in the launch; step: what values are multiples of; most: of its type.

    turned(inputs, value) -> (the inputs with that value, how to say so).
    """

    name: str
    now: int
    step: int
    most: int
    turned: Callable[[Inputs, int], tuple[Inputs, str]]


def knobs_of(
    spec: LaunchSpec, inputs: Inputs, addresses: list[str], loops: list[str], grid: tuple[int, ...], read: Set[str]
) -> list[Knob]:
    """What of a launch may be made large: strides and other arguments of addresses, sizes with their grid, indices in memory.

    addresses: arguments that addresses are computed from. loops: those that decide trip counts. read: tensors that the source reads.
    """
    strides = [name for name in addresses if name not in loops]
    strides.sort(key=lambda name: "stride" not in name.lower())
    return (
        [argument_knob(spec, name) for name in strides[:2]]
        + _grown_sizes(spec, inputs, loops, grid)[:1]
        + index_knobs(inputs, read)[:1]
    )


def _step(spec: LaunchSpec, name: str) -> int:
    return 16 if "D" in str(spec.attrs.get(name, "")) else 1


def _most(spec: LaunchSpec, name: str) -> int:
    sign, bits = INTEGERS[spec.signature[name]]
    return (1 << (bits - (sign == "i"))) - 1


def argument_knob(spec: LaunchSpec, name: str) -> Knob:
    """An integer argument of the launch."""

    def turned(inputs: Inputs, value: int) -> tuple[Inputs, str]:
        return with_values(inputs, spec, {name: value}, inputs.variant), f"{name} = {value}"

    return Knob(name, int(spec.values[name]), _step(spec, name), _most(spec, name), turned)


def _grown_sizes(spec: LaunchSpec, inputs: Inputs, loops: list[str], grid: tuple[int, ...]) -> list[Knob]:
    """Each size that decides no trip count, as many times as large as the grid along its longest axis."""
    axis = int(np.argmax(grid))
    programs = most_programs(spec, axis)

    def knob(name: str) -> Knob:
        now = int(spec.values[name])
        tile = next((c for c in _tiles(spec) if -(-now // c) == grid[axis]), 0)

        def turned(inputs: Inputs, value: int) -> tuple[Inputs, str]:
            more = tuple(extent * value if i == axis else extent for i, extent in enumerate(grid))
            # As much of the last tile as in the launch, where it is known what a tile is.
            size = now + tile * (more[axis] - grid[axis]) if tile else now * value
            changed = with_values(inputs, spec, {name: size}, inputs.variant)
            return replace(changed, grid=more), f"{name} = {size}, a grid of {' x '.join(map(str, more))}"

        return Knob(name, 1, 1, min(_most(spec, name) // now, programs // grid[axis]), turned)

    return [knob(name) for name in size_arguments(spec) if name not in loops]


def most_programs(spec: LaunchSpec, axis: int) -> int:
    """How many programs the hardware can be asked for along one axis of a grid."""
    return PROGRAMS if axis else WORK_ITEMS // (int(spec.options.get("num_warps", 4)) * LANES)


def _tiles(spec: LaunchSpec) -> list[int]:
    """Compile-time numbers that a size may be cut by, without those that would break a promise."""
    return sorted({c for c in spec.constexprs.values() if type(c) is int and c >= 16 and c % 16 == 0})


def index_knobs(inputs: Inputs, read: Set[str]) -> list[Knob]:
    """Each tensor of 32- or 64-bit integers that is read, with its values spread up to a largest one."""
    found = []
    for tensor in (tensor for tensor in inputs.tensors() if tensor.name in read):
        most = int(tensor.data.max()) if tensor.element in ("i32", "i64") and tensor.data.size else 0
        if most > 0 and int(tensor.data.min()) >= 0:
            found.append(_spread(tensor, most))
    return found


def _spread(tensor: Tensor, now: int) -> Knob:
    """The values of a tensor, whose largest is `now`, in proportion up to another one."""

    def turned(inputs: Inputs, value: int) -> tuple[Inputs, str]:
        data = (tensor.data.astype(np.float64) * (value / now)).astype(tensor.data.dtype)
        data[tensor.data == now] = min(value, np.iinfo(data.dtype).max)
        changed = changed_tensors(inputs, lambda t: t.refilled(data) if t.name == tensor.name else t)
        return changed, f"{tensor.name} up to {value}"

    bits = 8 * held(tensor.element).itemsize
    return Knob(tensor.name, now, 1, (1 << (bits - 1)) - 1, turned)


__all__ = ["Knob", "argument_knob", "index_knobs", "knobs_of", "most_programs"]
