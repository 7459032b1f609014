"""All modules with rows of the tables of operations; importing this one fills them."""

from __future__ import annotations

from gluonize.judge.machine import warp_specialize
from gluonize.judge.machine.ops import (
    arith,
    asm,
    clc,
    dot,
    lds,
    math_ops,
    memory,
    reduce,
    tcgen05,
    tdm,
    tensor,
    tensormap,
    tma,
    wgmma,
)

ROWS = (
    arith,
    asm,
    clc,
    dot,
    lds,
    math_ops,
    memory,
    reduce,
    tcgen05,
    tdm,
    tensor,
    tensormap,
    tma,
    wgmma,
    warp_specialize,
)
