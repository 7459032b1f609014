"""Accesses to memory within 2 GiB: that what is compared modulo 2**32 is the same address.

An access of the source through an argument with `tt.pointer_range = 32` lies less than 2**31 bytes behind it: so the launch promises. The
other side's address is equal to it modulo 2**32 elements. It is the same where it lies in that range too, or where it is computed to the same
64-bit number as an access of the source. An access in iteration k whose mask says that the source made it in the first iteration too says where
the first address was.

And no access may be one that the source does not make: it may leave its tensor. So each is one of the source's in some iteration, with a mask
that says no more; where that iteration may be past the source's last one, the mask has to be false there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations

from gluonize.judge.prove.first_difference import Difference
from gluonize.judge.prove.promises import DIVISOR, HINT, REACH, follows
from gluonize.judge.prove.proof_values import Access
from gluonize.judge.prove.symbolic_program import Machine
from gluonize.judge.prove.terms.elements import Term, Terms
from gluonize.judge.prove.terms.term import conjuncts

MOST_AHEAD, MOST_INDICES = 4, 3
BUFFER_BYTES = 2**31 - 2  # as the compiler has them in a buffer's descriptor (code of Triton 3.9)
MOST_TIMES = 8  # iterations in one
Late = tuple[Term, Term]
# What is known, under which conditions, and in which loops: their iterations and how many there are, outermost first.
Fact = tuple[Term, frozenset[Term], tuple[tuple[Term, Term], ...]]


def misplaced(
    t: Terms, source: Machine, other: Machine, assumed: dict[str, None], facts: Sequence[Fact] = ()
) -> Difference | None:
    """The first access of the other side that the source does not make, or that may be to another address; None where there is none.

    assumed: gets what has to hold of the launch beside the contract: a tile of a descriptor lies in the storage that it is a part of.
    facts: conditions that hold in the kernel.
    """
    seen: set[tuple] = set()
    for access in other.accesses:
        key = (access.pointer, access.mask, access.loops, access.kind)
        if access.mask is t.false or key in seen:
            continue
        seen.add(key)
        if access.kind == "assume":
            return Difference("what the kernel assumes is not known to hold", None, access.op)
        known = [(x, needs, ()) for x, needs, loops in facts if loops == access.loops[: len(loops)]]
        if access.kind == REACH:
            if not within_buffer(t, access):
                return Difference("an offset may be more than a buffer reaches", None, access.op)
            continue
        if access.kind.startswith((HINT, DIVISOR)):
            said = (its for its in source.accesses if its.kind == access.kind)
            if not follows(t, access) and not any(covers(t, access, its, known) for its in said):
                why = "what the kernel promises of a number is not known to hold"
                why = "the kernel may divide by 0 where the source does not" if access.kind == DIVISOR else why
                return Difference(why, None, access.op)
            continue
        base, offset = access.pointer.args
        near = base.op == "argument" and base.data[1]
        here = (
            not near
            or fits(offset, access.size)
            or any(same_as(t, source, access, its, known) for its in source.accesses)
        )
        if not here and access.kind == "copy":
            assumed[f"the tensor described by {base.data[0]} lies within its storage"] = None
        elif not here:
            return Difference("an address may be 2**32 elements away from the source's", None, access.op)
        if not any(covers(t, access, its, known) for its in source.accesses):
            its = next((x for x in source.accesses if x.pointer.args[0] is base), None)
            return Difference("memory may be accessed that the source does not access", its and its.op, access.op)
    return None


def covers(t: Terms, access: Access, its: Access, facts: Sequence[Term]) -> bool:
    """Whether the source makes an access wherever the other side does."""
    if its.pointer.args[0] is not access.pointer.args[0] or its.size != access.size:
        return False
    for by, late in iterations(t, access, its):
        mask, on = access.mask, t.substitute(its.mask, by)
        conditions = [*(own := conjuncts(mask)), *holding(t, facts, own)]
        if not t.implied(conditions, t.assuming(on, conditions)):
            continue
        place, wanted = (t.assuming(x, conditions) for x in (access.pointer, t.substitute(its.pointer, by)))
        if t.address(place, access.size) is t.address(wanted, its.size) and (late is None or ends(t, mask, late)):
            return True
    return False


def ends(t: Terms, mask: Term, late: Late) -> bool:
    """Whether an access is not made for iterations of the source that it does not have. late: which iteration of the source it is laid beside,
    and how many the source has."""
    iteration, trips = late
    left = t.add(trips, iteration, -1)
    if left.low > 0:
        return True
    # The conditions of this iteration do not hold where there are no more iterations than it.
    conditions = conjuncts(mask)
    if at_least(t, conditions, t.add(left, t.integer(-1))):
        return True
    return any(c.op == "lt0" and _not_negative(t, c.args[0], left) for c in conditions)


def holding(t: Terms, facts: Sequence[Fact], conditions: Sequence[Term]) -> list[Term]:
    """The facts that are known where conditions hold."""
    return [x for x, needs, loops in facts if not loops and all(t.implied(conditions, x) for x in needs)]


def at_least(t: Terms, conditions: Sequence[Term], number: Term, depth: int = 6) -> bool:
    """Whether a number is not negative where conditions hold."""
    if number.low >= 0 or t.implied(conditions, t.no(t.negative(number))):
        return True
    for monomial, n in number.poly.items() if depth else ():
        if len(monomial) != 1:
            continue
        (x,) = monomial
        rest = t.poly({m: f for m, f in number.poly.items() if m != monomial})
        if x.op in ("max", "min"):
            ways = (at_least(t, conditions, t.add(rest, y, n), depth - 1) for y in x.args)
            if any(ways) if (x.op == "max") == (n > 0) else all(ways):
                return True
        if x.op == "div" and rest.constant is not None and n == 1 and (c := x.args[1].constant) and c > 0:
            # a / c >= m where a >= c * m, for m not negative
            if rest.constant <= 0 and at_least(
                t, conditions, t.add(x.args[0], t.integer(c * rest.constant)), depth - 1
            ):
                return True
    return False


def _not_negative(t: Terms, number: Term, rest: Term) -> bool:
    """Whether a number is not negative where `rest` is not positive: it is at least itself and n * rest."""
    steps = {1, *map(abs, number.poly.values()), *divisors(rest)}
    return any(least(t, t.add(number, rest, n)) >= 0 for n in steps)


def divisors(number: Term) -> set[int]:
    """What its quotients are divided by."""
    found, todo = set(), list(number.args)
    while todo:
        x = todo.pop()
        if x.op == "div" and x.args[1].constant:
            found.add(abs(x.args[1].constant))
        if x.op in ("max", "min", "poly"):
            todo += x.args
    return found


def least(t: Terms, number: Term, depth: int = 6) -> int:
    """A bound of a polynomial from below, with what quotients and maxima say of what they are made from."""
    best = number.low
    if depth == 0 or best >= 0:
        return best
    for monomial, n in number.poly.items():
        if len(monomial) != 1:
            continue
        (x,) = monomial
        rest = t.poly({m: f for m, f in number.poly.items() if m != monomial})
        if x.op == "max" and n > 0 or x.op == "min" and n < 0:
            best = max(best, *(least(t, t.add(rest, y, n), depth - 1) for y in x.args))
        elif x.op in ("max", "min"):
            best = max(best, min(least(t, t.add(rest, y, n), depth - 1) for y in x.args))
        if x.op == "div" and (c := x.args[1].constant) is not None and c > 0:
            whole = x.args[0]
            if n > 0 and n % c == 0:  # c * (a / c) >= a - (c - 1)
                best = max(best, least(t, t.add(rest, t.add(whole, t.integer(1 - c)), n // c), depth - 1))
            if n < 0 and n % c == 0 and whole.low >= 0:  # c * (a / c) <= a
                best = max(best, least(t, t.add(rest, whole, n // c), depth - 1))
    return best


def within_buffer(t: Terms, access: Access) -> bool:
    """Whether an access lies within the bytes that a buffer operation reaches: behind them loads give 0, and stores do nothing.

    Two intervals hold: that of the atoms where the mask does, and that in which the contract has the number of the element.
    """
    offset, size = access.pointer.args[1], access.size
    low, high = t.within(offset.poly, t.where(conjuncts(access.mask)))
    if all(factor % size == 0 for factor in offset.poly.values()):
        element = t.poly({monomial: factor // size for monomial, factor in offset.poly.items()})
        low, high = max(low, element.low * size), min(high, element.high * size)
    return low >= 0 and high + size <= BUFFER_BYTES


def fits(offset: Term, size: int) -> bool:
    """Whether an offset in bytes is that of an element with an unsigned number of 32 bits."""
    return offset.low >= 0 and offset.high < size << 32


def same_as(t: Terms, source: Machine, access: Access, its: Access, facts: Sequence[Fact] = ()) -> bool:
    """Whether an access is one of the source's, in one of its iterations; facts: as of `misplaced`."""
    if its.pointer.args[0] is not access.pointer.args[0]:
        return False
    offset = access.pointer.args[1]
    for by, _ in iterations(t, access, its):
        wanted = t.substitute(its.pointer.args[1], by)
        if offset is wanted:
            return True
        mask, on = access.mask, t.substitute(its.mask, by)
        conditions = [*(own := conjuncts(mask)), *holding(t, facts, own)]
        if not t.implied(conditions, t.assuming(on, conditions)):
            continue
        if t.assuming(offset, conditions) is t.assuming(wanted, conditions):
            return True
        near = list(elements(t, source, its, by, on))
        if opened(t, offset, near, t.where(own)) is wanted:
            return True
    return False


