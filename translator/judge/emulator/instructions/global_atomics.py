"""Atomic operations of global memory on all targets; of those the emulator gives the old value back on RDNA3 alone.

Sources: as of `buffers.py`, FLAT and GLOBAL instructions. The address is that of a pair of vector registers, or of a pair of scalar
ones and a 32-bit vector offset, and a signed offset of the instruction.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gluonize.judge.emulator.instructions.atomics import ATOMICS
from gluonize.judge.emulator.instructions.fields import fields
from gluonize.judge.emulator.instructions.lanes import Lanes, load, store

PREFIX = "GLOBAL_ATOMIC_"
NO_SCALARS = 124  # scalar operands from here on mean that there is no base in scalar registers
BYTES = 12  # of the longest encoding


def executor(name: str, kind: type, data: bytes) -> Callable[[Lanes], None] | None:
    """What the instruction does to a wave, None for another one. Raises: NotImplementedError for one that is not known here."""
    if not name.startswith(PREFIX):
        return None
    if (atomic := ATOMICS.get(name.removeprefix(PREFIX))) is None:
        raise NotImplementedError(name)
    is_rdna4 = hasattr(kind, "ioffset")
    field = fields(kind, data[:BYTES] if is_rdna4 else data[:8])
    address, given, place = ("vaddr", "vsrc", "ioffset") if is_rdna4 else ("addr", "data", "offset")
    returned = field("th") & 1 if is_rdna4 else field("sc0" if hasattr(kind, "sc0") else "glc")
    sign = (getattr(kind, place).mask + 1) // 2
    offset, base, target = (field(place) ^ sign) - sign, field("saddr"), field("vdst")
    first, second, accumulators = field(address), field(given), hasattr(kind, "acc") and field("acc")
    words = atomic.size // 4

    def execute(lanes: Lanes) -> None:
        at = lanes.vectors[first].astype(np.int64) + offset
        if base < NO_SCALARS:
            at += int(lanes.scalars[base]) | int(lanes.scalars[base + 1]) << 32
        else:
            at += lanes.vectors[first + 1].astype(np.int64) << 32
        registers = lanes.accumulators if accumulators else lanes.vectors
        for lane in np.flatnonzero(lanes.active()):
            old = load(at[lane : lane + 1], atomic.size)
            new = atomic.apply(
                old.view(np.uint32)[0], registers[second : second + words * atomic.operands, lane].copy()
            )
            store(at[lane : lane + 1], new.view(np.uint8)[None, :])
            if returned:
                registers[target : target + words, lane] = old.view(np.uint32)[0]

    return execute
