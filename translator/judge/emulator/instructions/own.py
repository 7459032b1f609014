"""Instructions that are done here: those that the emulator lacks, or does in another way than the hardware."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gluonize.judge.emulator.instructions import buffers, global_atomics, half_reads, mfma, swaps, transposed
from gluonize.judge.emulator.instructions.lanes import Lanes
from gluonize.rules.targets import target as target_row

CACHES = ("GLOBAL_INV", "GLOBAL_WB", "GLOBAL_WBINV")  # which there are none of


@dataclass(frozen=True)
class Own:
    """An instruction of `size` bytes; execute(lanes) does it to a wave."""

    name: str
    size: int
    execute: Callable[[Lanes], None]


def own_instruction(emulator, data: bytes, target: str) -> Own | None:
    """The instruction at the beginning of `data`, None for one that the emulator does.

    Raises: NotImplementedError for one that nobody does right, and what the emulator raises for what it cannot read.
    """
    architecture = target_row(target).emulated_as
    if (found := buffers.decode(emulator, architecture, data)) is not None:
        access, size = found
        return Own(access.name, size, buffers.executor(access, architecture))
    instruction = emulator.decode_inst(data, architecture)
    name, kind = emulator._op_name(instruction), type(instruction)
    if name in CACHES:
        return Own(name, instruction.size(), lambda lanes: None)
    for module in (mfma, transposed, swaps, global_atomics, half_reads):
        how = {"target": target} if module is mfma else {}
        if (execute := module.executor(name, kind, data, **how)) is not None:
            return Own(name, instruction.size(), execute)
    return None
