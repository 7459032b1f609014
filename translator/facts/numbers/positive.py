"""Floats that are positive in every launch, and so far from 0 and from infinity that a product with one is ordered as its factors are.

    qk_scale = sm_scale * 1.44269504        positive where `sm_scale` is, which is checked at launch

x <= y gives x * s <= y * s for such an `s`, rounded too: the greatest product is that of the greatest factor.
"""

from __future__ import annotations

import ast

from gluonize.facts.function import FunctionFacts
from gluonize.trace.front.trace import ConstFact, TensorFact

# What an argument, or a constant, has to be between. A product of as many of them as MOST_FACTORS is a normal number of fp32.
LEAST, MOST = 2.0**-30, 2.0**30
MOST_FACTORS = 4


def positive_by(facts: FunctionFacts, node: ast.AST) -> frozenset[str] | None:
    """The kernel's arguments that have to lie between LEAST and MOST for `node`, a float of a program, to be positive; None where that
    is not known of it, or a launch that it is translated for has others."""
    found = _factors(facts, node)
    if found is None or len(found) > MOST_FACTORS:
        return None
    names = frozenset(name for name in found if name)
    return None if names & facts.kernel.given_extreme(LEAST, MOST) else names


def _factors(facts: FunctionFacts, node: ast.AST) -> list[str] | None:
    """The factors of `node`: the names of arguments, "" for constants; None where one may not be positive."""
    fact = facts.settled(node)
    if isinstance(fact, ConstFact):
        # Another launch may have another value for a name that is a compile-time argument.
        literal = not isinstance(node, ast.Name)
        return [""] if literal and isinstance(fact.value, int | float) and LEAST <= fact.value <= MOST else None
    if not isinstance(fact, TensorFact) or fact.shape or fact.dtype != "fp32":
        return None
    if isinstance(node, ast.Name):
        definition = facts.webs.definition_of(node)
        if definition is None or facts.path:
            return None
        if isinstance(definition.node, ast.arg):
            return [definition.name]
        value = facts.webs.value_of(node)
        return None if value is None else _factors(facts, value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        left, right = _factors(facts, node.left), _factors(facts, node.right)
        return None if left is None or right is None else [*left, *right]
    return None


__all__ = ["LEAST", "MOST", "positive_by"]
