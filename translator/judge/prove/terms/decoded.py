"""Numbers of 8 bits that are decoded by hand: what is computed from the bits of one is looked at for all 256 of them.

A term of fp16 whose only leaf is the byte of an 8-bit float is that float widened if it is so for every byte. Sums and products round as fp16
does: in double precision they are exact, so that they are rounded once.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping

from gluonize.judge.prove.terms.elements import Term
from gluonize.judge.prove.terms.small_values import OPERATIONS

MOST_NODES = 100
# (bits of the exponent, its bias, which codes are no numbers) by type.
FORMATS = {
    "f8E4M3FN": (4, 7, "last"),
    "f8E5M2": (5, 15, "ieee"),
    "f8E4M3FNUZ": (4, 8, "minus zero"),
    "f8E5M2FNUZ": (5, 16, "minus zero"),
}
# Of signed numbers of a width.
INTEGERS: dict[str, Callable[[int, int, int], int]] = {
    "andi": lambda a, b, width: a & b,
    "ori": lambda a, b, width: a | b,
    "xori": lambda a, b, width: a ^ b,
    "shrsi": lambda a, b, width: a >> _within(b, width),
    "shrui": lambda a, b, width: _signed(a % (1 << width) >> _within(b, width), width),
    "shli": lambda a, b, width: _signed(a << _within(b, width), width),
}
FLOATS: dict[str, Callable[[float, float], float]] = {
    "mulf": lambda a, b: a * b,
    "addf": lambda a, b: a + b,
    "subf": lambda a, b: a - b,
}


class _Unknown(Exception):
    """It is computed from something else."""


def decoded(term: Term) -> Term | None:
    """The 8-bit float that a term of fp16 is, for all of its codes; None of any other term."""
    if term.element != "f16":
        return None
    try:
        leaves = set(_leaves(term))
    except _Unknown:
        return None
    if len(leaves) != 1:
        return None
    (leaf,) = leaves
    kind = leaf.args[0].element
    if kind not in FORMATS:
        return None
    try:
        for code in range(256):
            signed = code - 256 if code > 127 else code
            if not _same(_value(term, {leaf: signed}), number(kind, code)):
                return None
    except (_Unknown, ZeroDivisionError):
        return None
    return leaf.args[0]


def number(kind: str, code: int) -> float:
    """The number that a code of 8 bits stands for."""
    exponent_bits, bias, special = FORMATS[kind]
    mantissa_bits = 7 - exponent_bits
    sign = -1.0 if code & 128 else 1.0
    exponent, mantissa = (code & 127) >> mantissa_bits, code & (1 << mantissa_bits) - 1
    if special == "last" and code & 127 == 127 or special == "minus zero" and code == 128:
        return math.nan
    if special == "ieee" and exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * math.ldexp(mantissa, 1 - bias - mantissa_bits)
    return sign * math.ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits)


def _same(a: float, b: float) -> bool:
    return math.isnan(a) and math.isnan(b) or a == b and math.copysign(1.0, a) == math.copysign(1.0, b)


def _leaves(term: Term) -> Iterator[Term]:
    """The bytes that a term is computed from. Raises: _Unknown where it is computed from anything else."""
    seen, todo = {term}, [term]
    while todo:
        x = todo.pop()
        if x.op == "bitcast" and x.element == "i8":
            yield x
            continue
        known = x.poly is not None or x.op in OPERATIONS or x.op in INTEGERS or x.op in FLOATS
        if not known and x.op not in ("wrap", "uwrap", "bitcast", "float") or len(seen) > MOST_NODES:
            raise _Unknown
        for y in x.args:
            if y not in seen:
                seen.add(y)
                todo.append(y)


def _value(term: Term, leaves: Mapping[Term, int]) -> float:
    """A term where its leaves have values. Raises: _Unknown."""
    memo: dict[Term, float | int] = dict(leaves)

    def walk(t: Term) -> float | int:
        if t not in memo:
            memo[t] = made(t)
        return memo[t]

    def made(t: Term) -> float | int:
        if t.poly is not None:
            total = 0
            for monomial, n in t.poly.items():
                for x in monomial:
                    n *= walk(x)
                total += n
            return total
        if t.op in ("wrap", "uwrap"):
            number = walk(t.args[0])
            return _signed(number, t.data) if t.op == "wrap" else number % (1 << t.data)
        if t.op == "float" and t.element == "f16":
            return constant(t.data)
        if t.op == "bitcast" and t.element == "f16" and t.data[3] == ("i16",):
            return struct.unpack("<e", struct.pack("<H", walk(t.args[0]) % (1 << 16)))[0]
        if t.op in FLOATS and t.element == "f16":
            return half(FLOATS[t.op](*map(walk, t.args)))
        if t.op in INTEGERS:
            return INTEGERS[t.op](*map(walk, t.args), t.data)
        if t.op in OPERATIONS and t.element in ("int", "i1"):
            return OPERATIONS[t.op](*map(walk, t.args))
        raise _Unknown

    return walk(term)


def _signed(number: int, width: int) -> int:
    low = number % (1 << width)
    return low - (1 << width) if low >> (width - 1) else low


def _within(by: int, width: int) -> int:
    """A number of places that a shift defines. Raises: _Unknown of another one."""
    if not 0 <= by < width:
        raise _Unknown
    return by


def half(x: float) -> float:
    """The nearest number of fp16."""
    try:
        return struct.unpack("<e", struct.pack("<e", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def constant(text: str) -> float:
    """A constant of fp16 as a module prints it. Raises: _Unknown."""
    try:
        if text.startswith("0x"):
            return struct.unpack("<e", struct.pack("<H", int(text, 16)))[0]
        return half(float(text))
    except (ValueError, struct.error):
        raise _Unknown from None
