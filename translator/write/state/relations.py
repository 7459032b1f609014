"""In which layouts an expression wants its parts: asked by who writes the expression, and before by who looks for the layouts of variables."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from gluonize.facts.function import FunctionFacts
from gluonize.trace.front.trace import TensorFact
from gluonize.trace.model.layouts import Layout, Slice

NOT_READ = "not read"  # the layout of a part that is not written at all
Wants = dict[ast.AST, Any]  # parts of an expression, each with its layout; None takes any


def sliced(layout: Layout, axes: Iterable[int]) -> Layout:
    """The layout of what becomes a tensor in `layout` by new axes."""
    for axis in sorted(axes, reverse=True):
        layout = Slice(axis, layout)
    return layout


def operand_layout(facts: FunctionFacts, node: ast.AST, fact: TensorFact | None, want: Layout | None) -> Layout | None:
    """The layout of an operand of an elementwise operation whose result, `fact`, has layout `want`: without the leading dimensions
    that the operand lacks."""
    mine = facts.tensor(node)
    if mine is None or fact is None or want is None:
        return None
    return sliced(want, range(fact.rank - mine.rank))


def operands_in(facts: FunctionFacts, nodes: Iterable[ast.AST], fact: TensorFact | None, want: Layout | None) -> Wants:
    """The operands of an elementwise operation whose result, `fact`, has layout `want`."""
    return {node: operand_layout(facts, node, fact, want) for node in nodes}
