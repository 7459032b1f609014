"""What has to be checked before a launch so that nothing in an integer expression overflows: bounds of whole arguments and programs.

A sum, a product or a difference modulo 2**32 is right as long as its result fits; so what is added and multiplied needs one bound at
the end, and one wherever the number goes elsewhere: into a quotient, a comparison, a wider type, a helper.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gluonize.facts.function import Function
from gluonize.facts.integers.host_bounds import (
    Bound,
    Condition,
    argument,
    at_least_zero,
    ceiling,
    least_of,
    less,
    most_of_two,
    number,
    operated_bound,
    plus,
    positive,
    programs,
    quotient,
    times,
)
from gluonize.facts.integers.known import Known, is_linear
from gluonize.facts.integers.operations import SAME_ELEMENTS, Operation, operation_of, range_of_loop
from gluonize.facts.integers.ranges import IntType, int_type
from gluonize.facts.numbers.launch_values import constant, descriptor_size, exceeds, kernel_argument, value_in_launch
from gluonize.facts.numbers.values import BINARY, MOST_PROGRAMS, Question
from gluonize.trace.front.trace import ConstFact, TensorFact

_LINEAR = ("add", "mul", "lshift")  # a difference is one of numbers that are in order


@dataclass(frozen=True)
class Beyond:
    """Iterations past the end of a loop, as tiles that are fetched ahead have them. distance: what their index exceeds the last
    one by at most. moves: variables that each iteration moves by a constant: the first value, and what one of the index adds.
    """

    loop: ast.For
    distance: Bound
    moves: Mapping[int, tuple[ast.AST, int]] = field(default_factory=dict)
    starts_anywhere: bool = True


class Unbounded(Exception):
    """Nothing that the host can evaluate bounds a part of the expression."""


def conditions_for(
    ask: Callable[[Function], Question], function: Function, node: ast.AST, moved: bool = False
) -> frozenset[Condition] | None:
    """What makes sure that `node` is what it would be if nothing overflowed; None where the host cannot.

    ask: the question of which that value is asked, for a function. moved: what loops add to variables is bounded too, by how often they
    go round.
    """
    walk = _Walk(ask, function, set(), moved=moved)
    try:
        walk.pinned(node)
    except Unbounded:
        return None
    return frozenset(walk.conditions)


def conditions_beyond(
    ask: Callable[[Function], Question], function: Function, nodes: Sequence[ast.AST], beyond: Beyond
) -> frozenset[Condition] | None:
    """What makes sure that `nodes` do not overflow in the iterations past a loop's end either; None where the host cannot."""
    walk = _Walk(ask, function, set(), beyond)
    try:
        for node in nodes:
            walk.difference(node)
    except Unbounded:
        return None
    return frozenset(walk.conditions)


def index_conditions(
    ask: Callable[[Function], Question], function: Function, beyond: Beyond, type: IntType
) -> frozenset[Condition] | None:
    """What makes sure that the index of a loop does not overflow past its end; None where the host cannot."""
    walk = _Walk(ask, function, set(), beyond)
    try:
        bound = walk.index(beyond.loop)
        if bound is None:
            return None
        walk.at_most(bound, type)
    except Unbounded:
        return None
    return frozenset(walk.conditions)


def upper_bound(ask: Callable[[Function], Question], function: Function, node: ast.AST) -> Bound | None:
    """The most that `node` may be, where nothing overflows."""
    try:
        return _Walk(ask, function, set()).upper(node)
    except Unbounded:
        return None


