"""Whether the launch check of a file refuses what breaks the lines of its header that a proof rests on.

    #   assumes storage of a_ptr within 2 GiB        # a storage of 4 GiB
    #   assumes K >= 0                               # K = -16
    #   assumes (grid[0] - 1) * stride <= 2**31 - 1  # the least stride that is too large here, the least grid

A proof takes the header's word. The check is asked, not read: it may have been edited, and so may the header.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from gluonize.judge.inputs.inputs import DescriptorArgument, Inputs
from gluonize.judge.inputs.scalar_candidates import INTEGERS
from gluonize.judge.prove.stated_bounds import Contract, value_of
from gluonize.judge.verdict.far_offsets import BEYOND, in_large_storage
from gluonize.judge.verdict.launch_check import NO_ANSWER
from gluonize.read.spec.launch import LaunchSpec

Refusal = Callable[[Inputs], str]
FARTHEST = 1 << 64  # that a count of programs or the extent of a tensor is raised to


def is_upheld(contract: Contract, spec: LaunchSpec, inputs: Inputs, refusal: Refusal) -> bool:
    """Whether each line can be broken, in one number at a time, by a launch that the check refuses alone."""
    if contract.near is None or refusal(inputs):
        return False
    return all(_is_refused(refusal, launch) for launch in _broken(contract, spec, inputs))


def _is_refused(refusal: Refusal, inputs: Inputs | None) -> bool:
    why = refusal(inputs) if inputs is not None else NO_ANSWER
    return bool(why) and not why.startswith(NO_ANSWER)


def _broken(contract: Contract, spec: LaunchSpec, inputs: Inputs) -> Iterator[Inputs | None]:
    """Launches that break a line of the contract; None for a line of which it is not known how."""
    for name in sorted(contract.near or ()):
        if any(tensor.name == name for tensor in inputs.tensors()):
            yield in_large_storage(inputs, {name: BEYOND})
    for name, low in contract.least.items():
        lowest, _ = _ends(spec, name)
        step = _step(spec, name)
        below = (low - 1) // step * step
        if below >= lowest:
            yield _with(inputs, spec, name, below)
    for text, limit in contract.most:
        yield from _too_large(text, limit, contract, spec, inputs)


def _too_large(text: str, limit: int, contract: Contract, spec: LaunchSpec, inputs: Inputs) -> Iterator[Inputs | None]:
    """The launch with each number of an expression as large as to break its limit, where that can."""
    names = [ast.unparse(n) for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, (ast.Name, ast.Subscript))]
    now = {name: value for name in names if (value := _now(inputs, spec, name)) is not None}
    values = {k: v for k, v in contract.constants.items() if type(v) is int} | now
    found = False
    for name in now:
        step, (_, most) = _step(spec, name), _ends(spec, name)
        at = lambda steps: value_of(text, {**values, name: now[name] + steps * step})  # noqa: B023, E731
        low, high = 0, (most - now[name]) // step
        if (at(high) or 0) <= limit or at(low) is None:
            continue
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if at(middle) > limit else (middle + 1, high)
        found = True
        yield _with(inputs, spec, name, now[name] + low * step)
    if not found:
        yield None


def _now(inputs: Inputs, spec: LaunchSpec, name: str) -> int | None:
    """What a number of a header is in a launch."""
    whole, _, axis = name.rstrip("]").partition("[")
    if whole == "grid" and axis:
        extents = (*(inputs.grid or spec.grid), 1, 1)
        return int(extents[int(axis)] or 1)
    value = inputs.arguments.get(whole.removesuffix(".shape"))
    if isinstance(value, DescriptorArgument) and whole.endswith(".shape"):
        return value.shape[int(axis)]
    return int(value) if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else None


def _with(inputs: Inputs, spec: LaunchSpec, name: str, value: int) -> Inputs | None:
    """The launch with another number, and tensors as they are: it is not run."""
    whole, _, axis = name.rstrip("]").partition("[")
    if whole == "grid" and axis:
        extents = [*(inputs.grid or spec.grid), 1, 1][: max(int(axis) + 1, len(inputs.grid or spec.grid))]
        extents[int(axis)] = value
        return replace(inputs, grid=tuple(extents))
    own = whole.removesuffix(".shape")
    known = inputs.arguments.get(own)
    if isinstance(known, DescriptorArgument) and whole.endswith(".shape"):
        shape = [*known.shape]
        shape[int(axis)] = value
        return replace(inputs, arguments=inputs.arguments | {own: replace(known, shape=tuple(shape))})
    return replace(inputs, arguments=inputs.arguments | {own: value}) if known is not None else None


def _ends(spec: LaunchSpec, name: str) -> tuple[int, int]:
    """The least and the greatest value of a number."""
    if str(spec.signature.get(name)) not in INTEGERS:
        return 0, FARTHEST
    sign, bits = INTEGERS[str(spec.signature[name])]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if sign == "i" else (0, (1 << bits) - 1)


def _step(spec: LaunchSpec, name: str) -> int:
    return 16 if "D" in str(spec.attrs.get(name, "")) else 1


__all__ = ["is_upheld"]
