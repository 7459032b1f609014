"""Expressions that stand in the source twice and that Triton makes once: both get the layouts of the one that is left.

u = x - tl.sum(x * y, axis=1)     Triton's final module has one sum, at the place of the first. In its layout the second is
v = x * tl.sum(x * y, axis=1)     the same to Gluon's passes, which make it once then; in the layout of `x` it would not be.

Only layouts follow from it, so an expression that is not equal after all costs a conversion, never a wrong value. What reads
memory is left out: its value may have changed.
"""

from __future__ import annotations

import ast

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.syntax import ELEMENTWISE_NODES

_EXPENSIVE = frozenset({"reduce", "scan", "dot", "dot_scaled", "gather", "histogram"})


def equal_expressions(facts: FunctionFacts) -> dict[ast.expr, list[ast.expr]]:
    """The others that give the value of an expression, for those with a reduction, scan or product in them."""
    groups: dict[tuple, list[ast.expr]] = {}
    for node in facts.nodes:
        if isinstance(node, (ast.Call, ast.Subscript, *ELEMENTWISE_NODES)) and _is_expensive(facts, node):
            groups.setdefault(_key(facts, node), []).append(node)
    return {node: [n for n in group if n is not node] for group in groups.values() if len(group) > 1 for node in group}


def _is_expensive(facts: FunctionFacts, node: ast.expr) -> bool:
    if facts.tensor(node) is None:
        return False
    called = [callees.callee_of(facts, n) for n in ast.walk(node) if isinstance(n, ast.Call)]
    kinds = {c.row.kind if c is not None and c.row is not None else "" for c in called}
    return not kinds.isdisjoint(_EXPENSIVE) and kinds <= {*_EXPENSIVE, *callees.PURE_KINDS}


def _key(facts: FunctionFacts, node: ast.expr) -> tuple:
    """What equal expressions have in common: the text, and which definitions each name in it may see."""
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    return ast.dump(node), *((*map(id, facts.webs.reaching.get(n, ())), getattr(n, "literal", None)) for n in names)
