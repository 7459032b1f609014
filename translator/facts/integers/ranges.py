"""Ranges of integers, and what every operation makes of them: with the wrap-around of the type it is done in.

A row of `TRANSFER` takes the type of the result and the ranges of the operands, already converted to that type, and gives a
range that holds every result. Division and remainder round toward zero, as Triton's do; where the divisor is 0, or a shift is
as wide as the type, there is no result to hold. `CONCRETE` says what each operation does with two numbers: the tests compare
the rows with it, for every range and every value of small types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class IntType:
    bits: int
    signed: bool = True

    @property
    def least(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def most(self) -> int:
        return (1 << (self.bits - self.signed)) - 1

    @property
    def whole(self) -> Range:
        return Range(self.least, self.most)

    def wrap(self, value: int) -> int:
        """`value` modulo 2**bits, as this type reads it."""
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if value > self.most else value


@dataclass(frozen=True)
class Range:
    """All integers from `lo` to `hi`, both included."""

    lo: int
    hi: int

    def __post_init__(self):
        assert self.lo <= self.hi, f"bug in gluonize: no integer is in {self.lo}..{self.hi}"

    def __contains__(self, value: int) -> bool:
        return self.lo <= value <= self.hi

    def __or__(self, other: Range) -> Range:
        return Range(min(self.lo, other.lo), max(self.hi, other.hi))

    def within(self, other: Range) -> bool:
        return other.lo <= self.lo and self.hi <= other.hi


def int_type(dtype: str) -> IntType | None:
    """The type that Triton spells `int32`, `uint8`, `int1`; None for what is no integer. `int1` is 0 or 1."""
    if dtype == "int1":
        return IntType(1, signed=False)
    kind, _, bits = dtype.rpartition("int")
    return IntType(int(bits), signed=not kind) if kind in ("", "u") and bits.isdigit() else None


def converted(to: IntType, a: Range) -> Range:
    """What a value becomes in another type, by conversion or bitcast: the same where it fits, else it wraps around."""
    if a.within(to.whole):
        return a
    lo, hi = to.wrap(a.lo), to.wrap(a.hi)
    # Values that wrap around equally often keep their order.
    together = a.hi - a.lo < 1 << to.bits and hi - lo == a.hi - a.lo
    return Range(lo, hi) if together else to.whole


def exact_add(a: Range, b: Range) -> Range:
    return Range(a.lo + b.lo, a.hi + b.hi)


def exact_sub(a: Range, b: Range) -> Range:
    return Range(a.lo - b.hi, a.hi - b.lo)


def exact_mul(a: Range, b: Range) -> Range:
    corners = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    return Range(min(corners), max(corners))


def _add(type: IntType, a: Range, b: Range) -> Range:
    return converted(type, exact_add(a, b))


def _sub(type: IntType, a: Range, b: Range) -> Range:
    return converted(type, exact_sub(a, b))


def _mul(type: IntType, a: Range, b: Range) -> Range:
    return converted(type, exact_mul(a, b))


def _toward_zero(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _divisors(b: Range) -> list[int]:
    """The divisors among whose quotients the least and the greatest are."""
    ends = {b.lo, b.hi} | ({-1} if b.lo <= -1 <= b.hi else set()) | ({1} if b.lo <= 1 <= b.hi else set())
    return sorted(ends - {0})


def _floordiv(type: IntType, a: Range, b: Range) -> Range:
    divisors = _divisors(b)
    if not divisors:
        return type.whole
    corners = [_toward_zero(x, y) for x in (a.lo, a.hi) for y in divisors]
    return converted(type, Range(min(corners), max(corners)))


def _mod(type: IntType, a: Range, b: Range) -> Range:
    """The remainder has the sign of `a`, and is nearer to 0 than `a` or the divisor."""
    if not _divisors(b):
        return type.whole
    most = max(abs(b.lo), abs(b.hi)) - 1
    return Range(max(min(a.lo, 0), -most), min(max(a.hi, 0), most))


def _shifts(type: IntType, b: Range) -> Range | None:
    lo, hi = max(b.lo, 0), min(b.hi, type.bits - 1)
    return Range(lo, hi) if lo <= hi else None


def _lshift(type: IntType, a: Range, b: Range) -> Range:
    by = _shifts(type, b)
    return type.whole if by is None else converted(type, exact_mul(a, Range(1 << by.lo, 1 << by.hi)))


def _rshift(type: IntType, a: Range, b: Range) -> Range:
    by = _shifts(type, b)
    if by is None:
        return type.whole
    corners = [x >> y for x in (a.lo, a.hi) for y in (by.lo, by.hi)]
    return Range(min(corners), max(corners))


def _bits_over(value: int) -> int:
    """The least number of the form 2**n - 1 that is not below `value`."""
    return (1 << value.bit_length()) - 1


def _and(type: IntType, a: Range, b: Range) -> Range:
    if a.lo >= 0 and b.lo >= 0:
        return Range(0, min(a.hi, b.hi))
    if a.lo >= 0 or b.lo >= 0:
        return Range(0, a.hi if a.lo >= 0 else b.hi)
    return Range(type.least, max(a.hi, b.hi, 0))


def _or(type: IntType, a: Range, b: Range) -> Range:
    if a.lo >= 0 and b.lo >= 0:
        return Range(max(a.lo, b.lo), _bits_over(max(a.hi, b.hi)))
    if a.hi < 0 or b.hi < 0:
        return Range(type.least, -1)
    return type.whole


def _xor(type: IntType, a: Range, b: Range) -> Range:
    return Range(0, _bits_over(max(a.hi, b.hi))) if a.lo >= 0 and b.lo >= 0 else type.whole


def _minimum(type: IntType, a: Range, b: Range) -> Range:
    return Range(min(a.lo, b.lo), min(a.hi, b.hi))


def _maximum(type: IntType, a: Range, b: Range) -> Range:
    return Range(max(a.lo, b.lo), max(a.hi, b.hi))


def _cdiv(type: IntType, a: Range, b: Range) -> Range:
    """`(a + (b - 1)) // b`, each step in the type."""
    one = Range(1, 1)
    return _floordiv(type, _add(type, a, _sub(type, b, one)), b)


def absolute(type: IntType, a: Range) -> Range:
    """`abs`: that of the least number is itself."""
    if a.lo >= 0 or not type.signed:
        return a
    most = max(abs(a.lo), abs(a.hi))
    return type.whole if most > type.most else Range(0 if 0 in a else min(abs(a.lo), abs(a.hi)), most)


def summed(type: IntType, a: Range, count: int) -> Range:
    """The sum of `count` values, or of the first of them up to any: a scan starts with one."""
    return converted(type, exact_mul(a, Range(1, count)))


def counted(type: IntType, low: Range, high: Range, step: Range) -> Range | None:
    """The index of a loop from `low` to before `high`, which is stepped toward it; None where the loop has no iteration.

    A loop whose step is 0, or leads away from its end, has no end: it has no values to hold.
    """
    parts = []
    if step.hi > 0 and low.lo < high.hi:
        parts.append(Range(low.lo, high.hi - 1))
    if step.lo < 0 and high.lo < low.hi:
        parts.append(Range(high.lo + 1, low.hi))
    if not parts:
        return None
    whole = parts[0] if len(parts) == 1 else parts[0] | parts[1]
    return Range(max(whole.lo, type.least), min(whole.hi, type.most))


TRANSFER: dict[str, Callable[[IntType, Range, Range], Range]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "floordiv": _floordiv,
    "mod": _mod,
    "lshift": _lshift,
    "rshift": _rshift,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "minimum": _minimum,
    "maximum": _maximum,
    "cdiv": _cdiv,
}
# On exact numbers: a shift is a product.
LINEAR: dict[str, Callable[[Range, Range], Range]] = {"add": exact_add, "sub": exact_sub, "mul": exact_mul}


def _quotient(type: IntType, x: int, y: int) -> int | None:
    return type.wrap(_toward_zero(x, y)) if y else None


def _remainder(type: IntType, x: int, y: int) -> int | None:
    return x - _toward_zero(x, y) * y if y else None


def _ceiling(type: IntType, x: int, y: int) -> int | None:
    return _quotient(type, type.wrap(x + type.wrap(y - 1)), y)


CONCRETE: dict[str, Callable[[IntType, int, int], int | None]] = {
    "add": lambda t, x, y: t.wrap(x + y),
    "sub": lambda t, x, y: t.wrap(x - y),
    "mul": lambda t, x, y: t.wrap(x * y),
    "floordiv": _quotient,
    "mod": _remainder,
    "lshift": lambda t, x, y: t.wrap(x << y) if 0 <= y < t.bits else None,
    "rshift": lambda t, x, y: x >> y if 0 <= y < t.bits else None,
    "and": lambda t, x, y: t.wrap(x & y),
    "or": lambda t, x, y: t.wrap(x | y),
    "xor": lambda t, x, y: t.wrap(x ^ y),
    "minimum": lambda t, x, y: min(x, y),
    "maximum": lambda t, x, y: max(x, y),
    "cdiv": _ceiling,
}


__all__ = [
    "CONCRETE",
    "LINEAR",
    "TRANSFER",
    "IntType",
    "Range",
    "absolute",
    "converted",
    "counted",
    "int_type",
    "summed",
]
