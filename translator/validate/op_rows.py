"""All modules with rows of the tables of operations; importing this one fills them."""

from __future__ import annotations

from translator.validate import (
    ops_arith,
    ops_asm,
    ops_clc,
    ops_dot,
    ops_lds,
    ops_math,
    ops_memory,
    ops_reduce,
    ops_tcgen05,
    ops_tdm,
    ops_tensor,
    ops_tensormap,
    ops_tma,
    ops_wgmma,
    warp_specialize,
)

ROWS = (
    ops_arith,
    ops_asm,
    ops_clc,
    ops_dot,
    ops_lds,
    ops_math,
    ops_memory,
    ops_reduce,
    ops_tcgen05,
    ops_tdm,
    ops_tensor,
    ops_tensormap,
    ops_tma,
    ops_wgmma,
    warp_specialize,
)
