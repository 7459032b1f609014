"""Rows of the `arith` dialect. Integers are signless and wrap; i1 is boolean."""

from __future__ import annotations

import numpy as np

from gluonize.judge.machine.dtypes import HELD, UNSIGNED, bits_of, held, rounded, toward_zero, unsigned
from gluonize.judge.machine.hazards import Hazard, NotRunnable
from gluonize.judge.machine.table import as_type, row
from gluonize.trace.model.op_text import Constant
from gluonize.trace.model.types import Type


def _is_bool(x) -> bool:
    return x.dtype == np.bool_


@row("arith.constant")
def constant(machine, op):
    """`dense<..>`, a number, or `true`; computed once per op."""
    if "value" not in op.memo:
        op.memo["value"] = value_of(op.constant, op.type)
    return op.memo["value"]


def value_of(constant: Constant, kind: Type):
    """A constant of type `kind`."""
    if kind.kind == "ptr":
        raise NotRunnable("arith.constant", "pointer constant")
    if kind.shape is None:
        return _scalar(constant.only, kind.element)
    if constant.raw:
        raw = np.frombuffer(constant.raw, held(kind.element))
        return raw.reshape(kind.shape) if raw.size > 1 else np.full(kind.shape, raw[0])
    if constant.only:
        value = np.empty(kind.shape, held(kind.element))
        value.fill(_scalar(constant.only, kind.element))
        value.flags.writeable = False
        return value
    items = [_scalar(x, kind.element) for x in constant.elements]
    return np.array(items, held(kind.element)).reshape(kind.shape)


def _scalar(text: str, element: str):
    dtype = held(element)
    if text in ("true", "false"):
        return dtype.type(text == "true")
    if element[0] == "i":
        value = int(text, 0)
        bits = bits_of(element)
        return dtype.type(value - (1 << bits) if bits > 1 and value >= 1 << (bits - 1) else value)
    if text.startswith("0x"):
        bits = int(text, 16)
        if element in ("f16", "f32", "f64"):
            return np.array(bits, f"u{dtype.itemsize}").view(dtype)[()]
        from gluonize.judge.machine.dtypes import decode, stored

        return decode(np.array([bits], stored(element)), element)[0]
    return rounded(np.array(float(text)), element)[()]


def _binary(name, function, for_bool=None):
    @row(name)
    def run(machine, op, a, b):
        if for_bool and _is_bool(a):
            return for_bool(a, b)
        return function(a, b)


_binary("arith.addi", np.add, np.logical_xor)
_binary("arith.subi", np.subtract, np.logical_xor)
_binary("arith.muli", np.multiply, np.logical_and)
_binary("arith.andi", np.bitwise_and)
_binary("arith.ori", np.bitwise_or)
_binary("arith.xori", np.bitwise_xor)
# For i1, true is -1 when signed: the larger of the two is false.
_binary("arith.maxsi", np.maximum, np.logical_and)
_binary("arith.minsi", np.minimum, np.logical_or)


def _as_unsigned(name, function):
    @row(name)
    def run(machine, op, a, b):
        if _is_bool(a):
            return function(a, b)
        return function(unsigned(a), unsigned(b)).view(a.dtype)


_as_unsigned("arith.maxui", np.maximum)
_as_unsigned("arith.minui", np.minimum)


def _divisor(machine, b):
    """`b` without zeros: division by zero is undefined; a scalar one is reported, else and for a lane the result is the dividend's."""
    if np.ndim(b) == 0:
        if b == 0:
            machine.report(Hazard("division-by-zero", "integer division by zero"))
            return b.dtype.type(1)
        return b
    return b if b.all() else np.where(b == 0, b.dtype.type(1), b)


def _truncated(a, b):
    quotient = a // b
    return quotient + ((quotient < 0) & (quotient * b != a)).astype(quotient.dtype)


@row("arith.divsi")
def divsi(machine, op, a, b):
    return _truncated(a, _divisor(machine, b))


@row("arith.remsi")
def remsi(machine, op, a, b):
    return np.fmod(a, _divisor(machine, b))


@row("arith.floordivsi")
def floordivsi(machine, op, a, b):
    return a // _divisor(machine, b)


