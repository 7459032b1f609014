"""Loops of which an iteration does several of the source's: one copy of the body for each slot.

A recurrence whose step is the source's step taken P times, at iterations P j to P j + P - 1, is the source's recurrence after P times as many iterations.
Where these are more than the source has, each further one has to change nothing: loads beyond the end are masked, and what is
multiplied is 0. To add 0 is to add in another order, as it may make 0.0 of -0.0.
"""

from __future__ import annotations

from collections.abc import Sequence

from gluonize.judge.prove.access_proofs import least, times
from gluonize.judge.prove.term import subterms
from gluonize.judge.prove.terms import Term, Terms, is_integer


def rolled(t: Terms, source: Sequence[Term], other: Sequence[Term]) -> tuple[list[Term], bool]:
    """(effects of the other side with its loops as the source has them, whether 0 is added in them)"""
    known = [x for x in subterms(source) if x.op == "fold"]
    memo: dict[Term, Term] = {}
    zeros = False

    def walk(x: Term) -> Term:
        nonlocal zeros
        if x not in memo:
            out = t.rebuilt(x, [walk(y) for y in x.args])
            if out.op == "fold":
                for its in known:
                    if (
                        (its.data, its.element) == (out.data, out.element)
                        and its.args[0] is not out.args[0]
                        and its.args[2:] == out.args[2:]
                    ):
                        if (added := _same(t, its, out)) is not None:
                            out, zeros = its, zeros or added
                            break
            memo[x] = out
        return memo[x]

    return [walk(x) for x in other], zeros


def _same(t: Terms, its: Term, mine: Term) -> bool | None:
    """Whether two recurrences are the same only as adding 0 leaves a number as it is; None where they are not known to be the same."""
    (group, whole), (own, trips) = its.args[:2], mine.args[:2]
    if group.data[1] != own.data[1] or (p := times(t, trips, whole)) is None:
        return None
    functions, count, given = t.open_group(group)
    j = t.fresh("count", "int", 0, own.data[2])
    steps = given[1::2]
    after: list[Term] = list(functions)
    for number in range(p):
        at = t.add(t.scaled(t.integer_of(j), p), t.integer(number))
        by = dict(zip(functions, after)) | {count: at}
        after = [_as_function(t, t.substitute(x, by)) for x in steps]
    after = [x if step.op == "lam" else x.args[0] for x, step in zip(after, steps)]
    if t.group(functions, j, [x for pair in zip(given[::2], after) for x in pair]) is not own:
        return None
    zeros = False
    for number in range(p - 1):
        beyond = t.add(whole, t.integer(number))
        for function, step in zip(functions, steps):
            left = _with_zeros_left_out(t, _settled(t, t.substitute(step, {count: beyond})))
            if not _is_application(t, function, left[0], step):
                return None
            zeros |= left[1]
    return zeros


def _as_function(t: Terms, x: Term) -> Term:
    return x if x.op == "lam" else t.lam(x, [])


def _is_application(t: Terms, function: Term, x: Term, step: Term) -> bool:
    """Whether a term is what is carried in, element by element."""
    extents = step.data[1] if step.op == "lam" else ()
    symbols = [t.fresh("idxf", "int", 0, n - 1) if n > 1 else None for n in extents]
    at = [t.integer_of(s) if s is not None else t.integer(0) for s in symbols]
    carried = t.apply(function, at, function.element)
    return x is (t.lam(carried, symbols) if step.op == "lam" else carried)


def _settled(t: Terms, term: Term) -> Term:
    """A term with comparisons made that bounds of quotients decide."""
    memo: dict[Term, Term] = {}

    def walk(x: Term) -> Term:
        if x not in memo:
            out = None
            if x.op == "lt0":
                if least(t, x.args[0]) >= 0:
                    out = t.false
                elif least(t, t.add(t.integer(-1), x.args[0], -1)) >= 0:
                    out = t.true
            if out is None:
                out = t.rebuilt(x, [walk(y) for y in x.args])
            memo[x] = out
        return memo[x]

    return walk(term)


def _with_zeros_left_out(t: Terms, term: Term) -> tuple[Term, bool]:
    """(a step without products of zeros, whether one was left out that is added to a float)"""
    body = term.args[0] if term.op == "lam" else term
    if body.op == "poly" and (atom := t._atom(body)) is not None:
        body = atom
    if body.op != "dot" or not all(_is_zero(x.args[0]) for x in body.args[:2]):
        return term, False
    added = body.args[2]
    return t.bound_again(term, [added]) if term.op == "lam" else added, not is_integer(body.element)


def _is_zero(x: Term) -> bool:
    return x.constant == 0 or x.op == "float" and x.data == "0.000000e+00"


__all__ = ["rolled"]
