"""What the branch that an expression stands in says of it: `if x >= 0:` of `x`, `if a >= b:` of `a - b`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gluonize.facts.function import Function
from gluonize.facts.integers.known import Known
from gluonize.facts.integers.ranges import Range
from gluonize.trace.front.trace import ConstFact, TensorFact


def refined(function: Function, node: ast.Name, web: Any, found: Known) -> Known:
    """What a variable is where it is used: not negative in a branch that is only taken then."""
    if found.range.lo >= 0:
        return found
    for branch in function.branches_around(node):
        inside = {n for s in branch.body for n in ast.walk(s)}
        if any(d.node in inside for d in web.definitions):
            continue
        for name in _not_negative(function, branch.test):
            if function.webs.reaching.get(name, []) == function.webs.reaching.get(node, [None]):
                return type(found)(_raised(found.range), _raised(found.exact))
    return found


def difference(function: Function, node: ast.BinOp, found: Known, value: Callable[[ast.AST], Known]) -> Known:
    """What `a - b` is, of two variables of one signed type, in a branch that is only taken where `a >= b`.

    There `b` stays as it is, and `a` stays or grows. From a `b` that is not negative the difference does not overflow.
    """
    large, small = node.left, node.right
    if not isinstance(large, ast.Name) or not isinstance(small, ast.Name):
        return found
    kinds = {getattr(function.fact(n), "dtype", None) for n in (large, small, node)}
    if len(kinds) != 1 or not str(kinds.pop()).startswith("int"):
        return found
    for branch in function.branches_around(node):
        if (small.id, large.id) not in _ordered(branch.test):
            continue
        inside = {n for s in branch.body for n in ast.walk(s)}
        changes = [d for w in function.webs.all for d in w.definitions if d.node in inside]
        if any(d.name == small.id for d in changes):
            continue
        moves = [d for d in changes if d.name == large.id]
        if not all(d.augmented and isinstance(d.node.op, ast.Add) for d in moves):
            continue
        if all(value(d.node.value).exact.lo >= 0 for d in moves):
            sure = not moves and value(small).range.lo >= 0
            return type(found)(_raised(found.range) if sure else found.range, _raised(found.exact))
    return found


def _raised(a: Range) -> Range:
    return Range(max(a.lo, 0), max(a.hi, 0))


def _not_negative(function: Function, test: ast.expr) -> list[ast.Name]:
    """The signed variables that are not negative where `test` is true: `x >= 0`, `0 <= x < n`, in any conjunction."""
    found = []
    for small, large in _inequalities(test):
        fact = function.settled(small)
        constant = isinstance(fact, ConstFact) and type(fact.value) is int and fact.value >= 0
        kind = function.fact(large)
        if constant and isinstance(large, ast.Name) and isinstance(kind, TensorFact) and kind.dtype.startswith("int"):
            found.append(large)
    return found


def _ordered(test: ast.expr) -> set[tuple[str, str]]:
    """The pairs of variables of which the first is not greater where `test` is true."""
    pairs = [(small, large) for small, large in _inequalities(test)]
    return {(a.id, b.id) for a, b in pairs if isinstance(a, ast.Name) and isinstance(b, ast.Name)}


def _inequalities(test: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """(smaller side, larger side) of the comparisons that hold where `test` is true."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [pair for value in test.values for pair in _inequalities(value)]
    if isinstance(test, ast.BinOp) and isinstance(test.op, ast.BitAnd):
        return [*_inequalities(test.left), *_inequalities(test.right)]
    if not isinstance(test, ast.Compare):
        return []
    found = []
    sides = [test.left, *test.comparators]
    for small, op, large in zip(sides, test.ops, sides[1:]):
        if isinstance(op, (ast.Gt, ast.GtE)):
            found.append((large, small))
        elif isinstance(op, (ast.Lt, ast.LtE)):
            found.append((small, large))
    return found


__all__ = ["difference", "refined"]
