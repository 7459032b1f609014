"""Products that are scaled before their greatest or least number is looked for, which may as well be scaled itself.

    qk = tl.dot(q, k) * scale                   qk_unscaled = tl.dot(q, k)
    m = tl.maximum(m, tl.max(qk, 1))            qk = qk_unscaled * scale
                                                m = tl.maximum(m, tl.max(qk_unscaled, 1) * scale)

Of a scale that is positive (`gluonize.facts.numbers.positive`), rounding included: the same bits, but for the sign of a zero. The scaled
numbers are left with uses that can take the scaling in, such as `exp2(qk - m)` as one fused operation.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.numbers import positive
from gluonize.facts.numbers.signs import obligation_at
from gluonize.facts.obligations import Obligation
from gluonize.facts.variables.definitions import Definition
from gluonize.facts.webs import Web
from gluonize.numbered import numbered

_ORDERED = ("max", "min")
_REWRITE = "a maximum before scaling"


@dataclass(frozen=True)
class Unscaled:
    """`statement` gives a variable `product * scale`; name: of a variable for the product alone. reductions: of the scaled variable,
    which may be made of that one. assumed: what this rests on."""

    statement: ast.Assign
    product: ast.expr
    scale: ast.expr
    name: str
    reductions: tuple[ast.Call, ...]
    assumed: frozenset[Obligation]


def unscaled_products(facts: FunctionFacts) -> dict[ast.AST, Unscaled]:
    """All of a function, by statement and by reduction."""
    every = (_of_web(facts, web) for web in facts.webs.all if len(web.definitions) == 1)
    return {node: x for x in every if x is not None for node in (x.statement, *x.reductions)}


def _of_web(facts: FunctionFacts, web: Web) -> Unscaled | None:
    (definition,) = web.definitions
    parts = _parts(facts, definition)
    if parts is None:
        return None
    product, scale = parts
    reads = {use for use, _ in web.uses}
    calls = (n for n in facts.nodes if isinstance(n, ast.Call) and not reads.isdisjoint(n.args))
    reductions = tuple(call for call in calls if _is_ordered(facts, call, reads))
    names = positive.positive_by(facts, scale) if reductions else None
    if names is None:
        return None
    discharge = "launch" if names else "proven"
    assumed = obligation_at(facts, scale, "positive", _REWRITE, discharge, tuple(sorted(names)))
    name = numbered(f"{web.name}_unscaled", facts.source_names.__contains__)
    return Unscaled(definition.node, product, scale, name, reductions, frozenset({assumed}))


def _parts(facts: FunctionFacts, definition: Definition) -> tuple[ast.expr, ast.expr] | None:
    """(matrix product, scale) of a statement `x = tl.dot(...) * scale`, or with the factors in the other order; all in fp32."""
    s = definition.node
    plain = isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name) and facts.taken(s)
    if not plain or not isinstance(s.value, ast.BinOp) or not isinstance(s.value.op, ast.Mult):
        return None
    sides = (s.value.left, s.value.right)
    for product, scale in (sides, sides[::-1]):
        if callees.is_dot(facts, product) and _is_fixed(facts, scale) and len(facts.visits(product)) == 1:
            tensors = facts.tensor(product), facts.tensor(s.value)
            return (product, scale) if all(t is not None and t.dtype == "fp32" for t in tensors) else None
    return None


def _is_fixed(facts: FunctionFacts, scale: ast.expr) -> bool:
    """Whether `scale` is the same wherever it is written: a number, or a variable that is given a value once, outside of loops."""
    if isinstance(scale, ast.Constant):
        return True
    every = [d for w in facts.webs.all if isinstance(scale, ast.Name) and w.name == scale.id for d in w.definitions]
    return len(every) == 1 and not every[0].in_loop


def _is_ordered(facts: FunctionFacts, call: ast.Call, reads: set[ast.Name]) -> bool:
    """Whether a call is the greatest or least of one of `reads`, without its place."""
    if not facts.taken(call) or callees.kind_of(facts, call) != "reduce":
        return False
    callee = callees.callee_of(facts, call)
    given = callees.bind(call, callee)
    places = callees.is_true(facts, given.get("return_indices"))
    return callee.name in _ORDERED and callee.owner is None and given.get("input") in reads and not places


__all__ = ["Unscaled", "unscaled_products"]
