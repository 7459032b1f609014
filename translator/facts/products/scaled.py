"""Products of operands with scales, `tl.dot_scaled`, where the target has a matrix instruction for them: what Triton chose for each."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.trace.front.trace import ConstFact
from gluonize.trace.model.layouts import DotOperand, Layout, Linear

SIDES = ("lhs", "rhs")


@dataclass(frozen=True)
class ScaledProduct:
    """operands, scales: of either side, with their layouts; a scale is None where there is none. formats: of the operands."""

    node: ast.Call
    operands: tuple[ast.expr, ast.expr]
    layouts: tuple[Layout, Layout]
    scales: tuple[ast.expr | None, ast.expr | None]
    scale_layouts: tuple[Layout | None, Layout | None]
    formats: tuple[str, str]
    result: Layout

    @property
    def a(self) -> ast.expr:
        return self.operands[0]

    @property
    def b(self) -> ast.expr:
        return self.operands[1]


def is_scaled_product(facts: FunctionFacts, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and callees.kind_of(facts, node) == "dot_scaled"


def scaled_product(facts: FunctionFacts, node: ast.Call) -> ScaledProduct | None:
    """None where the target has no instruction for it."""
    placed = facts.placed(node, "tt.dot_scaled")
    if not placed:
        return None
    given = callees.bound(facts, node)
    layouts: dict[str, Layout] = {}
    side = ""
    for ty in placed[0].operands:
        if isinstance(ty.layout, DotOperand):
            side = SIDES[ty.layout.operand_index]
            layouts[side] = ty.layout
        else:
            layouts[f"{side}_scale"] = ty.layout
    formats = [facts.fact(given[f"{side}_format"]) for side in SIDES]
    assert all(isinstance(x, ConstFact) for x in formats), f"bug in gluonize: formats of tl.dot_scaled: {formats}"
    scales = [given.get(f"{side}_scale") for side in SIDES]
    return ScaledProduct(
        node,
        (given["lhs"], given["rhs"]),
        (layouts["lhs"], layouts["rhs"]),
        tuple(x if callees.is_given(facts, x) else None for x in scales),
        tuple(layouts.get(f"{side}_scale") for side in SIDES),
        tuple(x.value for x in formats),
        placed[0].results[0].layout,
    )


def first_rows(layout: Layout | None, rows: int) -> Layout | None:
    """The layout of the first `rows` rows of a tensor, which registers alone keep apart from the others; None where lanes do too."""
    if not isinstance(layout, Linear) or layout.block:
        return None
    kept = tuple(basis for basis in layout.register if basis[0] < rows)
    others = (*layout.lane, *layout.warp)
    if any(basis[0] >= rows for basis in others) or layout.shape[0] >> len(layout.register) - len(kept) != rows:
        return None
    return replace(layout, register=kept, shape=(rows, *layout.shape[1:]))


__all__ = ["SIDES", "ScaledProduct", "first_rows", "is_scaled_product", "scaled_product"]
