"""Which integer expressions cannot be negative, and what of the launch that rests on.

A buffer operation takes an unsigned 32-bit offset from its base, and the data mover fills with zeros beyond a tensor's end,
not before its start. `docs/design/offsets.md` says why what is added to an address may count as not overflowing, and what is
divided, compared, narrowed or reinterpreted on its way may not.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from translator.facts.function import Function
from translator.facts.known import Known
from translator.facts.obligations import Obligation
from translator.facts.ranges import Range, int_type
from translator.facts.values import Question
from translator.frontend.trace import TensorFact
from translator.source.moved_lines import file_line


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


def most_of(function: Function, node: ast.AST) -> int:
    """The greatest number that `node` may be in any launch."""
    return Question(function).value(node).range.hi


class Signs:
    """The answers about one function that one rewrite rests on. assumed: what they are obliged to; by_caller: whether they
    rest on what a helper is called with."""

    def __init__(self, function: Function, rewrite: str):
        self.function, self.rewrite = function, rewrite
        self.assumed: set[Obligation] = set()
        self.by_caller = False

    def holds(self, node: ast.AST, bounds: bool = False) -> bool:
        """Whether `node` cannot be negative; bounds: it is the bound of a loop."""
        fact = self.function.fact(node)
        if isinstance(fact, TensorFact) and (int_type(fact.dtype) is None or fact.dtype == "uint64"):
            return False
        sign = sign_of(self.function, node, bounds=bounds)
        if sign.holds:
            self.assumed |= obligations_of(self.function, node, sign, self.rewrite)
            self.by_caller |= sign.by_caller
        return sign.holds


def obligations_of(function: Function, node: ast.AST, sign: Sign, rewrite: str) -> set[Obligation]:
    """What `rewrite` is obliged to by resting on the sign of `node`."""

    def obligation(kind: str, discharge: str, arguments: tuple[str, ...] = ()) -> Obligation:
        return obligation_at(function, node, kind, rewrite, discharge, arguments)

    found = set()
    if sign.taken:
        found.add(obligation("index", "source"))
    if sign.assumed or not sign.taken:
        found.add(obligation("not-negative", "launch" if sign.assumed else "proven", tuple(sorted(sign.assumed))))
    if sign.exact:
        found.add(obligation("no-overflow", "source"))
    return found


def obligation_at(
    function: Function, node: ast.AST, kind: str, rewrite: str, discharge: str, arguments: tuple[str, ...] = ()
) -> Obligation:
    """An obligation about an expression of the source."""
    fn = function.frame.fn
    line = file_line(fn, node.lineno) if hasattr(node, "lineno") else 0
    return Obligation(line, ast.unparse(node), kind, rewrite, discharge, arguments, fn.file_name or "")


__all__ = ["Sign", "Signs", "obligation_at", "most_of", "obligations_of", "sign_of"]
