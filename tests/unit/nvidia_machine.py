"""Run a Gluon kernel for an NVIDIA GPU on the reference machine, with arrays and host descriptors as arguments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gluonize.judge.inputs.bind import bind, place_tensors
from gluonize.judge.inputs.inputs import SIGNATURE, DescriptorArgument, Inputs, Tensor, scalar
from gluonize.judge.machine.dtypes import decode, encode, held, rounded, stored
from gluonize.judge.machine.engine import Machine
from gluonize.judge.machine.hazards import Hazard
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.stages import lower_until
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.parse import parse_module

HOPPER, BLACKWELL = "cuda:90", "cuda:100"


@dataclass(frozen=True)
class Tiles:
    """A host descriptor over `array` (elements of `kind`) with tiles of `block`, laid out in shared memory as the text `layout` says."""

    array: np.ndarray
    block: tuple[int, ...]
    kind: str = "fp16"
    swizzle: int = 128
    transposed: bool = False

    @property
    def signature(self) -> str:
        bits = 8 * stored(SIGNATURE[self.kind]).itemsize
        layout = f"swizzle_byte_width={self.swizzle}, element_bitwidth={bits}, rank={len(self.block)}, transposed={self.transposed}"
        return f"tensordesc<{self.kind}{list(self.block)},NVMMASharedLayout({layout}, fp4_padded=False, cga_layout=[])>"


@dataclass(frozen=True)
class Flat:
    """A pointer to `array`, whose elements are of `kind`."""

    array: np.ndarray
    kind: str = "fp16"


def run(
    fn, arguments: dict, constexprs=None, target=HOPPER, warps=4, grid=(1,), schedule="forward", in_program_order=False, same=(),
) -> tuple[dict[str, np.ndarray], Machine]:  # fmt: skip
    """-> (arrays after the run by argument, machine). The arguments `same` are one tensor. Raises: Hazard."""
    kinds = {name: _kind(value) for name, value in arguments.items()}
    signature = {name: kinds.get(name, "constexpr") for name in fn.arg_names}
    spec = LaunchSpec("test", fn.__name__, "", signature, constexprs or {}, {}, {"num_warps": warps}, tuple(grid))
    module = parse_module(lower_until(fn, spec, target, "ttgir"))
    inputs = Inputs({name: _argument(name, arguments[name]) for name in fn.arg_names if name in arguments})
    for name in same[1:]:
        inputs.arguments[name] = _tensor_of(inputs.arguments[same[0]])
    memory = Memory()
    machine = Machine(module, memory, tuple(grid))
    machine.schedule, machine.in_program_order = schedule, in_program_order
    machine.run(bind(module, list(fn.arg_names), inputs, place_tensors(memory, inputs)), range(machine.programs))
    arrays = {
        b.name: np.asarray(decode(b.data.view(stored(b.element)), b.element)).reshape(arguments[b.name].array.shape)
        for b in memory.buffers
    }
    return arrays, machine


def _tensor_of(argument) -> Tensor:
    return argument.base if isinstance(argument, DescriptorArgument) else argument


def hazard_of(fn, arguments: dict, constexprs=None, **options) -> tuple[str, str]:
    """Kind and message of what stops the kernel, of what it leaves behind, or "" twice."""
    try:
        _, machine = run(fn, arguments, constexprs, **options)
    except Hazard as hazard:
        return hazard.kind, hazard.message
    return (machine.findings[0].kind, machine.findings[0].message) if machine.findings else ("", "")


def _kind(value) -> str:
    if isinstance(value, Tiles):
        return value.signature
    return f"*{value.kind}" if isinstance(value, Flat) else "i32"


def _argument(name: str, value):
    if not isinstance(value, (Tiles, Flat)):
        return scalar(value, "i32")
    element = SIGNATURE[value.kind]
    array = np.ascontiguousarray(value.array)
    wide = array.astype(held(element)) if element[0] == "i" else np.asarray(rounded(array.astype(np.float32), element))
    bits = np.asarray(encode(wide, element)).astype(stored(element), copy=False).reshape(-1)
    strides = tuple(stride // array.itemsize for stride in array.strides)
    tensor = Tensor(name, element, bits, 0, array.shape, strides)
    return tensor if isinstance(value, Flat) else DescriptorArgument(tensor, array.shape, strides, value.block)
