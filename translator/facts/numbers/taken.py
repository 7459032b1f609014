"""Branches that no launch with arguments of the traced types takes, told by the numbers that their conditions compare."""

from __future__ import annotations

import ast

from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.ranges import Range
from gluonize.facts.numbers.values import Question
from gluonize.facts.syntax import less_than
from gluonize.trace.front.trace import ConstFact, TensorFact


def never_reached(facts: FunctionFacts, node: ast.AST) -> bool:
    """Whether `node` stands in the body of an `if` whose condition is false whatever the arguments are."""
    return any(_always_false(facts, branch.test) for branch in facts.branches_around(node))


def _always_false(facts: FunctionFacts, test: ast.expr) -> bool:
    """Whether a comparison of signed scalars is false by their ranges."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_always_false(facts, part) for part in test.values)
    sides = less_than(test)
    if sides is None:
        return False
    small, large = (_range(facts, side) for side in sides)
    return small is not None and large is not None and small.lo >= large.hi


def _range(facts: FunctionFacts, node: ast.expr) -> Range | None:
    """What a signed scalar may be; None for anything else: two such values may be compared as another type."""
    fact = facts.settled(node)
    if isinstance(fact, ConstFact):
        return Range(fact.value, fact.value) if type(fact.value) is int else None
    signed = isinstance(fact, TensorFact) and not fact.shape and fact.dtype in ("int32", "int64")
    return Question(facts).value(node).range if signed else None


__all__ = ["never_reached"]
