"""Tiles that are read in several layouts: each read stands where its layout is first needed.

k = smem.index(slot).load(rows)                k = smem.index(slot).load(rows)
k_operand = smem.index(slot).load(operand)  -> s = gl.sum(k, axis=1)
s = gl.sum(k, axis=1)                          k_operand = smem.index(slot).load(operand)
o = wmma(q, k_operand, o)                      o = wmma(q, k_operand, o)

The slot stays as it is until the end of the iteration, and registers are taken from then on only. Two layouts are read at
once: they share the addresses, and one wait serves both.

Small loads through pointers move likewise behind a product, in loops that hold a third of the registers (`where_loaded`).
"""

from __future__ import annotations

import ast
import math
import re
from typing import TYPE_CHECKING

from translator.rewrite import callees, dots, pointers
from translator.rewrite.statements import until_use
from translator.ttgir.elements import bits_of
from translator.ttgir.layouts import Layout

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter
    from translator.rewrite.variables import WebState

FEWEST_LAYOUTS = 3
UNORDERED = {*callees.PURE_KINDS, "load", "dot", "reduce"}  # what a load may be moved past
GONE = "__read_later__"  # stands for a statement of which nothing stays in its place
_GONE_LINE = re.compile(rf"^[ \t]*{GONE}\n", re.M)


def where_read(rw: "FunctionRewriter", s: ast.stmt, state: "WebState", layout: Layout) -> ast.stmt | None:
    """The statement before which the tile that `s` loads is read in `layout`; None where it is read at `s`."""
    if s.value not in rw.staged:  # type: ignore[attr-defined]
        return where_loaded(rw, s, state, layout)
    loop = rw.staged[s.value].loop  # type: ignore[attr-defined]
    plain = loop.copies and not (loop.specialized or loop.stages or loop.prefetch or loop.first or loop.plan.once)
    place = state.first_use.get(layout)
    if not plain or place is None or len(state.variants) < FEWEST_LAYOUTS:
        return None
    between, later = until_use(rw.tree, s, place)
    if later is None or not between:
        return None
    named = any(isinstance(n, ast.Name) and n.id == state.web.name for b in between for n in ast.walk(b))
    return None if named and layout == rw.primary(state) else later


def where_loaded(rw: "FunctionRewriter", s: ast.stmt, state: "WebState", layout: Layout) -> ast.stmt | None:
    """The statement before which a small load stands in a loop that holds much: that of its first use, behind a product.

    Its 64-bit pointers, two registers for each element, are not held across the product then, nor is what it loads. Why only
    with a tensor data mover, no reason in the hardware is known: it was measured there.
    """
    call, place = s.value, state.first_use.get(layout)  # type: ignore[attr-defined]
    callee = callees.callee_of(rw, call) if isinstance(call, ast.Call) and isinstance(s, ast.Assign) else None
    if callee is None or callee.row is None or callee.row.kind != "load" or place is None or len(state.variants) > 1:
        return None
    if (
        call in rw.held
        or not rw.unit.target.supports_tdm
        or not rw.loops
        or _buffered(rw, call)
        or not _holds_much(rw, rw.loops[-1])
    ):
        return None
    between, later = until_use(rw.tree, s, place)
    inside = [n for b in between for n in ast.walk(b)]
    if later is None or not any(dots.is_dot(rw, n) for n in inside):
        return None
    names = {n.id for n in ast.walk(s) if isinstance(n, ast.Name)}
    if any(isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Store) for n in inside):
        return None
    if any(isinstance(n, ast.Name) and n.id == state.web.name for n in inside):  # `x.dtype`
        return None
    kinds = [c.row.kind if (c := callees.callee_of(rw, n)) and c.row else "" for n in inside if isinstance(n, ast.Call)]
    return later if set(kinds) <= UNORDERED else None


def _buffered(rw: "FunctionRewriter", call: ast.Call) -> bool:
    """Whether a load has a scalar base and 32-bit offsets."""
    given = callees.bind(rw, call, callees.callee_of(rw, call))
    pointer = given.get("pointer")
    if pointer is None or rw.tensor(pointer) is None or not callees.is_plain_access(rw, call, given):
        return False
    return pointers.plan_access(rw, pointer) is not None


def _holds_much(rw: "FunctionRewriter", loop: ast.AST) -> bool:
    """Whether the tensors that a loop carries or finds made take a third of the registers."""
    target, held = rw.unit.target, 0
    for web in rw.webs.all:
        before = [d for d in web.definitions if loop not in d.in_loop and d.value is not None]
        inside = len(before) < len(web.definitions) or any(loop in loops for _, loops in web.uses)
        fact = rw.tensor(before[0].value) if before and inside and not rw.web_cheap(web) else None
        held += math.prod(fact.shape) * bits_of(fact.dtype) // 8 if fact is not None and not fact.is_pointer else 0
    return 3 * held >= rw.unit.num_warps * target.warp_size * target.vgpr_limit * 4


def without_gone(text: str) -> str:
    """A function's text without the lines of statements that have moved."""
    return _GONE_LINE.sub("", text)
