"""Which integer expressions cannot be negative, and what of the launch that rests on.

A buffer operation takes an unsigned 32-bit offset from its base, and the data mover fills with zeros beyond a tensor's end,
not before its start. `docs/design/offsets.md` says why what is added to an address may count as not overflowing, and what is
divided, compared, narrowed or reinterpreted on its way may not.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from translator.facts.ranges import Range, int_type
from translator.facts.values import Function, Known, Question
from translator.frontend.trace import TensorFact


@dataclass(frozen=True)
class Sign:
    """holds: `node` is not negative. assumed: the kernel's arguments that must not be for that; by_caller: so must be what the
    helper is called with; exact: no sum or product in it may overflow; taken: values read from memory count as indices.
    """

    holds: bool
    assumed: frozenset[str] = frozenset()
    by_caller: bool = False
    exact: bool = False
    taken: bool = False


NO = Sign(False)


class _Arguments(dict):
    """Ranges of arguments: not negative but for those that are left out."""

    def __init__(self, function: Function, without: frozenset[str] = frozenset()):
        self.function, self.without = function, without

    def get(self, name, default=None):
        return default if name in self.without or default is None else Range(0, default.hi)


def sign_of(function: Function, node: ast.AST, indices: bool = False, bounds: bool = False) -> Sign:
    """Whether `node` cannot be negative; indices: whether what is read from memory counts as an index, which is not; bounds:
    whether it is the bound of a loop.

    Of the arguments no more are taken to be not negative than it needs.
    """
    for taking in (False, True)[: 1 + indices]:
        plain = Question(function, None, taking, bounds)
        if _holds(found := plain.value(node)):
            return _sign(found, plain, frozenset())
        full = Question(function, _Arguments(function), taking, bounds)
        if not _holds(full.value(node)):
            continue
        without: frozenset[str] = frozenset()
        for name in sorted(full.used):
            fewer = Question(function, _Arguments(function, without | {name}), taking, bounds)
            if _holds(fewer.value(node)):
                without |= {name}
        least = Question(function, _Arguments(function, without), taking, bounds)
        return _sign(least.value(node), least, frozenset(full.used) - without)
    return NO


def _holds(found: Known) -> bool:
    return found.exact.lo >= 0 or found.range.lo >= 0


def _sign(found: Known, question: Question, assumed: frozenset[str]) -> Sign:
    return Sign(True, assumed, question.by_caller, found.range.lo < 0, question.taken)


class Signs:
    """The answers about one function that one access rests on: all that they assume together."""

    def __init__(self, function: Function):
        self.function = function
        self.assumed: set[str] = set()
        self.by_caller = self.exact = False

    def holds(self, node: ast.AST, bounds: bool = False) -> bool:
        """Whether `node` cannot be negative; bounds: it is the bound of a loop."""
        fact = self.function.fact(node)
        if isinstance(fact, TensorFact) and (int_type(fact.dtype) is None or fact.dtype == "uint64"):
            return False
        sign = sign_of(self.function, node, bounds=bounds)
        if sign.holds:
            self.assumed |= sign.assumed
            self.by_caller |= sign.by_caller
            self.exact |= sign.exact
        return sign.holds


__all__ = ["Sign", "Signs", "sign_of"]
