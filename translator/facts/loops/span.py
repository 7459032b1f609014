"""How far apart the bounds of a loop are, where that is known at compile time though the bounds are not.

`range(i * BTL, (i + 1) * BTL, BTS)` runs over `BTL` elements whatever `i` is; `blocks = tl.cdiv(K, BK)` is a value at run
time to the compiler of the source, but `range(blocks)` has as many iterations as the constants say.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from math import prod

from gluonize.facts.function import FunctionFacts
from gluonize.facts.integers.known import is_linear
from gluonize.facts.integers.polynomials import OPERATORS, Monomial, Polynomial, add, operated
from gluonize.facts.integers.ranges import int_type
from gluonize.facts.loops.loop_range import int_of, loop_bounds, trips_of
from gluonize.facts.syntax import unparsed
from gluonize.trace.front.trace import ConstFact, TensorFact

_RUN_TIME = "#"


@dataclass(frozen=True)
class Span:
    """`high - low` as an expression of compile-time names, and its value. form: the class of its syntax node, of an operation that
    of its operator.

    given: the expression of the source, where a variable that was given it is the bound.
    """

    text: str
    value: int
    form: type[ast.AST]
    given: ast.expr | None = None


def constant_span(facts: FunctionFacts, low: ast.expr | None, high: ast.expr) -> Span | None:
    """`high - low` where it is known at compile time and at least one of the two is not."""
    if low is None:
        return _given(facts, high)
    if int_of(facts, low) is not None and int_of(facts, high) is not None:
        return None
    values: dict[str, int] = {}
    first, last = _polynomial(facts, low, values), _polynomial(facts, high, values)
    if first is None or last is None:
        return None
    span = add(last, first, -1)
    if any(atom.startswith(_RUN_TIME) for monomial in span for atom in monomial):
        return None
    return Span(_spelled(span), sum(c * prod(values[name] for name in m) for m, c in span.items()), _form(span))


def _given(facts: FunctionFacts, high: ast.expr) -> Span | None:
    """The constant expression that a variable, the bound of a loop from 0, was given."""
    if not isinstance(high, ast.Name) or int_of(facts, high) is not None:
        return None
    expression = facts.webs.value_of(high)
    if expression is None or (value := int_of(facts, expression)) is None or isinstance(value, bool):
        return None
    constant = all(isinstance(facts.fact(n), ConstFact) for n in ast.walk(expression) if isinstance(n, ast.Name))
    return Span(unparsed(expression), value, type(expression), expression) if constant else None


def known_trips(facts: FunctionFacts, loop: ast.AST) -> int | None:
    """How many iterations a loop has, where that is known at compile time."""
    bounds = loop_bounds(facts, loop, either_way=True) if isinstance(loop, ast.For) else None
    if bounds is None:
        return None
    span = constant_span(facts, *bounds[:2])
    return trips_of(facts, *bounds, span and span.value)


def runs_once(facts: FunctionFacts, loop: ast.AST) -> bool:
    """Whether a loop is known to have one iteration at most: it is a block as any other then."""
    trips = known_trips(facts, loop)
    return trips is not None and trips <= 1


def _polynomial(
    facts: FunctionFacts, node: ast.expr, values: dict[str, int], at_loop: bool = True
) -> Polynomial | None:
    """`node` over names; values: gets those of the compile-time ones; at_loop: it is evaluated where the loop starts, so
    that its names have the same values."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return {(): node.value} if node.value else {}
    if isinstance(node, ast.BinOp) and isinstance(node.op, OPERATORS):
        a, b = _polynomial(facts, node.left, values, at_loop), _polynomial(facts, node.right, values, at_loop)
        fact = facts.fact(node)
        type = int_type(fact.dtype) if isinstance(fact, TensorFact) else None
        if a is None or b is None or type is not None and not is_linear(type):
            return None  # what wraps around is no number of iterations
        return operated(node.op, a, b)
    if not isinstance(node, ast.Name):
        return None
    if (known := int_of(facts, node)) is not None:
        values[node.id] = known
        return {(node.id,): 1}
    if (value := facts.webs.value_of(node)) is not None and (
        found := _polynomial(facts, value, values, False)
    ) is not None:
        return found
    web, fact = facts.webs.of_use.get(node), facts.fact(node)
    same = web is not None and (at_loop or len(web.definitions) == 1)
    return {(f"{_RUN_TIME}{web.index}",): 1} if same and isinstance(fact, TensorFact) and not fact.shape else None


def _spelled(polynomial: Polynomial) -> str:
    def term(monomial: Monomial, coefficient: int) -> str:
        factors = [] if coefficient == 1 and monomial else [str(coefficient)]
        return " * ".join([*factors, *monomial])

    terms = sorted(polynomial.items(), key=lambda item: (item[1] < 0, item[0]))
    text = ""
    for monomial, coefficient in terms:
        sign = " - " if coefficient < 0 else " + "
        text += (sign if text else "-" if coefficient < 0 else "") + term(monomial, abs(coefficient))
    return text


def _form(polynomial: Polynomial) -> type[ast.AST]:
    """The form of a polynomial as it is spelled."""
    if len(polynomial) > 1:
        return ast.Sub if any(c < 0 for c in polynomial.values()) else ast.Add
    ((monomial, coefficient),) = polynomial.items()
    factors = len(monomial) + (coefficient != 1 or not monomial)
    return ast.Mult if factors > 1 else ast.USub if coefficient < 0 else ast.Name if monomial else ast.Constant


__all__ = ["Span", "constant_span", "known_trips", "runs_once"]