class _Walk:
    """conditions: what was met on the way that may overflow. seen: variables that are being looked into."""

    def __init__(
        self,
        ask: Callable[[Function], Question],
        function: Function,
        conditions: set[Condition],
        beyond: Beyond | None = None,
        moved: bool = False,
    ):
        self.ask, self.function, self.conditions, self.beyond, self.moved = ask, function, conditions, beyond, moved
        self.question = ask(function)
        self.seen: set[int] = set()

    def pinned(self, node: ast.AST) -> Bound | None:
        """The bound of a number that did not overflow. Raises: Unbounded where that cannot be made sure of."""
        known, type = self.question.value(node), self._type(node)
        if type is None:
            raise Unbounded
        bound = self.upper(node)
        if self._sure(node, known):
            return number(known.range.hi) if bound is None else bound
        if known.exact.lo < type.least or bound is None:
            raise Unbounded
        self.at_most(bound, type)
        return bound

    def _sure(self, node: ast.AST, known: Known) -> bool:
        """Whether what is known of `node` holds by itself: nothing in it can overflow."""
        return known.exact == known.range and not self._beyond(node)

    def _beyond(self, node: ast.AST) -> bool:
        """Whether the value of `node` depends on an index that goes on past the end of its loop."""
        if self.beyond is None:
            return False
        loop = self.beyond.loop
        webs = [self.function.webs.of_use.get(n) for n in ast.walk(node) if isinstance(n, ast.Name)]
        return any(d.node is loop or loop in d.in_loop for web in webs if web is not None for d in web.definitions)

    def difference(self, node: ast.AST) -> None:
        """Pin a number that may be the difference of two that are not negative, which fits."""
        made = self.function.webs.single_of(node)
        if made is not None and not made.augmented and isinstance(made.value, ast.BinOp):
            node = made.value
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            both = node.left, node.right
            if all(self.question.value(n).exact.lo >= 0 for n in both) and self._type(both[0]) == self._type(both[1]):
                for side in both:
                    self.pinned(side)
                return
        self.pinned(node)

    def at_most(self, bound: Bound, type: IntType) -> None:
        whole = bound.parts[0] if bound.op == "//" else None
        if whole is not None and Condition(whole, type.most) in self.conditions or self._by_type(bound, type):
            return
        if exceeds(self.function, bound, type.most):
            raise Unbounded
        if bound.number is None:
            if self.function.kernel.refuses(Condition(bound, type.most)):
                raise Unbounded
            self.conditions.add(Condition(bound, type.most))

    def _by_type(self, bound: Bound, type: IntType) -> bool:
        """Whether it holds by the types of the arguments, whatever the grid."""
        found = {}
        for name in bound.arguments():
            fact = kernel_argument(self.function, name)
            own = int_type(fact.dtype) if isinstance(fact, TensorFact) else None
            if own is None:
                return False
            found[name] = own.least, own.most
        span = bound.span(found, MOST_PROGRAMS)
        return span is not None and span[1] <= type.most

    def _type(self, node: ast.AST) -> IntType | None:
        fact = self.function.fact(node)
        if isinstance(fact, ConstFact) and type(fact.value) is int:
            return IntType(100)
        return int_type(fact.dtype) if isinstance(fact, TensorFact) and not fact.is_pointer else None

    def upper(self, node: ast.AST) -> Bound | None:
        """A bound of `node` as it would be if it did not overflow itself; what it is made of is pinned."""
        fact, known = self.function.settled(node), self.question.value(node)
        if isinstance(fact, ConstFact):
            return constant(self.function, node, fact)
        type = self._type(node)
        if type is None:
            return None
        fits = self._sure(node, known)
        sure = number(known.range.hi) if fits and known.range.hi < type.most else None
        if not is_linear(type):
            return sure
        before = set(self.conditions)
        try:
            bound = self._made(node, type, fits)
        except Unbounded:
            if not fits:
                raise
            bound = None
        more = sure is not None and self.conditions != before and not self.question.exactly
        if fits and (bound is None or more):
            self.conditions &= before  # the range holds by itself
            return sure
        return bound

    def _made(self, node: ast.AST, type: IntType, sure: bool) -> Bound | None:
        if isinstance(node, ast.Name):
            web = self.function.webs.of_use.get(node)
            return None if web is None else self._variable(web)
        if isinstance(node, ast.BinOp):
            name = BINARY.get(node.op.__class__)
            return None if name is None else self._operated(name, node.left, node.right, type, sure)
        if isinstance(node, ast.IfExp):
            test = self.function.settled(node.test)
            if isinstance(test, ConstFact):
                return self.operand(node.body if test.value else node.orelse, type)
            return most_of_two(self.operand(node.body, type), self.operand(node.orelse, type))
        if (size := descriptor_size(self.function, node)) is not None:
            return argument(size)
        if isinstance(node, ast.Subscript) or isinstance(node, ast.Attribute) and node.attr == "T":
            inner = self.function.fact(node.value)
            return self.operand(node.value, type) if isinstance(inner, TensorFact) else None
        if isinstance(node, ast.Call):
            operation = operation_of(node, self.function.fact(node.func))
            return self._call(node, operation, type, sure) if operation is not None else None
        return (
            self.operand(node.operand, type)
            if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd)
            else None
        )

    def operand(self, node: ast.AST | None, type: IntType) -> Bound | None:
        """An operand of something of `type` that is linear; one of another type is widened first."""
        if node is None:
            return None
        own = self._type(node)
        return self.upper(node) if own == type or isinstance(self.function.fact(node), ConstFact) else self.pinned(node)

    def _operated(self, name: str, left: ast.AST, right: ast.AST, type: IntType, sure: bool) -> Bound | None:
        """sure: the range of the result holds by itself, so that it needs not be made sure of what each operand is."""
        if name in _LINEAR:
            a, b = self.operand(left, type), self.operand(right, type)
        elif sure and name in ("mod", "minimum", "and"):
            a, b = self._maybe(left), self._maybe(right)
        else:
            a, b = self.pinned(left), self.pinned(right)
        known = [self.question.value(n) for n in (left, right)]
        if name in ("floordiv", "cdiv") and a is not None:
            return self._divided(name, a, right, known, type)
        return operated_bound(name, a, b, (known[0].exact.lo, known[1].exact.lo))

    def _maybe(self, node: ast.AST) -> Bound | None:
        before = set(self.conditions)
        try:
            return self.pinned(node)
        except Unbounded:
            self.conditions &= before
            return None

    def _divided(self, name: str, a: Bound, right: ast.AST, known: list[Known], type: IntType) -> Bound | None:
        least = known[1].exact.lo
        if least < 0:
            return None
        a = at_least_zero(a) if known[0].exact.lo < 0 else a
        by = value_in_launch(self.question, right) or number(max(least, 1))
        by = by if least >= 1 else positive(by)
        if name == "cdiv":
            self.at_most(plus(a, less(by, 1)), type)
        return ceiling(a, by) if name == "cdiv" else quotient(a, by)

    def _variable(self, web: Any) -> Bound | None:
        if web.index in self.seen:
            return None
        if self.beyond is not None and web.index in self.beyond.moves:
            first, by = self.beyond.moves[web.index]
            start, index = self.upper(first), self.index(self.beyond.loop)
            return None if start is None or index is None else plus(start, times(number(by), index))
        moves = [d for d in web.definitions if d.augmented]
        self.seen.add(web.index)
        try:
            bounds = [self._definition(d) for d in web.definitions if d not in moves]
            added = [self._added(web, d) for d in moves]
        finally:
            self.seen.discard(web.index)
        found = bounds[0] if bounds else None
        for bound in bounds[1:]:
            found = most_of_two(found, bound)
        for bound in added:
            found = None if found is None or bound is None else plus(found, bound)
        return found

    def _added(self, web: Any, d: Any) -> Bound | None:
        """The most that a statement `x += c` adds to a variable in all, where `c` is not negative: `c` in each iteration of its loop."""
        if not self.moved or not isinstance(getattr(d.node, "op", None), ast.Add):
            return None
        if self.question.value(d.node.value).exact.lo < 0 or (by := self.pinned(d.node.value)) is None:
            return None
        if not d.in_loop:
            return by
        loop = d.in_loop[-1]
        if not isinstance(loop, ast.For) or self.function.webs.goes_on(loop, web):
            return None
        often = self._trips(loop)
        return None if often is None else times(often, by)

    def _trips(self, loop: ast.For) -> Bound | None:
        """How often a loop goes round at most, whose index begins at no negative number and goes up."""
        bounds, last = range_of_loop(loop.iter, self.function.fact(getattr(loop.iter, "func", loop.iter))), None
        if bounds is None:
            return None
        low, _, step = bounds
        least = [
            0 if low is None else self.question.value(low).exact.lo,
            1 if step is None else self.question.value(step).exact.lo,
        ]
        if least[0] < 0 or least[1] < 1 or (last := self.index(loop)) is None:
            return None
        for node in (low, step):
            if node is not None and not isinstance(self.function.settled(node), ConstFact):
                self.pinned(node)
        return plus(quotient(at_least_zero(last), number(least[1])), number(1))

    def _definition(self, d: Any) -> Bound | None:
        if isinstance(d.node, ast.arg):
            return self._parameter(d.name)
        if isinstance(d.node, ast.For):
            return self.index(d.node) if isinstance(d.node.target, ast.Name) else None
        if d.augmented or d.value is None:
            return None
        if not isinstance(self.function.fact(d.value), (ConstFact, TensorFact)):
            return None
        known, type = self.question.value(d.value), self._type(d.value)
        if type is None or known.exact.lo < type.least and known.exact != known.range:
            return None  # below the least number it is large again: a branch around a use does not say which it was
        return self.upper(d.value)

    def _parameter(self, name: str) -> Bound | None:
        if not self.function.path:
            return argument(name)
        outer, arguments = getattr(self.function, "called", None) or (None, {})
        if outer is None or name not in arguments:
            return None
        return _Walk(self.ask, outer, self.conditions, moved=self.moved).pinned(arguments[name])

    def index(self, loop: ast.For) -> Bound | None:
        bounds = range_of_loop(loop.iter, self.function.fact(getattr(loop.iter, "func", loop.iter)))
        if bounds is None:
            return None
        low, high, step = bounds
        by = self.question.value(step).exact if step is not None else None
        down, up = by is not None and by.hi < 0, by is None or by.lo > 0
        beyond = self.beyond if self.beyond is not None and loop is self.beyond.loop else None
        # A loop that does not run has its first tiles behind its end.
        known = low is None or isinstance(self.function.fact(low), ConstFact)
        needed = not up or beyond is not None and beyond.starts_anywhere and not known
        first = number(0) if low is None else self.most(low) if needed else None
        if down:
            return first
        last = self.most(high)
        last = None if last is None else less(last, 1)
        last = most_of_two(first, last) if needed else last
        return last if beyond is None or last is None else plus(last, beyond.distance)

    def most(self, node: ast.AST) -> Bound | None:
        """The most that `node` is, whether something in it overflows or not. Raises: Unbounded."""
        before = set(self.conditions)
        try:
            return self.pinned(node)
        except Unbounded:
            self.conditions &= before
            made = self.function.webs.single_of(node)
            if made is not None and not made.augmented and isinstance(made.value, ast.expr):
                return self.most(made.value)
            operation = operation_of(node, self.function.fact(node.func)) if isinstance(node, ast.Call) else None
            if operation is None or operation.name != "minimum":
                raise
            found = None
            for operand in operation.operands.values():
                try:
                    found = least_of(found, self.most(operand))
                except Unbounded:
                    continue
            if found is None:
                raise
            return found

    def _call(self, node: ast.Call, operation: Operation, type: IntType, sure: bool) -> Bound | None:
        name, first = operation.name, operation.first
        if name in ("program_id", "num_programs"):
            axis = self.function.settled(first) if first is not None else None
            if not isinstance(axis, ConstFact) or axis.value not in (0, 1, 2):
                return None
            return less(programs(axis.value), 1) if name == "program_id" else programs(axis.value)
        if name == "arange":
            end = operation.operands.get("end")
            bound = self.upper(end) if end is not None else None
            return None if bound is None else less(bound, 1)
        if name in ("maximum", "minimum", "cdiv"):
            pair = [operation.operands.get(n) for n in ("x", "div" if name == "cdiv" else "y")]
            return None if None in pair else self._operated(name, *pair, type, sure)
        if name == "where":
            x, y = (operation.operands.get(n) for n in ("x", "y"))
            return most_of_two(self.operand(x, type), self.operand(y, type))
        if name == "full":
            return self.operand(operation.operands.get("value"), type)
        if name in ("zeros", "zeros_like"):
            return number(0)
        if name in SAME_ELEMENTS or name in ("to", "cast"):
            return self.operand(first, type)
        return self.pinned(first) if name in ("max", "min") and first is not None else None


__all__ = ["Beyond", "Unbounded", "conditions_beyond", "conditions_for", "index_conditions", "upper_bound"]
