"""One term: an operation on terms, with what is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

COMMUTES = frozenset("addf mulf maxnumf minnumf maximumf minimumf andi ori xori maxf minf mulhi mulhu addo".split())
INFINITE = 1 << 200
Monomial = tuple["Term", ...]


class Term:
    """`op(data; args)`. element: `i32`, `i1`, `f16`, `ptr`, or a word for what is no value. number: in order of creation.

    free: symbols in it that a substitution may replace. height: of the binders in it. low, high: of an integer atom. op_of: by side,
    the operation that made it first.
    """

    __slots__ = ("op", "data", "args", "element", "number", "free", "height", "low", "high", "poly", "made_by")

    op: str
    data: Any
    args: tuple["Term", ...]
    element: str
    number: int
    free: frozenset["Term"]
    height: int
    low: int
    high: int
    poly: dict[Monomial, int] | None
    made_by: dict[int, Any]

    def __lt__(self, other: "Term") -> bool:
        return self.number < other.number

    def __repr__(self) -> str:
        return f"<{self.op} {self.number}>"

    @property
    def constant(self) -> int | None:
        """The integer that it is, None of anything else."""
        if self.poly is None or len(self.poly) > 1 or (self.poly and () not in self.poly):
            return None
        return self.poly.get((), 0)


class TooMuch(Exception):
    """More terms are made than a proof was allowed."""


def bits(element: str) -> int:
    """The width of an integer type."""
    return int(element[1:])


BOUND = {"lam": ("bidx",), "group": ("bfun", "bcount")}
SYMBOLS = frozenset("idx idxf bidx count bcount fun bfun sym hole".split())


def is_integer(element: str) -> bool:
    """Whether it is an integer type wider than one bit."""
    return element == "int" or element[0] == "i" and element[1:].isdigit() and element != "i1"


def subterms(terms: Iterable[Term]) -> Iterator[Term]:
    """All terms in some, themselves too, each once."""
    todo = list(dict.fromkeys(terms))
    seen = set(todo)
    while todo:
        x = todo.pop()
        yield x
        new = [y for y in dict.fromkeys(x.args) if y not in seen]
        todo += new
        seen.update(new)


def conjuncts(mask: Term) -> list[Term]:
    """The conditions that all hold where a mask does."""
    return list(mask.args) if mask.op == "and" else [] if mask.op == "true" else [mask]
