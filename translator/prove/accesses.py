"""Accesses to memory within 2 GiB: that what is compared modulo 2**32 is the same address.

An access of the source through an argument with `tt.pointer_range = 32` lies less than 2**31 bytes behind it: so the launch promises. The
other side's address is equal to it modulo 2**32 elements. It is the same where it lies in that range too, or where it is computed to the same
64-bit number as an access of the source. Two things help with that. An access in iteration k whose mask says that the source made it in the
first iteration too says that the first address was not negative. And of an offset that is not negative it is the same whether it is widened
with a sign or without.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from translator.prove.compare import Difference
from translator.prove.terms import Term, Terms

if TYPE_CHECKING:
    from translator.prove.machine import Access, Machine

MOST_AHEAD = 4


def misplaced(t: Terms, source: Machine, other: Machine) -> Difference | None:
    """The first access of the other side that may be to another address than it is taken for; None where there is none."""
    for access in other.accesses:
        base, offset = access.pointer.args
        if base.op != "argument" or not base.data[1] or access.mask is t.false or fits(offset, access.size):
            continue
        if not any(same_as(t, source, access, its) for its in source.accesses):
            return Difference("an address may be 2**32 elements away from the source's", None, access.op)
    return None


def fits(offset: Term, size: int) -> bool:
    """Whether an offset in bytes is that of an element with an unsigned number of 32 bits."""
    return offset.low >= 0 and offset.high < size << 32


def same_as(t: Terms, source: Machine, access: Access, its: Access) -> bool:
    """Whether an access is one of the source's, in one of its iterations."""
    if its.pointer.args[0] is not access.pointer.args[0]:
        return False
    for mine, by in iterations(t, access, its):
        offset = t.substitute(access.pointer.args[1], mine)
        wanted = t.substitute(its.pointer.args[1], by)
        if offset is wanted:
            return True
        mask, on = t.substitute(access.mask, mine), t.substitute(its.mask, by)
        if not implies(t, mask, on):
            continue
        near = list(elements(t, source, its, by, on))
        if opened(t, offset, near) is wanted:
            return True
    return False


def iterations(t: Terms, access: Access, its: Access) -> Iterable[tuple[dict[Term, Term], dict[Term, Term]]]:
    """Which iterations of both sides are laid beside each other: (replacements in the access, in the source's)."""
    loops, others = access.loops, its.loops
    if len(others) not in (len(loops), len(loops) + 1) or [x for _, x in loops] != [x for _, x in others[: len(loops)]]:
        return
    by = {theirs: t.integer_of(count) for (theirs, _), (count, _) in zip(others, loops)}
    for ahead in range(MOST_AHEAD + 1):
        if len(others) > len(loops):
            yield {}, by | {others[-1][0]: t.integer(ahead)}
        elif loops:
            yield {loops[-1][0]: t.add(t.integer_of(loops[-1][0]), t.integer(-ahead))}, by
        elif not ahead:
            yield {}, by


def elements(t: Terms, source: Machine, its: Access, by: dict[Term, Term], mask: Term) -> Iterable[Term]:
    """Numbers of elements, from 0 to 2**31, that the source accesses where it makes this access: in the same iteration or the first."""
    for other in source.accesses:
        base = other.pointer.args[0]
        if other.loops[: len(its.loops)] != its.loops or len(other.loops) != len(its.loops) or base.op != "argument" or not base.data[1]:
            continue
        for place in (by, by | ({its.loops[-1][0]: t.integer(0)} if its.loops else {})):
            if implies(t, mask, t.substitute(other.mask, place)):
                offset = t.substitute(other.pointer.args[1], place)
                if all(n % other.size == 0 for n in offset.poly.values()):
                    yield t.poly({m: n // other.size for m, n in offset.poly.items()})


def opened(t: Terms, offset: Term, near: Sequence[Term]) -> Term:
    """An offset whose numbers of 32 bits are what they are made of, where that is known to fit."""
    known = {t.reduced(number, 32): number for number in near}
    total = t.integer(0)
    for monomial, n in offset.poly.items():
        product = t.integer(n)
        for x in monomial:
            again = t.integer_of(x)
            if x.op in ("uwrap", "wrap") and x.data == 32:
                inner = x.args[0]
                # Equal modulo 2**32 to a number that fits; or not negative, and no greater than one that fits.
                if inner in known:
                    again = known[inner]
                elif inner.low >= 0 and any(t.add(number, inner, -1).low >= 0 for number in near):
                    again = inner
            product = t.multiply(product, again)
        total = t.add(total, product)
    return t.reduced(total, 64)


def implies(t: Terms, mask: Term, wanted: Term) -> bool:
    """Whether a mask says that another one holds."""
    return t.implied(list(mask.args) if mask.op == "and" else [mask], wanted)
