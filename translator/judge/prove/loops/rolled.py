"""Loops of which an iteration does several of the source's, one copy of the body for each slot, and iterations that are done behind a loop.

A recurrence whose step is the source's step taken P times, at iterations P j to P j + P - 1, is the source's recurrence after P times as many iterations.
The step of a recurrence, taken at n of what it is after n iterations, is that recurrence after n + 1.
Where these are more than the source has, each further one has to change nothing: loads beyond the end are masked, and what is
multiplied is 0. To add 0 is to add in another order, as it may make 0.0 of -0.0.
"""

from __future__ import annotations

from collections.abc import Sequence

from gluonize.judge.prove.access_proofs import least, times
from gluonize.judge.prove.loops.solving import appearing
from gluonize.judge.prove.terms.elements import Term, Terms, is_integer
from gluonize.judge.prove.terms.term import BOUND, subterms

MOST_BEHIND = 8  # iterations behind a loop


def carried_on(t: Terms, effects: Sequence[Term]) -> list[Term]:
    """Effects with iterations that are done behind a loop as iterations of its recurrence."""
    memo: dict[Term, Term] = {}
    longer: dict[Term, Term] = {}  # of a recurrence with one more step, written out: that recurrence

    def walk(x: Term) -> Term:
        if x not in memo:
            out = t.rebuilt(x, [walk(y) for y in x.args])
            memo[x] = longer.get(out, out)
            if out in longer:
                add_step(longer[out])
        return memo[x]

    def add_step(x: Term) -> None:
        group, number = x.args[:2]
        functions, count, given = t.open_group(group)
        before = {f: _after(t, functions, count, given, f, number) for f in functions}
        step = t.substitute(given[1], before | {count: number})
        made = t.apply(step, x.args[2:], x.element) if step.op == "lam" else step
        made = t.rebuilt(made, [walk(y) for y in made.args])
        further = t.fresh("count", "int", 0, group.data[2] + 1)
        group = t.group(functions, further, [t.substitute(y, {count: t.integer_of(further)}) for y in given])
        longer[made] = t.node("fold", x.data, (group, t.add(number, t.integer(1)), *x.args[2:]), x.element)

    bound = {name for names in BOUND.values() for name in names}
    folds = [x for x in subterms(effects) if x.op == "fold" and not is_integer(x.element)]
    for x in sorted(folds, key=lambda x: (x.args[0].data[1], x.number)):
        if not any(y.op in bound for y in x.free):
            add_step(x)
    return [walk(x) for x in effects]


def _after(t: Terms, functions: list[Term], count: Term, given: list[Term], root: Term, number: Term) -> Term:
    """One of the functions that a loop carries, after so many iterations: a recurrence of what it needs."""
    steps = dict(zip(functions, given[1::2]))
    order = [root]
    for x in order:
        order += [y for y in appearing(steps[x]) if y in steps and y not in order]
    group = t.group(order, count, [given[2 * functions.index(x) + i] for x in order for i in (0, 1)])
    extents = steps[root].data[1] if steps[root].op == "lam" else ()
    symbols = [t.fresh("idxf", "int", 0, n - 1) if n > 1 else None for n in extents]
    at = [t.integer_of(s) if s is not None else t.integer(0) for s in symbols]
    made = t.node("fold", extents, (group, number, *at), root.element)
    return t.lam(t.integer_of(made) if is_integer(root.element) else made, symbols)


def rolled(t: Terms, source: Sequence[Term], other: Sequence[Term]) -> tuple[list[list[Term]], bool]:
    """(effects of both sides, with the loops of the other one as the source has them; whether 0 is added in them). What is around all that a
    side does is left as it is."""
    around = source[0] if len(source) == len(other) == 1 and source[0].data == other[0].data else None
    if around is not None and around.op == other[0].op and around.args[0] is other[0].args[0]:
        if around.op == "branch":
            halves = [[x[0].args[1 : 1 + x[0].data], x[0].args[1 + x[0].data :]] for x in (source, other)]
            (first, added), (second, more) = (rolled(t, *x) for x in zip(*halves))
            ends = [t.node("branch", len(x), (around.args[0], *x, *y), "effect") for x, y in zip(first, second)]
            return [[x] for x in ends], added or more
        if around.op == "loop" and around.args[1].data[1:] == other[0].args[1].data[1:]:
            (trips, mine), its = around.args, other[0].args[1]
            _, count, inner = t.open_group(mine)
            _, second, others = t.open_group(its)
            others = [t.substitute(x, {second: t.integer_of(count)}) for x in others]
            sides, zeros = rolled(t, inner, others)
            ends = [t.node("loop", len(x), (trips, t.group([], count, x)), "effect") for x in sides]
            return [[x] for x in ends], zeros
    source, other = carried_on(t, source), carried_on(t, other)
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
                        and its is not out
                        and its.args[2:] == out.args[2:]
                    ):
                        if (added := _same(t, its, out)) is not None:
                            out, zeros = its, zeros or added
                            break
            memo[x] = out
        return memo[x]

    return [source, [walk(x) for x in other]], zeros


def _same(t: Terms, its: Term, mine: Term) -> bool | None:
    """Whether two recurrences are the same only as adding 0 leaves a number as it is; None where they are not known to be the same."""
    (group, whole), (own, trips) = its.args[:2], mine.args[:2]
    if group.data[1] != own.data[1]:
        return None
    p = times(t, trips, whole) or 1
    more = p - 1 if p > 1 else _more(t, trips, whole)
    if more is None:
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
    for number in range(more):
        beyond = t.add(whole, t.integer(number))
        for function, step in zip(functions, steps):
            left = _with_zeros_left_out(t, _settled(t, t.substitute(step, {count: beyond})))
            if not _is_application(t, function, left[0], step):
                return None
            zeros |= left[1]
    return zeros


def _more(t: Terms, trips: Term, whole: Term) -> int | None:
    """By how much a number of iterations is at most greater than another one, which it is not less than; None where it may be less."""
    most = (n for n in range(MOST_BEHIND + 1) if least(t, t.add(t.add(whole, trips, -1), t.integer(n))) >= 0)
    return next(most, None) if least(t, t.add(trips, whole, -1)) >= 0 else None


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