def iterations(t: Terms, access: Access, its: Access) -> Iterable[tuple[dict[Term, Term], Late | None]]:
    """Which iterations of both sides are laid beside each other: (replacements in the source's access, and where its iteration may be past its
    last one: that iteration and the number of them)."""
    loops, others = access.loops, its.loops
    if len(others) not in (len(loops), len(loops) + 1):
        return
    for by in renamings(t, access, its):
        yield from _iterations(t, access, its, by)


def renamings(t: Terms, access: Access, its: Access) -> Iterable[dict[Term, Term]]:
    """Which index of a tile of the source is which of the other side's: tiles may be transposed."""
    mine, theirs = (sorted(x for x in a.pointer.free | a.mask.free if x.op == "idx") for a in (access, its))
    if mine == theirs:
        yield {}
    if len(mine) == len(theirs) <= MOST_INDICES:
        for order in permutations(mine):
            if list(order) != theirs and all(x.data[1] == y.data[1] for x, y in zip(order, theirs)):
                yield {y: t.integer_of(x) for x, y in zip(order, theirs)}


def _iterations(
    t: Terms, access: Access, its: Access, renamed: dict[Term, Term]
) -> Iterable[tuple[dict[Term, Term], Late | None]]:
    loops, others, by = access.loops, its.loops, dict(renamed)
    several, sure = 1, 0  # sure: of how many iterations ahead it is known that the source has them
    for (theirs, number), (count, mine) in zip(others, loops):
        number = t.substitute(number, by)
        if number is not mine and t.assuming(number, conjuncts(access.mask)) is not mine:
            if (theirs, count) != (others[-1][0], loops[-1][0]):
                return
            several = times(t, mine, number) or 1
            sure = least(t, t.add(number, mine, -1))
        by[theirs] = t.integer_of(count)
    if several > 1:  # iteration j of the other side does the source's from several * j on
        (count, _), (theirs, number) = loops[-1], others[-1]
        trips = t.substitute(number, by)
        for ahead in range(several + MOST_AHEAD):
            iteration = t.add(t.scaled(t.integer_of(count), several), t.integer(ahead))
            yield by | {theirs: iteration}, (iteration, trips) if ahead else None
        return
    for ahead in range(MOST_AHEAD + 1):
        if len(others) > len(loops):
            number = t.integer(ahead) if ahead < MOST_AHEAD else _iteration(t, access, its, by)
            if number is not None and number.low >= 0:
                yield by | {others[-1][0]: number}, (number, t.substitute(others[-1][1], by))
        elif loops:
            # The other side's iteration k makes the access of the source's iteration k + ahead.
            (count, _), (theirs, trips) = loops[-1], others[-1]
            iteration, trips = t.add(t.integer_of(count), t.integer(ahead)), t.substitute(trips, by)
            yield by | {theirs: iteration}, (iteration, trips) if ahead > sure else None
        elif not ahead:
            yield by, None