@row("arith.ceildivsi")
def ceildivsi(machine, op, a, b):
    return -((-a) // _divisor(machine, b))


@row("arith.divui")
def divui(machine, op, a, b):
    return (unsigned(a) // unsigned(_divisor(machine, b))).view(a.dtype)


@row("arith.remui")
def remui(machine, op, a, b):
    return (unsigned(a) % unsigned(_divisor(machine, b))).view(a.dtype)


def _shift(name, function, signed):
    @row(name)
    def run(machine, op, a, b):
        bits = 8 * a.dtype.itemsize
        amount = unsigned(b)
        inside = amount < bits
        amount = np.where(inside, amount, 0).astype(amount.dtype)
        base = a if signed else unsigned(a)
        out = function(base, amount.astype(base.dtype)).astype(base.dtype)
        return np.where(inside, out, 0).astype(base.dtype).view(a.dtype)[()]


_shift("arith.shli", np.left_shift, False)
_shift("arith.shrui", np.right_shift, False)
_shift("arith.shrsi", np.right_shift, True)


COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@row("arith.cmpi")
def cmpi(machine, op, a, b):
    how = op.word
    if how in ("eq", "ne"):
        return COMPARE[how](a, b)
    if how[0] == "u":
        return COMPARE[how[1:]](unsigned(a), unsigned(b))
    if _is_bool(a):
        return COMPARE[how[1:]](-a.astype(np.int8), -b.astype(np.int8))
    return COMPARE[how[1:]](a, b)


@row("arith.cmpf")
def cmpf(machine, op, a, b):
    how = op.word
    if how in ("ord", "uno"):
        nan = np.isnan(a) | np.isnan(b)
        return nan if how == "uno" else ~nan
    if how in ("true", "false"):
        return np.full(np.shape(a), how == "true")[()]
    out = COMPARE[how[1:]](a, b)
    if how[0] == "u":
        return out | np.isnan(a) | np.isnan(b)
    return out & ~(np.isnan(a) | np.isnan(b)) if how == "one" else out


@row("arith.select")
def select(machine, op, condition, a, b):
    if np.ndim(condition) == 0:
        return a if condition else b
    return np.where(condition, a, b)


def _float(name, function):
    @row(name)
    def run(machine, op, a, b):
        return as_type(function(a, b), op.type)


_float("arith.addf", np.add)
_float("arith.subf", np.subtract)
_float("arith.mulf", np.multiply)
_float("arith.divf", np.divide)
_float("arith.remf", np.fmod)
_float("arith.maximumf", np.maximum)
_float("arith.minimumf", np.minimum)
_float("arith.maxnumf", np.fmax)
_float("arith.minnumf", np.fmin)


@row("arith.negf")
def negf(machine, op, a):
    return -a


@row("arith.extsi")
def extsi(machine, op, a):
    wide = a.astype(held(op.type.element))
    return -wide if _is_bool(a) else wide


@row("arith.extui")
def extui(machine, op, a):
    if _is_bool(a):
        return a.astype(held(op.type.element))
    dtype = held(op.type.element)
    return unsigned(a).astype(UNSIGNED[dtype]).view(dtype)


@row("arith.trunci")
def trunci(machine, op, a):
    if op.type.element == "i1":
        return (a & 1) != 0
    return a.astype(held(op.type.element))


@row("arith.index_cast")
def index_cast(machine, op, a):
    return a.astype(held(op.type.element))


@row("arith.index_castui")
def index_castui(machine, op, a):
    return extui(machine, op, a)


@row("arith.sitofp")
def sitofp(machine, op, a):
    return _to_float(-a.astype(np.int8) if _is_bool(a) else a, op.type)


@row("arith.uitofp")
def uitofp(machine, op, a):
    return _to_float(unsigned(a), op.type)


def _to_float(value, kind):
    if kind.element in ("f16", "f32", "f64"):
        return value.astype(HELD[kind.element])
    return rounded(np.asarray(value.astype(np.float32)), kind.element)[()]


@row("arith.fptosi")
def fptosi(machine, op, a):
    return _to_integer(a, held(op.type.element), np.iinfo(_width(op)))


@row("arith.fptoui")
def fptoui(machine, op, a):
    dtype = held(op.type.element)
    if op.type.element == "i1":
        return a != 0
    out = _to_integer(a, UNSIGNED[dtype], np.iinfo(UNSIGNED[dtype]))
    return out.view(dtype)


def _width(op):
    return held(op.type.element) if op.type.element != "i1" else np.int8


def _to_integer(value, dtype, limits):
    """Toward zero; out of range is undefined, here it saturates (NaN becomes 0), as the AMD conversions do."""
    wide = np.trunc(np.asarray(value, np.float64))
    wide = np.nan_to_num(wide, nan=0.0, posinf=np.inf, neginf=-np.inf)
    out = np.clip(wide, float(limits.min), float(limits.max))
    big = out >= float(limits.max)
    out = np.where(big, 0, out).astype(dtype)
    return np.where(big, dtype.type(limits.max) if isinstance(dtype, np.dtype) else limits.max, out).astype(dtype)[()]


@row("arith.extf")
def extf(machine, op, a):
    return a.astype(held(op.type.element), copy=False)


@row("arith.truncf")
def truncf(machine, op, a):
    if op.says("toward_zero"):
        return toward_zero(np.asarray(a), op.type.element)[()]
    return rounded(np.asarray(a), op.type.element)[()]


@row("arith.mulsi_extended", "arith.mului_extended")
def mul_extended(machine, op, a, b):
    bits = 8 * a.dtype.itemsize
    low = a * b
    return low, high_product(a, b, bits, op.name == "arith.mulsi_extended")


def high_product(a, b, bits: int, signed: bool):
    """The upper half of the 2 * `bits` wide product."""
    dtype = a.dtype
    if bits < 64:
        wide = np.int64 if signed else np.uint64
        x, y = (a, b) if signed else (unsigned(a), unsigned(b))
        return ((x.astype(wide) * y.astype(wide)) >> wide(bits)).astype(dtype)
    x, y = unsigned(a), unsigned(b)
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    xl, xh, yl, yh = x & mask, x >> half, y & mask, y >> half
    middle = xh * yl + ((xl * yl) >> half)
    cross = xl * yh + (middle & mask)
    high = (xh * yh + (middle >> half) + (cross >> half)).view(np.int64)
    if signed:
        high = high - np.where(a < 0, b, 0) - np.where(b < 0, a, 0)
    return high


@row("arith.addui_extended")
def addui_extended(machine, op, a, b):
    total = a + b
    return total, unsigned(total) < unsigned(a)
