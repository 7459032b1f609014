"""Reads of LDS that transpose, of gfx950: `ds_read_b64_tr_b16` and `ds_read_b64_tr_b8`.

Source: "AMD Instinct CDNA4 Instruction Set Architecture". Sixteen lanes read a matrix of 16 columns, each lane eight bytes
of a row, the lanes of a row one after the other; then each lane gets a column.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gluonize.judge.emulator.instructions.fields import fields
from gluonize.judge.emulator.instructions.lanes import Lanes, load

NAMES = {"DS_READ_B64_TR_B16": 2, "DS_READ_B64_TR_B8": 1}  # -> bytes of an element
GROUP, READ = 16, 8  # lanes, bytes of each


def executor(name: str, kind: type, data: bytes) -> Callable[[Lanes], None] | None:
    """What the instruction does to a wave, None for another one."""
    size = NAMES.get(name)
    if size is None:
        return None
    field = fields(kind, data[:8])
    offset = field("offset0") | field("offset1") << 8
    address, target, accumulators = field("addr"), field("vdst"), bool(field("acc"))

    def execute(lanes: Lanes) -> None:
        at = lanes.lds + lanes.vectors[address].astype(np.int64) + offset
        data = transpose(load(at, READ), size)
        registers, on = lanes.accumulators if accumulators else lanes.vectors, lanes.active()
        for i, words in enumerate(data.view(np.uint32).T):
            registers[target + i, on] = words[on]

    return execute


def transpose(data: np.ndarray, size: int) -> np.ndarray:
    """uint8[lane, 8] as read -> as the lanes get it."""
    rows = READ // size
    matrix = data.reshape(-1, rows, GROUP, size)
    return np.ascontiguousarray(matrix.transpose(0, 2, 1, 3)).reshape(-1, READ)
