"""What is known of an integer: where it is after wrap-around, and where it is if nothing overflows on its way into an address."""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.facts.integers.ranges import LINEAR, TRANSFER, IntType, Range, converted, exact_mul

FAR = 2**80  # beyond what any integer of a kernel is
ENDLESS = IntType(100)  # in which nothing overflows
_LEAST, _MOST = (-(2**31), -(2**63), -FAR), (2**31 - 1, 2**63 - 1, FAR)


@dataclass(frozen=True)
class Known:
    """range: holds the value, as it is after wrap-around. exact: holds it where no sum, product or difference of signed numbers
    of 32 or more bits overflows on its way into an address (`docs/design/offsets.md`)."""

    range: Range
    exact: Range

    @classmethod
    def of(cls, range: Range) -> Known:
        return cls(range, range)

    def __or__(self, other: Known) -> Known:
        return Known(self.range | other.range, self.exact | other.exact)


UNKNOWN = Known.of(Range(-FAR, FAR))


def is_linear(type: IntType) -> bool:
    """Whether sums and products of the type are taken not to overflow on their way into an address."""
    return type.signed and type.bits >= 32


def cast(a: Known, to: IntType) -> Known:
    """A value in another type. What is widened, or stays, goes on as it was; what is narrowed or unsigned has wrapped."""
    if to.bits == 1 and not a.range.within(to.whole):  # whether it is 0
        return Known.of(to.whole)
    range = converted(to, a.range)
    kept = is_linear(to) and a.range.within(to.whole)
    return Known(range, a.exact if kept else range)


def operated(name: str, type: IntType, a: Known, b: Known) -> Known:
    range = TRANSFER[name](type, a.range, b.range)
    if is_linear(type) and name in LINEAR:
        return Known(range, near(LINEAR[name](a.exact, b.exact)))
    if is_linear(type) and name == "lshift" and b.range.lo >= 0 and b.range.hi < type.bits:
        return Known(range, near(exact_mul(a.exact, Range(1 << b.range.lo, 1 << b.range.hi))))
    return Known.of(range)


def near(a: Range) -> Range:
    """Numbers that grow without end are kept to a size."""
    return Range(max(min(a.lo, FAR), -FAR), max(min(a.hi, FAR), -FAR))


def joined(parts: list[Known | None]) -> Known | None:
    found = None
    for part in parts:
        if part is not None:
            found = part if found is None else found | part
    return found


def widened(before: Known | None, found: Known) -> Known:
    """What still grows is taken to the next end of a type."""
    if before is None:
        return found

    def grown(old: Range, new: Range) -> Range:
        lo = old.lo if new.lo >= old.lo else max(end for end in (0, *_LEAST) if end <= new.lo)
        return Range(lo, old.hi if new.hi <= old.hi else min(end for end in _MOST if end >= new.hi))

    return Known(grown(before.range, found.range), grown(before.exact, found.exact))


__all__ = ["ENDLESS", "FAR", "Known", "UNKNOWN", "cast", "is_linear", "joined", "near", "operated", "widened"]
