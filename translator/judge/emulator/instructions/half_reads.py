"""Reads of LDS into half of a register, of RDNA and CDNA: `ds_load_u16_d16_hi` and its like. The other half stays.

Source: the DS instructions of the "RDNA3 Instruction Set Architecture"; CDNA names the same ones `ds_read_*`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gluonize.judge.emulator.instructions.fields import fields
from gluonize.judge.emulator.instructions.lanes import Lanes, load

WIDTHS = {"U8": "u1", "I8": "i1", "U16": "u2", "B16": "u2"}  # in the name -> numpy type
PREFIXES = ("DS_LOAD_", "DS_READ_")


def executor(name: str, kind: type, data: bytes) -> Callable[[Lanes], None] | None:
    """What the instruction does to a wave, None for another one."""
    width, _, half = name[len(PREFIXES[0]) :].partition("_")
    if not name.startswith(PREFIXES) or half not in ("D16", "D16_HI") or width not in WIDTHS:
        return None
    field, dtype = fields(kind, data[:8]), np.dtype(WIDTHS[width])
    offset, address, target = field("offset0") | field("offset1") << 8, field("addr"), field("vdst")
    shift = np.uint32(16 if half == "D16_HI" else 0)
    kept = np.uint32(0xFFFF if half == "D16_HI" else 0xFFFF0000)

    def execute(lanes: Lanes) -> None:
        on = lanes.active()
        at = lanes.lds + lanes.vectors[address, on].astype(np.int64) + offset
        value = load(at, dtype.itemsize).view(dtype)[:, 0].astype(np.int32).view(np.uint32) & np.uint32(0xFFFF)
        lanes.vectors[target, on] = lanes.vectors[target, on] & kept | value << shift

    return execute
