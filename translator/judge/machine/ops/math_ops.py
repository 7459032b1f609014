"""Rows of the `math` dialect and of `tt.extern_elementwise` (the device library).

Results are computed in the operand's precision, in f32 for the narrower types; both sides of a comparison use the same
function, so its last bit does not matter.
"""

from __future__ import annotations

import math
import re

import numpy as np

from gluonize.judge.machine.dtypes import held
from gluonize.judge.machine.hazards import NotRunnable
from gluonize.judge.machine.table import as_type, row


def _through_python(function):
    vector = np.vectorize(function, otypes=[np.float64])

    def run(x, *more):
        x = np.asarray(x)
        return vector(x.astype(np.float64), *more).astype(x.dtype) if x.size else x

    return run


def _guarded(function, at_pole=math.inf):
    def run(x):
        try:
            return function(x)
        except (ValueError, OverflowError):
            return at_pole if not math.isnan(x) else math.nan

    return run


def _erfinv(x):
    """Winitzki's start, then Newton steps on math.erf."""
    if abs(x) >= 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    a = 0.147
    log = math.log(1 - x * x) if x else 0.0
    part = 2 / (math.pi * a) + log / 2
    y = math.copysign(math.sqrt(math.sqrt(part * part - log / a) - part), x)
    for _ in range(3):
        y -= (math.erf(y) - x) / (2 / math.sqrt(math.pi) * math.exp(-y * y))
    return y


def round_half_away(x):
    return np.trunc(x) + (np.abs(x - np.trunc(x)) >= 0.5) * np.sign(x)


UNARY = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: (1 / np.sqrt(np.asarray(x, np.float64))).astype(x.dtype),
    "cbrt": np.cbrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": round_half_away,
    "roundeven": np.rint,
    "absf": np.abs,
    "erf": _through_python(math.erf),
    "erfc": _through_python(math.erfc),
}
BINARY = {"powf": np.power, "copysign": np.copysign, "atan2": np.arctan2}


def _unary(name, function):
    @row(f"math.{name}")
    def run(machine, op, x):
        wide = x.astype(np.float32) if x.dtype == np.float16 else x
        return as_type(function(wide), op.type)


for _name, _function in UNARY.items():
    _unary(_name, _function)


def _binary(name, function):
    @row(f"math.{name}")
    def run(machine, op, x, y):
        return as_type(function(x, y), op.type)


for _name, _function in BINARY.items():
    _binary(_name, _function)


@row("math.absi")
def absi(machine, op, x):
    return np.abs(x)


@row("math.fma")
def fma(machine, op, a, b, c):
    """One rounding: f32 and narrower through f64, f64 with two."""
    return as_type(np.asarray(a, np.float64) * b + c, op.type)[()]


@row("math.fpowi", "math.ipowi")
def powi(machine, op, a, b):
    return as_type(np.power(a, b), op.type)


@row("math.ctpop")
def ctpop(machine, op, x):
    bits = np.unpackbits(np.ascontiguousarray(x).reshape(-1, 1).view(np.uint8), axis=1)
    return bits.sum(axis=1).reshape(np.shape(x)).astype(x.dtype)[()]


@row("math.ctlz", "math.cttz")
def count_zeros(machine, op, x):
    width = 8 * x.dtype.itemsize
    whole = np.asarray(x).astype(np.uint64) & np.uint64((1 << width) - 1)
    bits = (whole[..., None] >> np.arange(width, dtype=np.uint64)) & np.uint64(1)
    if op.name == "math.ctlz":
        bits = bits[..., ::-1]
    return np.where(bits.any(-1), bits.argmax(-1), width).astype(x.dtype)[()]


@row("math.isnan")
def isnan(machine, op, x):
    return np.isnan(x)


@row("math.isinf")
def isinf(machine, op, x):
    return np.isinf(x)


@row("math.isfinite")
def isfinite(machine, op, x):
    return np.isfinite(x)


LIBRARY = {
    **UNARY,
    "erfinv": _through_python(_erfinv),
    "lgamma": _through_python(_guarded(math.lgamma)),
    "tgamma": _through_python(_guarded(math.gamma)),
    "fabs": np.abs,
    "rint": np.rint,
    "nearbyint": np.rint,
    "llrint": np.rint,
    "iabs": np.abs,
    "pow": np.power,
    "pown": lambda x, n: np.power(np.asarray(x, np.float64), n),
    "atan2": np.arctan2,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "ldexp": lambda x, n: np.ldexp(x, n),
    "ilogb": lambda x: np.frexp(x)[1] - 1,
    "fma": lambda a, b, c: np.asarray(a, np.float64) * b + c,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "finite": np.isfinite,
    "signbit": np.signbit,
    "fast_expf": np.exp,
    "fast_tanhf": np.tanh,
    "fast_fdividef": np.divide,
    "i0": np.i0,
}


@row("tt.extern_elementwise")
def extern_elementwise(machine, op, *args):
    """A function of the device library, found by its symbol: `__ocml_pow_f32`, `__triton_hip_rint`."""
    symbol = op.attribute("symbol")
    found = re.match(r"__(?:ocml|triton_hip|ockl)_(\w+?)(?:_[fu](?:16|32|64))?$", symbol)
    name = found.group(1) if found else symbol
    if name in ("popcount", "clz"):
        return (ctpop if name == "popcount" else _clz)(machine, op, args[0]).astype(held(op.type.element))
    if name not in LIBRARY:
        raise NotRunnable(f"tt.extern_elementwise {symbol}", "no such function in the machine's device library")
    shape = np.broadcast_shapes(*(np.shape(x) for x in args))  # in the region of a scan all its elements at once
    out = np.asarray(LIBRARY[name](*(np.asarray(x) for x in args)))
    if op.type.kind == "int":
        return out.astype(held(op.type.element)).reshape(shape)[()]
    return as_type(out, op.type).reshape(shape)[()]


def _clz(machine, op, x):
    width = 8 * x.dtype.itemsize
    whole = np.asarray(x).astype(np.uint64) & np.uint64((1 << width) - 1)
    bits = (whole[..., None] >> np.arange(width - 1, -1, -1, dtype=np.uint64)) & np.uint64(1)
    return np.where(bits.any(-1), bits.argmax(-1), width)
