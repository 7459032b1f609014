"""Products that are scaled before their greatest or least number is looked for, which may as well be scaled itself.

    qk = tl.dot(q, k) * scale                   qk_unscaled = tl.dot(q, k)
    m = tl.maximum(m, tl.max(qk, 1))            qk = qk_unscaled * scale
                                                m = tl.maximum(m, tl.max(qk_unscaled, 1) * scale)

Masks in between that put an infinity in place of what they leave out may do so before the scaling, which leaves it as it is:

    qk = tl.dot(q, k) * scale                   qk = tl.dot(q, k)
    qk = tl.where(mask, qk, -inf)               qk_unscaled = tl.where(mask, qk, -inf)
    m = tl.maximum(m, tl.max(qk, 1))            qk = qk_unscaled * scale
                                                m = tl.maximum(m, tl.max(qk_unscaled, 1) * scale)

Of a scale that is positive (`gluonize.facts.numbers.positive`), rounding included: the same bits, but for the sign of a zero. The scaled
numbers are left with uses that can take the scaling in, such as `exp2(qk - m)` as one fused operation.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.numbers import positive
from gluonize.facts.numbers.signs import obligation_at
from gluonize.facts.obligations import Obligation
from gluonize.facts.variables.definitions import Definition
from gluonize.facts.webs import Web
from gluonize.numbered import numbered
from gluonize.trace.front.trace import ConstFact

_ORDERED = ("max", "min")
_REWRITE = "a maximum before scaling"


@dataclass(frozen=True)
class Unscaled:
    """`statement` gives a variable a product times `factors`, in this order. name: of a variable for that without the factors.

    source: the statement that scales in the source: `statement`, or one before it, whose value is the product alone then; product: in its
    value. reductions: of the scaled variable, which may be made of that one. assumed: what this rests on.
    """

    statement: ast.Assign
    source: ast.Assign
    product: ast.expr
    factors: tuple[ast.expr, ...]
    name: str
    reductions: tuple[ast.Call, ...]
    assumed: frozenset[Obligation]


def unscaled_products(facts: FunctionFacts) -> dict[ast.AST, Unscaled]:
    """All of a function, by the statements that change and by reduction."""
    every = (_of_web(facts, web) for web in facts.webs.all if len(web.definitions) == 1)
    return {node: x for x in every if x is not None for node in (x.source, x.statement, *x.reductions)}


def _of_web(facts: FunctionFacts, web: Web) -> Unscaled | None:
    (definition,) = web.definitions
    scaled = _under_masks(facts, definition)
    parts = _parts(facts, scaled) if scaled is not None else None
    if scaled is None or parts is None:
        return None
    product, factors = parts
    reads = {use for use, _ in web.uses}
    calls = (n for n in facts.nodes if isinstance(n, ast.Call) and not reads.isdisjoint(n.args))
    reductions = tuple(call for call in calls if _is_ordered(facts, call, reads))
    names = positive.positive_by(facts, factors) if reductions else None
    if names is None:
        return None
    assumed = frozenset(
        obligation_at(facts, factor, "positive", _REWRITE, "launch" if own else "proven", tuple(sorted(own)))
        for factor, own in zip(factors, names)
    )
    name = numbered(f"{web.name}_unscaled", facts.source_names.__contains__)
    return Unscaled(definition.node, scaled.node, product, factors, name, reductions, assumed)


def _under_masks(facts: FunctionFacts, definition: Definition) -> Definition | None:
    """What `definition` is under masks that put an infinity in place of what they leave out, where nothing else reads that; None where it
    is no plain assignment."""
    s = definition.node
    plain = isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name) and facts.taken(s)
    if not plain:
        return None
    if not isinstance(s.value, ast.Call) or not facts.taken(s.value):
        return definition
    callee = callees.callee_of(facts, s.value)
    if callee is None or callee.owner is not None or callee.name != "where":
        return definition
    given = callees.bind(s.value, callee)
    sides = [given.get(name) for name in ("x", "y")]
    for kept, other in (sides, sides[::-1]):
        under = facts.webs.definition_of(kept)
        web = facts.webs.of_use.get(kept) if under is not None else None
        if web is not None and len(web.definitions) == len(web.reads) == 1 and _is_infinite(facts, other):
            return _under_masks(facts, under) if under.in_loop == definition.in_loop else None
    return definition


def _is_infinite(facts: FunctionFacts, node: ast.expr | None) -> bool:
    fact = facts.settled(node) if node is not None else None
    return isinstance(fact, ConstFact) and isinstance(fact.value, float) and math.isinf(fact.value)


def _parts(facts: FunctionFacts, definition: Definition) -> tuple[ast.expr, tuple[ast.expr, ...]] | None:
    """(matrix product, factors) of a statement `x = tl.dot(...) * scale * 1.44`, with the factors on either side; all in fp32."""
    value, factors = definition.node.value, []
    while isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        if not _is_fp32(facts, value):
            return None
        scale = next((side for side in (value.left, value.right) if _is_fixed(facts, side)), None)
        if scale is None:
            return None
        factors.insert(0, scale)
        value = value.left if scale is value.right else value.right
    if not factors or not callees.is_dot(facts, value) or len(facts.visits(value)) != 1 or not _is_fp32(facts, value):
        return None
    return value, tuple(factors)


def _is_fp32(facts: FunctionFacts, node: ast.expr) -> bool:
    tensor = facts.tensor(node)
    return tensor is not None and tensor.dtype == "fp32"


def _is_fixed(facts: FunctionFacts, scale: ast.expr) -> bool:
    """Whether `scale` is one number wherever it is written: a constant, or a variable that is given a value once, outside of loops."""
    if isinstance(scale, ast.BinOp):
        return _is_fixed(facts, scale.left) and _is_fixed(facts, scale.right)
    if not isinstance(scale, ast.Name):
        return isinstance(scale, ast.Constant)
    every = [d for w in facts.webs.all if w.name == scale.id for d in w.definitions]
    return isinstance(facts.settled(scale), ConstFact) if not every else len(every) == 1 and not every[0].in_loop


def _is_ordered(facts: FunctionFacts, call: ast.Call, reads: set[ast.Name]) -> bool:
    """Whether a call is the greatest or least of one of `reads`, without its place."""
    if not facts.taken(call) or callees.kind_of(facts, call) != "reduce":
        return False
    callee = callees.callee_of(facts, call)
    given = callees.bind(call, callee)
    places = callees.is_true(facts, given.get("return_indices"))
    return callee.name in _ORDERED and callee.owner is None and given.get("input") in reads and not places


__all__ = ["Unscaled", "unscaled_products"]
