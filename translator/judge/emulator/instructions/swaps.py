"""Swaps of lanes between two registers, of gfx950: `v_permlane16_swap_b32` and `v_permlane32_swap_b32`.

Source: "AMD Instinct CDNA4 Instruction Set Architecture": rows of 16 or 32 lanes; the odd rows of the first register
change places with the even rows of the second.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gluonize.judge.emulator.instructions.fields import fields
from gluonize.judge.emulator.instructions.lanes import FIRST_VECTOR, Lanes

ROWS = {"V_PERMLANE16_SWAP_B32": 16, "V_PERMLANE32_SWAP_B32": 32}  # -> lanes of a row


def executor(name: str, kind: type, data: bytes) -> Callable[[Lanes], None] | None:
    """What the instruction does to a wave, None for another one."""
    row = ROWS.get(name.removesuffix("_E32").removesuffix("_E64"))
    if row is None:
        return None
    field = fields(kind, data[:8])
    first, second = field("vdst"), field("src0") - FIRST_VECTOR

    def execute(lanes: Lanes) -> None:
        if not lanes.active().all():
            raise NotImplementedError(f"{name} with lanes that are off")
        odd = np.flatnonzero(np.arange(lanes.count) // row % 2)
        kept = lanes.vectors[first, odd].copy()
        lanes.vectors[first, odd] = lanes.vectors[second, odd - row]
        lanes.vectors[second, odd - row] = kept

    return execute
