"""Scalar types: how they are held in numpy, stored in memory and rounded.

| IR type | held as | in memory |
|---|---|---|
| i1 | bool | 1 byte |
| i8 ... i64 | int8 ... int64 (signedness is the op's) | same |
| f16, f32, f64 | float16, float32, float64 | same |
| bf16, f8* | float32 whose values the type can represent | uint16, uint8 |

Rounding is to nearest, ties to even. An f8 value beyond the largest finite one saturates for the types without infinity,
as the AMD conversions do, and becomes infinity for f8E5M2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

HELD = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": np.float32,
    "f8E4M3FN": np.float32,
    "f8E5M2": np.float32,
    "f8E4M3FNUZ": np.float32,
    "f8E5M2FNUZ": np.float32,
    "f8E4M3B11FNUZ": np.float32,
}
STORED = {**HELD, "i1": np.uint8, "bf16": np.uint16, **{name: np.uint8 for name in HELD if name.startswith("f8")}}
NARROW = frozenset(name for name in HELD if name == "bf16" or name.startswith("f8"))
UNSIGNED = {np.dtype(f"int{bits}"): np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)}

# Significant bits, the leading one included.
PRECISION = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8, "f8E4M3FN": 4, "f8E4M3FNUZ": 4, "f8E4M3B11FNUZ": 4}
PRECISION |= {"f8E5M2": 3, "f8E5M2FNUZ": 3}

FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
FP4 = np.concatenate([FP4, -FP4])

# torch dtype name -> IR element type
ELEMENTS = {
    "bool": "i1",
    "uint8": "i8",
    "int8": "i8",
    "uint16": "i16",
    "int16": "i16",
    "uint32": "i32",
    "int32": "i32",
    "uint64": "i64",
    "int64": "i64",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
}
# Triton's name in a signature -> IR element type
SIGNATURE = {"fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64", "fp8e4nv": "f8E4M3FN", "fp8e5": "f8E5M2"}
SIGNATURE |= {"fp8e4b8": "f8E4M3FNUZ", "fp8e5b16": "f8E5M2FNUZ", "fp8e4b15": "f8E4M3B11FNUZ"}
SIGNATURE |= {f"{s}{bits}": f"i{bits}" for s in "iu" for bits in (1, 8, 16, 32, 64)}


def held(element: str) -> np.dtype:
    """The numpy dtype that holds `element`; pointers are 64-bit addresses."""
    return np.dtype(HELD.get(element, np.int64))


def stored(element: str) -> np.dtype:
    return np.dtype(STORED.get(element, np.int64))


@dataclass(frozen=True)
class Float8:
    """An 8-bit float: value = (-1)^sign * 2^(e - bias) * 1.m, subnormal at e = 0. `nans` are the codes of NaN."""

    mantissa: int
    bias: int
    infinity: int | None
    nans: tuple[int, ...]


FLOAT8 = {
    "f8E4M3FN": Float8(3, 7, None, (0x7F, 0xFF)),
    "f8E5M2": Float8(2, 15, 0x7C, (0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF)),
    "f8E4M3FNUZ": Float8(3, 8, None, (0x80,)),
    "f8E5M2FNUZ": Float8(2, 16, None, (0x80,)),
    "f8E4M3B11FNUZ": Float8(3, 11, None, (0x80,)),
}


@lru_cache(maxsize=None)
def _values8(name: str) -> np.ndarray:
    """The value of each of the 256 codes, float32[256]."""
    form = FLOAT8[name]
    code = np.arange(256)
    exponent, fraction = (code & 0x7F) >> form.mantissa, code & ((1 << form.mantissa) - 1)
    scale = 2.0**-form.mantissa
    normal = (1 + fraction * scale) * 2.0 ** (exponent - form.bias)
    value = np.where(exponent == 0, fraction * scale * 2.0 ** (1 - form.bias), normal)
    value = np.where(code & 0x80, -value, value)
    if form.infinity is not None:
        value[form.infinity], value[form.infinity | 0x80] = np.inf, -np.inf
    value[list(form.nans)] = np.nan
    return value.astype(np.float32)


@lru_cache(maxsize=None)
def _ladder8(name: str) -> np.ndarray:
    """The finite non-negative values in code order, float64."""
    values = _values8(name)[:128].astype(np.float64)
    return values[np.isfinite(values)]


def encode(value: np.ndarray, element: str) -> np.ndarray:
    """Held -> the bits as stored."""
    if element == "bf16":
        bits = np.asarray(value, np.float32).view(np.uint32)
        out = ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)
        return np.where(np.isnan(value), np.uint16(0x7FC0), out) if np.isnan(value).any() else out
    if element in FLOAT8:
        return _encode8(np.asarray(value, np.float64), element)
    if element == "i1":
        return np.asarray(value).astype(np.uint8)
    return value


def _encode8(value: np.ndarray, element: str) -> np.ndarray:
    form, ladder = FLOAT8[element], _ladder8(element)
    size = np.abs(value)
    above = np.clip(np.searchsorted(ladder, size), 1, len(ladder) - 1)
    low, high = ladder[above - 1], ladder[above]
    middle = (low + high) / 2
    up = (size > middle) | ((size == middle) & (above % 2 == 0))
    code = np.where(up, above, above - 1)
    if form.infinity is not None:
        step = ladder[-1] - ladder[-2]
        code = np.where(size >= ladder[-1] + step / 2, form.infinity, code)
    out = np.where(np.signbit(value), code | 0x80, code)
    if form.nans == (0x80,):
        out = np.where(code == 0, 0, out)
    return np.where(np.isnan(value), form.nans[0], out).astype(np.uint8)


def decode(bits: np.ndarray, element: str) -> np.ndarray:
    """The bits as stored -> held."""
    if element == "bf16":
        return np.left_shift(bits.astype(np.uint32), np.uint32(16)).view(np.float32)
    if element in FLOAT8:
        return _values8(element)[bits]
    if element == "i1":
        return bits != 0
    return bits


def rounded(value: np.ndarray, element: str) -> np.ndarray:
    """A float value rounded to `element`, held."""
    if element in NARROW:
        value = np.asarray(value)
        return decode(encode(value.astype(np.float32, copy=False), element), element)[()]
    return value.astype(HELD[element], copy=False)


def toward_zero(value: np.ndarray, element: str) -> np.ndarray:
    """A float value truncated to `element` (rounding mode rtz), held."""
    near = rounded(value, element)
    wide = np.asarray(value, np.float64)
    too_far = np.abs(near.astype(np.float64)) > np.abs(wide)
    bits = np.asarray(encode(near, element))
    whole = bits if bits.dtype.kind == "u" else bits.view(f"uint{8 * bits.itemsize}")
    lower = decode((whole - np.uint8(1)).astype(whole.dtype).view(bits.dtype), element)
    return np.where(too_far, lower, near).astype(HELD[element])


def unsigned(value):
    """The same bits as an unsigned integer."""
    if value.dtype == np.bool_:
        return value.astype(np.uint8)
    return value.view(UNSIGNED[value.dtype])


def bits_of(element: str) -> int:
    return 1 if element == "i1" else 8 * stored(element).itemsize
