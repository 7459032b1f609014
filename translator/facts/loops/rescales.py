"""Statements that multiply what a loop has summed by a factor for each row, as attention does where the greatest score so far grows.

acc = acc * alpha[:, None]        nothing changes where all of `alpha` is 1
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gluonize.facts.function import FunctionFacts
from gluonize.facts.syntax import is_new_axis, is_whole_axis, target_of
from gluonize.facts.variables.definitions import assigned_fact
from gluonize.trace.front.trace import TensorFact


@dataclass(frozen=True)
class Rescale:
    """`acc = acc * factor[...]`. kept: the `acc` that is read, None in `acc *= factor[...]`. axis: along which the factors are the same."""

    kept: ast.Name | None
    factor: ast.expr
    axis: int


def rescale_of(facts: FunctionFacts, s: ast.stmt) -> Rescale | None:
    """The rescaling that a statement is; None for any other."""
    target = target_of(s) if isinstance(s, ast.Assign | ast.AugAssign) else None
    if not isinstance(target, ast.Name) or getattr(s, "iteration", None) is not None:
        return None
    fact = assigned_fact(facts, s)
    if not isinstance(fact, TensorFact) or fact.rank != 2 or fact.dtype != "fp32":
        return None
    if isinstance(s, ast.AugAssign):
        return _by(facts, None, s.value, fact) if isinstance(s.op, ast.Mult) else None
    if not isinstance(s.value, ast.BinOp) or not isinstance(s.value.op, ast.Mult) or len(s.targets) != 1:
        return None
    sides = (s.value.left, s.value.right)
    for kept, factor in (sides, sides[::-1]):
        if isinstance(kept, ast.Name) and kept.id == target.id and facts.tensor(kept) == fact:
            return _by(facts, kept, factor, fact)
    return None


def _by(facts: FunctionFacts, kept: ast.Name | None, factor: ast.expr, fact: TensorFact) -> Rescale | None:
    """The rescaling by `factor`, where that is a variable along one dimension."""
    if not isinstance(factor, ast.Subscript) or not isinstance(factor.slice, ast.Tuple):
        return None
    inner, new = factor.value, [i for i, part in enumerate(factor.slice.elts) if is_new_axis(part)]
    own = facts.tensor(inner)
    plain = all(is_new_axis(part) or is_whole_axis(part) for part in factor.slice.elts)
    if not isinstance(inner, ast.Name) or own is None or own.rank != 1 or own.dtype != fact.dtype or len(new) != 1:
        return None
    return Rescale(kept, inner, new[0]) if plain and own.shape[0] == fact.shape[1 - new[0]] else None


__all__ = ["Rescale", "rescale_of"]