def _iteration(t: Terms, access: Access, its: Access, by: dict[Term, Term]) -> Term | None:
    """The iteration in which the source's address, which moves by the same in each, is that of an access; None where there is none."""
    count = its.loops[-1][0]
    places = [t.substitute(its.pointer, by | {count: t.integer(n)}) for n in (0, 1)]
    first, second, mine = (t.address(x, its.size).args[1] for x in (*places, access.pointer))
    step, way = (t.add(x, first, -1).poly for x in (second, mine))
    if len(step) != 1:
        return None
    ((factor, size),) = step.items()
    out: dict = {}
    for monomial, n in way.items():
        rest = list(monomial)
        for x in factor:
            if x not in rest:
                return None
            rest.remove(x)
        if n % size:
            return None
        out[tuple(rest)] = n // size
    return t.poly(out)


def times(t: Terms, trips: Term, whole: Term) -> int | None:
    """P where a loop of `trips` iterations has one for each P of `whole` iterations, and one for what is left; None where there is no such
    number."""
    inner = whole
    if (only := t._atom(whole)) is not None and only.op == "max" and any(x.constant == 0 for x in only.args):
        inner = next((x for x in only.args if x.constant != 0), whole)
    quotient = next((m[0] for m, n in inner.poly.items() if n == 1 and len(m) == 1 and m[0].op == "div"), None)
    for p in range(2, MOST_TIMES + 1):
        more = t.add(inner, t.integer(p - 1))
        found = [t.div(more, t.integer(p))]
        if quotient is not None and (c := quotient.args[1].constant) is not None and c > 0:
            # Of quotients that are rounded down, a quotient of one by p is one by c * p; those toward 0 are as great where they matter.
            rest = t.add(more, t.integer_of(quotient), -1)
            dividend = t.add(quotient.args[0], rest, c)
            down = min(dividend.low, quotient.args[0].low) >= 0 or rest.constant == p - 1
            if down and rest.constant is not None:
                found.append(t.div(dividend, t.integer(c * p)))
        if any(t.larger(x, t.integer(0)) is t.larger(trips, t.integer(0)) for x in found):
            return p
    return None


