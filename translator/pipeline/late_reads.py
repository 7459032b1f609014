"""Tiles that are read in several layouts: each read stands where its layout is first needed.

k = smem.index(slot).load(rows)                k = smem.index(slot).load(rows)
k_operand = smem.index(slot).load(operand)  -> s = gl.sum(k, axis=1)
s = gl.sum(k, axis=1)                          k_operand = smem.index(slot).load(operand)
o = wmma(q, k_operand, o)                      o = wmma(q, k_operand, o)

The slot stays as it is until the end of the iteration, and registers are taken from then on only: with tiles in up to five
layouts, 2995 instructions for 3129 in the loop of fla's based attention on gfx1250. Two layouts are read at once: apart, the
loop of ttt's backward pass has 7 % more.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from translator.layout.model import Layout
from translator.rewrite.statements import until_use

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter
    from translator.rewrite.variables import WebState

FEWEST_LAYOUTS = 3
GONE = "__read_later__"  # stands for a statement of which nothing stays in its place
_GONE_LINE = re.compile(rf"^[ \t]*{GONE}\n", re.M)


def where_read(rw: "FunctionRewriter", s: ast.stmt, state: "WebState", layout: Layout) -> ast.stmt | None:
    """The statement before which the tile that `s` loads is read in `layout`; None where it is read at `s`."""
    if s.value not in rw.staged:  # type: ignore[attr-defined]
        return None
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


def without_gone(text: str) -> str:
    """A function's text without the lines of statements that have moved."""
    return _GONE_LINE.sub("", text)
