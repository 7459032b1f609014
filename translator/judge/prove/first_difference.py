"""The effects of two kernels beside each other: equal ones are one object, of others the first pair of operations that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gluonize.judge.prove.terms.elements import COMMUTES, Term
from gluonize.trace.model.op import Op


@dataclass(frozen=True)
class Difference:
    """What could not be equated: why, and the operations of both sides that it shows at, None where a side has none. pairs: the
    terms of both that differ, each pair within the one before it."""

    why: str
    first: Op | None
    second: Op | None
    pairs: tuple[tuple[Term, Term], ...] = ()


def difference(source: Sequence[Term], other: Sequence[Term]) -> Difference | None:
    """The first pair of effects that are not the same; None where all are."""
    for a, b in zip(source, other):
        if a is not b:
            return _within(a, b)
    if len(source) != len(other):
        more = (source if len(source) > len(other) else other)[min(len(source), len(other))]
        said = "the source stores something more" if len(source) > len(other) else "a store more than the source has"
        return Difference(said, more.made_by.get(0), more.made_by.get(1))
    return None


def _within(a: Term, b: Term) -> Difference:
    """The innermost pair of terms that differ, where all that is around them is the same."""
    last, every = (a, b), [(a, b)]
    while True:
        made = _op_of(a, 0), _op_of(b, 1)
        if made[0] is not None and made[1] is not None:
            last = (a, b)
        if a.op != b.op or a.data != b.data or len(a.args) != len(b.args):
            break
        pairs = [(x, y) for x, y in zip(a.args, b.args) if x is not y]
        if a.op in ("and", "or", "poly") or a.op in COMMUTES:
            left, right = set(a.args) - set(b.args), set(b.args) - set(a.args)
            pairs = list(zip(sorted(left), sorted(right)))
        if not pairs:
            break
        a, b = pairs[0]
        every.append((a, b))
    x, y = last
    return Difference(f"{said(a)} and {said(b)} are not known to be the same", _op_of(x, 0), _op_of(y, 1), tuple(every))


def _op_of(term: Term, side: int) -> Op | None:
    return term.made_by.get(side)


WORDS = {
    "poly": "a number", "lt0": "a comparison", "eq0": "a comparison", "and": "a mask", "or": "a mask", "mem": "what is loaded",
    "sel": "a choice", "ptr": "an address", "store": "a store", "loop": "a loop", "branch": "a branch", "fold": "what a loop computes",
    "group": "what a loop carries", "lam": "a tensor", "dot": "a product", "reduce": "a reduction", "version": "the stores before a load",
    "true": "a mask that is always true", "wrap": "a number that may overflow", "uwrap": "an unsigned number", "rem": "a remainder",
    "div": "a quotient", "min": "a minimum", "max": "a maximum", "scan": "a scan", "float": "a constant", "app": "what is carried",
}  # fmt: skip


def said(term: Term) -> str:
    """A term in a few words."""
    if term.constant is not None:
        return str(term.constant)
    return WORDS.get(term.op, f"`{term.op}`")
