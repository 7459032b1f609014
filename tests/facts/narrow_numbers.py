"""Integers of few bits, with the wrap-around of their types: the numbers of many launches and lanes at once."""

from __future__ import annotations

import ast
import operator
from dataclasses import dataclass

import numpy as np

BITS = {1: 1, 8: 3, 16: 4, 32: 5, 64: 7}  # of the types of Triton -> of the narrow ones
LANES = 4
ROUNDS = 40  # more than an index of the narrow types can take
_FAR = 1 << 40


def kind_of(dtype: str) -> tuple[int, bool]:
    """(narrow bits, whether it is signed)"""
    signed = not dtype.startswith("u") and dtype != "int1"
    return BITS[int(dtype.lstrip("uint"))], signed


def wrapped(value, dtype: str):
    """A number modulo 2**bits as the type reads it."""
    if dtype == "fp32":
        return value  # of whole numbers, as those here are
    bits, signed = kind_of(dtype)
    value = np.asarray(value) & ((1 << bits) - 1)
    return np.where(value >> (bits - 1) == 1, value - (1 << bits), value) if signed else value


def is_wide(dtype: str) -> bool:
    """Whether the type is signed and of 32 or more bits: its sums may be taken not to overflow."""
    return dtype in ("int32", "int64")


@dataclass(frozen=True)
class Number:
    """value: of each launch and lane. fits: where no sum, product or difference of a wide type overflowed since the last operation
    of another kind; whole: where none did at all."""

    dtype: str
    value: np.ndarray
    fits: np.ndarray
    whole: np.ndarray

    @classmethod
    def of(cls, dtype: str, value: np.ndarray) -> Number:
        sure = np.ones(value.shape, bool)
        return cls(dtype, value, sure, sure)

    def each(self, change) -> Number:
        """With all three changed alike: their shapes, their order."""
        return Number(self.dtype, *(change(x) for x in (self.value, self.fits, self.whole)))

    def to(self, dtype: str) -> Number:
        value = (self.value != 0).astype(np.int64) if dtype == "int1" else wrapped(self.value, dtype)
        return Number(dtype, value, self.fits, self.whole)


class Unknown(Exception):
    """The machine does not know what this does."""


def common(a: str, b: str) -> str:
    """The type that Triton converts two operands to."""
    if not a or not b or a == b:
        return a or b
    (x, signed_x), (y, signed_y) = kind_of(a), kind_of(b)
    if signed_x == signed_y:
        return a if x >= y else b
    unsigned, signed = (b, a) if signed_x else (a, b)
    return unsigned if kind_of(unsigned)[0] >= kind_of(signed)[0] else signed


def toward_zero(x, y):
    safe = np.where(y == 0, 1, y)
    return np.abs(x) // np.abs(safe) * np.where((x < 0) == (safe < 0), 1, -1)


_LINEAR = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
_BITS = {ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor}
COMPARED = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne}  # fmt: skip


def aligned(*numbers: Number) -> list[Number]:
    """With as many dimensions each: a scalar has its launches first."""
    rank = max(x.value.ndim for x in numbers)
    return [
        x.each(lambda v: v if v.ndim == rank else v.reshape(v.shape[0], *[1] * (rank - v.ndim), *v.shape[1:]))
        for x in numbers
    ]


def operated(op: type, dtype: str, a: Number, b: Number) -> tuple[Number, np.ndarray]:
    """What an operation makes of two numbers in a type, and where it has no result."""
    a, b = aligned(a.to(dtype), b.to(dtype))
    x, y, whole = a.value, b.value, a.whole & b.whole
    if op in _LINEAR:
        free = _LINEAR[op](x, y)
        value = wrapped(free, dtype)
        here = (value == free) if is_wide(dtype) else np.ones(value.shape, bool)
        fits = a.fits & b.fits if is_wide(dtype) else np.ones(value.shape, bool)
        return Number(dtype, value, fits & here, whole & here), np.zeros(value.shape, bool)
    bits = kind_of(dtype)[0]
    wrong = np.zeros(np.broadcast(x, y).shape, bool)
    if op in _BITS:
        value = wrapped(_BITS[op](x, y), dtype)
    elif op in (ast.FloorDiv, ast.Mod):
        quotient, wrong = toward_zero(x, y), np.broadcast_to(y == 0, wrong.shape)
        value = wrapped(quotient if op is ast.FloorDiv else x - quotient * y, dtype)
    elif op in (ast.LShift, ast.RShift):
        wrong = np.broadcast_to((y < 0) | (y >= bits), wrong.shape)
        by = np.clip(y, 0, bits - 1)
        value = x >> by if op is ast.RShift else wrapped(x << by, dtype)
        if op is ast.LShift and is_wide(dtype):
            here = value == x << by
            return Number(dtype, value, a.fits & b.fits & here, whole & here), wrong
    else:
        raise Unknown(str(op))
    return Number(dtype, value, np.ones(value.shape, bool), np.broadcast_to(whole, value.shape)), wrong


def folded(op: ast.operator, a: int, b: int) -> int:
    """What Triton's front end makes of two compile-time numbers: as Python."""
    table = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor}  # fmt: skip
    return table[type(op)](a, b)


__all__ = [
    "BITS",
    "COMPARED",
    "Number",
    "Unknown",
    "aligned",
    "common",
    "folded",
    "is_wide",
    "kind_of",
    "operated",
    "wrapped",
]
