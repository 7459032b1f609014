"""Matrices that a loop reads in another layout: on RDNA they are moved right before the loop, the largest last.

k = gl.load(...)                               k = gl.load(...)
k_operand = gl.convert_layout(k, operand)  ->  g = ...
g = ...                                        k_operand = gl.convert_layout(k, operand)
for i in range(n):                             for i in range(n):
    o = wmma(q, k_operand, o)                      o = wmma(q, k_operand, o)

What stands between would otherwise be made beside operands that alone fill the registers.
"""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from translator.rewrite.statements import statements_after
from translator.ttgir.elements import bits_of
from translator.ttgir.layouts import Layout

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter
    from translator.rewrite.variables import WebState


def moved_at_loop(rw: "FunctionRewriter", s: ast.stmt, state: "WebState", layout: Layout, line: str) -> bool:
    """Keep `line`, which moves the value of `s` to `layout`, for the loop that first reads it so; False where it follows `s`."""
    definition = state.web.definitions[0]
    fact = rw.tensor(definition.value) if definition.value is not None else None
    if not rw.unit.target.has_few_registers or len(state.web.definitions) != 1 or fact is None or fact.rank < 2:
        return False
    place = state.first_use[layout]
    after = next((n for n in statements_after(rw.tree, s) if place < (n.end_lineno, n.end_col_offset)), None)
    if after is None or place < (after.lineno, after.col_offset):
        return False
    size = math.prod(fact.shape) * bits_of(fact.dtype)
    rw.moved_at_loops.setdefault(after, []).append((size, line))
    return True


def insert_moves(rw: "FunctionRewriter") -> None:
    """Insert what was kept, before anything else that stands at the loop."""
    for s, moves in rw.moved_at_loops.items():
        at, indent = rw.source.offset(rw.source.first_line(s), 0), rw.source.indent(s)
        lines = [line for _, line in sorted(moves, key=lambda move: move[0])]
        rw.edits.insert(0, (at, at, "".join(f"{indent}{line}\n" for line in lines)))
