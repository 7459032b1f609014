"""Which integer expressions cannot be negative, and what of the launch that rests on.

A buffer operation takes an unsigned 32-bit offset from its base, and the data mover fills with zeros beyond a tensor's end,
not before its start. `docs/design/offsets.md` says why what is added to an address may count as not overflowing, and what is
divided, compared, narrowed or reinterpreted on its way may not.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gluonize.facts.function import Function
from gluonize.facts.integers.host_bounds import Condition, needed, number, plus, times
from gluonize.facts.integers.known import Known
from gluonize.facts.integers.ranges import Range, int_type
from gluonize.facts.numbers.launch_values import exceeds
from gluonize.facts.numbers.overflow import conditions_for, upper_bound
from gluonize.facts.numbers.values import Question
from gluonize.facts.obligations import Obligation
from gluonize.facts.syntax import unparsed
from gluonize.read.text.moved_lines import file_line
from gluonize.trace.front.trace import TensorFact


@dataclass(frozen=True)
class Sign:
    """holds: `node` is not negative. assumed: the kernel's arguments that must not be for that; by_caller: so must be what the
    helper is called with; conditions: what has to hold so that nothing in it overflows.
    """

    holds: bool
    assumed: frozenset[str] = frozenset()
    by_caller: bool = False
    conditions: frozenset[Condition] = frozenset()


NO = Sign(False)


class _Arguments(dict):
    """Ranges of arguments: not negative but for those that are left out, and those that the given launches make negative."""

    def __init__(self, function: Function, without: frozenset[str] = frozenset()):
        self.function, self.without = function, without

    def get(self, name, default=None):
        known = name not in self.without and name not in self.function.kernel.given_negative
        return Range(0, default.hi) if known and default is not None else default


Conditions = frozenset[Condition]
Ask = Callable[[Function], Question]


def least_for(
    function: Function, find: Callable[[Ask], Conditions | None], exactly: bool = True
) -> tuple[Conditions, frozenset[str]] | None:
    """(what `find` has checked, the fewest arguments that must not be negative for that); None where it finds nothing.

    find: is given how to ask about a function, in whose expressions nothing overflows; exactly: as of `Question`.
    """

    def tried(without: frozenset[str]) -> tuple[Conditions | None, set[str]]:
        used: set[str] = set()
        ask = lambda asked: Question(asked, _Arguments(asked, without), exactly, used)  # noqa: E731
        return find(ask), used

    found, used = tried(frozenset())
    if found is None:
        return None
    without: frozenset[str] = frozenset()
    for name in sorted(used):
        fewer, _ = tried(without | {name})
        if fewer is not None:
            found, without = fewer, without | {name}
    return found, frozenset(used) - without


def sign_of(function: Function, node: ast.AST, exactly: bool = False) -> Sign:
    """Whether `node` cannot be negative: as it is; with arguments that are not; where nothing overflows, if the host can check that.

    Of the arguments no more are taken to be not negative than it needs. exactly: quotients, remainders and comparisons
    are checked not to be of numbers that overflowed, where there is no other way; a hash is one that may. So is what loops add to
    variables. Found once per node: each round of writing, and each layout that an address is wanted in, asks again.
    """
    if (node, exactly) not in function.signs:
        function.signs[node, exactly] = _sign_of(function, node, exactly)
    return function.signs[node, exactly]


def _sign_of(function: Function, node: ast.AST, exactly: bool) -> Sign:
    plain = Question(function)
    if plain.value(node).range.lo >= 0:
        return Sign(True, frozenset(), plain.by_caller)
    least = _least(function, node, lambda known: known.range.lo >= 0, False)
    if least is not None:
        assumed, question = least
        return Sign(True, assumed, question.by_caller)
    least = _least(function, node, lambda known: known.exact.lo >= 0, exactly)
    if least is None:
        return NO
    assumed, question = least
    conditions = conditions_for(question.of, function, node, exactly)
    if conditions is None:
        question = Question(function, _Arguments(function), exactly)
        question.value(node)
        assumed = frozenset(question.used)
        conditions = conditions_for(question.of, function, node, exactly)
    return NO if conditions is None else Sign(True, assumed, question.by_caller, conditions)


def _least(
    function: Function, node: ast.AST, holds: Callable[[Known], bool], exactly: bool
) -> tuple[frozenset[str], Question] | None:
    """(the fewest arguments that must not be negative, a question in which they are not), if `holds` then."""
    full = Question(function, _Arguments(function), exactly)
    if not holds(full.value(node)):
        return None
    without: frozenset[str] = frozenset()
    for name in sorted(full.used):
        fewer = Question(function, _Arguments(function, without | {name}), exactly)
        if holds(fewer.value(node)):
            without |= {name}
    least = Question(function, _Arguments(function, without), exactly)
    least.value(node)
    return frozenset(full.used) - without, least


def most_of(function: Function, node: ast.AST) -> int:
    """The greatest number that `node` may be in any launch."""
    return Question(function).value(node).range.hi


def most_checked(
    function: Function, products: Sequence[Sequence[ast.AST]], most: int, exactly: bool = False
) -> tuple[Conditions, frozenset[str]] | None:
    """(what has to be checked, the fewest arguments that must not be negative) so that the sum of products of numbers that are not
    negative is at most `most`; None where the host cannot. Their signs have been asked for, `exactly` as here: what those rest
    on is written down."""
    return least_for(function, lambda ask: _at_most(ask, function, products, most), exactly)


def _at_most(ask: Ask, function: Function, products: Sequence[Sequence[ast.AST]], most: int) -> Conditions | None:
    """What has to be checked for `most_checked`."""
    found: set[Condition] = set()
    total, question = number(0), ask(function)
    for nodes in products:
        bound = number(1)
        for node in nodes:
            own = conditions_for(ask, function, node, question.exactly)
            upper = upper_bound(ask, function, node)
            if own is None or upper is None or question.value(node).exact.lo < 0:
                return None
            found |= own
            bound = times(bound, upper)
        total = plus(total, bound)
    if exceeds(function, total, most):
        return None
    if total.number is None:
        found.add(Condition(total, most))
        if function.kernel.refuses(Condition(total, most)):
            return None
    return frozenset(needed(found))


class Signs:
    """The answers about one function that one rewrite rests on. exactly: as in `sign_of`. assumed: what they are obliged
    to; by_caller: whether they rest on what a helper is called with."""

    def __init__(self, function: Function, rewrite: str, exactly: bool = False):
        self.function, self.rewrite, self.exactly = function, rewrite, exactly
        self.assumed: set[Obligation] = set()
        self.by_caller = False

    def holds(self, node: ast.AST) -> bool:
        """Whether `node` cannot be negative."""
        fact = self.function.fact(node)
        if isinstance(fact, TensorFact) and (int_type(fact.dtype) is None or fact.dtype == "uint64"):
            return False
        sign = sign_of(self.function, node, self.exactly)
        if sign.holds:
            self.assumed |= obligations_of(self.function, node, sign, self.rewrite)
            self.by_caller |= sign.by_caller
        return sign.holds


def obligations_of(function: Function, node: ast.AST, sign: Sign, rewrite: str) -> set[Obligation]:
    """What `rewrite` is obliged to by resting on the sign of `node`."""
    names = tuple(sorted(sign.assumed))
    found = {obligation_at(function, node, "not-negative", rewrite, "launch" if names else "proven", names)}
    return found | {checked_at(function, node, "no-overflow", rewrite, c) for c in sign.conditions}


def arguments_at(function: Function, node: ast.AST, rewrite: str, names: frozenset[str]) -> set[Obligation]:
    """What is checked of arguments that must not be negative for an expression of the source."""
    return {obligation_at(function, node, "not-negative", rewrite, "launch", tuple(sorted(names)))} if names else set()


def checked_at(function: Function, node: ast.AST, kind: str, rewrite: str, condition: Condition) -> Obligation:
    """An obligation about an expression of the source that is checked before each launch."""
    names = tuple(sorted(condition.bound.arguments()))
    return obligation_at(function, node, kind, rewrite, "launch", names, condition)


def obligation_at(
    function: Function,
    node: ast.AST,
    kind: str,
    rewrite: str,
    discharge: str,
    arguments: tuple[str, ...] = (),
    condition: Condition | None = None,
) -> Obligation:
    """An obligation about an expression of the source."""
    fn = function.frame.fn
    line = file_line(fn, node.lineno) if hasattr(node, "lineno") else 0
    return Obligation(line, unparsed(node), kind, rewrite, discharge, arguments, fn.file_name or "", condition)


__all__ = [
    "Sign",
    "Signs",
    "arguments_at",
    "checked_at",
    "least_for",
    "most_checked",
    "most_of",
    "obligation_at",
    "obligations_of",
    "sign_of",
]