def elements(t: Terms, source: Machine, its: Access, by: dict[Term, Term], mask: Term) -> Iterable[Term]:
    """Numbers of elements, from 0 to 2**31, that the source accesses where it makes this access: in the same iteration or the first."""
    for other in source.accesses:
        base = other.pointer.args[0]
        if other.loops != its.loops or base.op != "argument" or not base.data[1]:
            continue
        for place in (by, by | ({its.loops[-1][0]: t.integer(0)} if its.loops else {})):
            if t.implied(conjuncts(mask), t.substitute(other.mask, place)):
                offset = t.substitute(other.pointer.args[1], place)
                if all(n % other.size == 0 for n in offset.poly.values()):
                    yield t.poly({m: n // other.size for m, n in offset.poly.items()})


def opened(t: Terms, offset: Term, near: Sequence[Term], known: Mapping[Term, tuple[int, int]]) -> Term:
    """An offset whose numbers of 32 bits are what they are made of, where that is known to fit. known: intervals of atoms."""
    whole: dict[Term, Term] = {}
    for number in near:
        narrow = t.reduced(number, 32)
        part = t._apart(narrow, 32)
        whole[narrow] = number
        if part is not None:
            whole[part[0]] = t.add(number, part[1], -1)
    total = t.integer(0)
    for monomial, n in offset.poly.items():
        product = t.integer(n)
        for x in monomial:
            again = t.integer_of(x)
            if x.op in ("uwrap", "wrap") and x.data == 32:
                inner = x.args[0]
                # Equal modulo 2**32 to a number that fits; or not negative, and no greater than one that fits: of an unsigned number 2**31
                # greater at most.
                most = 1 << 31 if x.op == "uwrap" else 0
                if inner in whole:
                    again = whole[inner]
                elif t.within(inner.poly, known)[0] >= 0 and any(
                    t.within(t.add(number, inner, -1).poly, known)[0] >= -most for number in near
                ):
                    again = inner
            product = t.multiply(product, again)
        total = t.add(total, product)
    return t.reduced(total, 64)
