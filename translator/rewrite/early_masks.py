"""Masks of what is loaded, which the compiler would make far ahead of it.

    b = tl.where(rows[:, None] >= cols[None, :], b, 0)    ->    hint.sched_barrier()
                                                                b = gl.where(rows[:, None] >= cols[None, :], b, 0)

A comparison of indices waits for nothing, so LLVM makes it at the top of its block, before what is loaded is there. Until then a
mask holds a scalar register for each register of the tile, where warps have 32 lanes: chunk_gla_bwd_kernel_dv spilled 42 of them
on gfx1250, its loads waited one by one, and it had 1024 instructions; now it spills none and has 934 (Triton 1 and 1031). After
the first product masks are left alone: one of products took up to twice the spilled vector registers that way.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from translator.rewrite import callees, dots

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter

_WHY = "# The mask is made here: LLVM would make it before the values are there, and run out of scalar registers."


def keep_back(rw: "FunctionRewriter", s: ast.stmt) -> None:
    """Put what keeps its mask from being made early before a statement that selects ahead of the first product."""
    if rw.unit.target.family != "cdna5" or rw.path or rw.loops or not rw.unit.multiplies or not _selects(rw, s):
        return
    every = list(_straight(rw, rw.tree.body))
    at = next((i for i, x in enumerate(every) if x is s), None)
    if at is None or any(dots.multiplies(rw, x) for x in every[: at + 1]) or _before_a_loop(rw, every[at + 1 :]):
        return
    rw.barrier_before(s, _WHY)


def _selects(rw: "FunctionRewriter", s: ast.stmt) -> bool:
    """Whether the statement selects elements of a tile by a comparison that stands in it."""
    for call in ast.walk(s):
        callee = callees.callee_of(rw, call) if isinstance(call, ast.Call) else None
        if callee is not None and callee.row is not None and callee.row.name == "where" and call.args:
            compared = (rw.tensor(n) for n in ast.walk(call.args[0]) if isinstance(n, ast.Compare))
            if any(found is not None and found.rank > 1 for found in compared):
                return True
    return False


def _straight(rw: "FunctionRewriter", body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run once, and loops as a whole, in the order in which they run."""
    for s in body:
        if not rw.taken(s):
            continue
        if isinstance(s, ast.If):
            yield from _straight(rw, s.body)
            yield from _straight(rw, s.orelse)
        else:
            yield s


def _before_a_loop(rw: "FunctionRewriter", rest: list[ast.stmt]) -> bool:
    """Whether a loop comes before the next product: the tile is one of its values, and its registers are not touched."""
    for s in rest:
        if isinstance(s, (ast.For, ast.While)):
            return True
        if dots.multiplies(rw, s):
            return False
    return False
