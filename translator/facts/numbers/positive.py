"""Floats that are positive in every launch, and so far from 0 and from infinity that a product with one is ordered as its factors are.

    qk_scale = sm_scale * 1.44269504        positive where `sm_scale` is, which is checked at launch

x <= y gives x * s <= y * s for such an `s`, rounded too: the greatest product is that of the greatest factor.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gluonize.facts.function import FunctionFacts
from gluonize.trace.front.trace import ConstFact, TensorFact

# What an argument, or a constant, has to be between. A product of as many of them as MOST_FACTORS is a normal number of fp32.
LEAST, MOST = 2.0**-30, 2.0**30
MOST_FACTORS = 4


def positive_by(facts: FunctionFacts, nodes: Sequence[ast.expr]) -> tuple[frozenset[str], ...] | None:
    """For each of `nodes`, floats of a program by which one number is multiplied: the kernel's arguments that have to lie between LEAST and
    MOST for it to be positive. None where that is not known of all of them, or a launch that it is translated for has other arguments.
    """
    found = [_factors(facts, node) for node in nodes]
    known = [factors for factors in found if factors is not None]
    if len(known) < len(found) or sum(map(len, known)) > MOST_FACTORS:
        return None
    names = tuple(frozenset(name for name in factors if name) for factors in known)
    return None if frozenset().union(*names) & facts.kernel.given_extreme(LEAST, MOST) else names


def _factors(facts: FunctionFacts, node: ast.AST) -> list[str] | None:
    """The factors of `node`: the names of arguments, "" for constants; None where one may not be positive."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        left, right = _factors(facts, node.left), _factors(facts, node.right)
        return None if left is None or right is None else [*left, *right]
    fact = facts.settled(node)
    if isinstance(fact, ConstFact):
        if not isinstance(fact.value, int | float) or not LEAST <= fact.value <= MOST:
            return None
        if not isinstance(node, ast.Name) or all(w.name != node.id for w in facts.webs.all):
            return [""]  # written out, or a constant of the file
    elif not isinstance(fact, TensorFact) or fact.shape or fact.dtype != "fp32":
        return None
    definition = facts.webs.definition_of(node)
    if definition is None or facts.path:
        return None
    if isinstance(definition.node, ast.arg):
        return [definition.name]  # of which another launch may have another value, a compile-time one too
    value = facts.webs.value_of(node)
    return None if value is None else _factors(facts, value)


__all__ = ["LEAST", "MOST", "positive_by"]
