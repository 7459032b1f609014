"""Rows for matrix products.

Operands are widened to f32 (f64 for f64, exact integers for int8) and the product is added to the accumulator in the result's
type. The instruction's own rounding inside a product is not modelled; the comparison's tolerance covers it.
"""

from __future__ import annotations

import numpy as np

from gluonize.judge.machine.dtypes import decode, unsigned
from gluonize.judge.machine.hazards import NotRunnable
from gluonize.judge.machine.ops.tensor import unpack_fp4
from gluonize.judge.machine.table import as_type, row


@row("tt.dot")
def dot(machine, op, a, b, c):
    return product(machine, op.type, a, b, c)


def product(machine, kind, a, b, c):
    """`a @ b + c` in the type `kind`."""
    machine.note_reduction(a.shape[-1])
    machine.note_product(a.size * b.shape[-1])
    if kind.element[0] == "i":
        exact = np.matmul(a.astype(np.float64), b.astype(np.float64))
        return (exact.astype(np.int64) + c).astype(c.dtype)
    wide = np.float64 if kind.element == "f64" else np.float32
    return as_type(np.matmul(np.asarray(a, wide), np.asarray(b, wide)) + np.asarray(c, wide), kind)


@row("tt.dot_scaled")
def dot_scaled(machine, op, a, *rest):
    operands = (a, *rest)
    scales = op.keywords("scale")
    plain = [i for i in range(len(operands)) if i not in scales]
    left, right, c = (operands[i] for i in plain)
    formats = [op.attribute("lhs"), op.attribute("rhs")]
    a_scale = next((operands[i] for i in scales if i < plain[1]), None)
    b_scale = next((operands[i] for i in scales if i > plain[1]), None)
    lhs = _widen(left, formats[0], -1, op.attribute("lhs_k_pack", True))
    rhs = _widen(right, formats[1], -2, op.attribute("rhs_k_pack", True))
    kinds = op.operand_types
    lhs = _scaled(lhs, a_scale, _scale_element(kinds, a_scale), -1)
    if b_scale is not None:
        rhs = np.swapaxes(_scaled(np.swapaxes(rhs, -1, -2), b_scale, _scale_element(kinds, b_scale), -1), -1, -2)
    machine.note_reduction(lhs.shape[-1])
    machine.note_product(lhs.size * rhs.shape[-1])
    return as_type(np.matmul(lhs, rhs) + np.asarray(c, np.float32), op.type)


def _scale_element(kinds, scale) -> str:
    """The printed element type of `scale`: i8 (e8m0) or an f8."""
    if scale is None:
        return ""
    fits = [k.element for k in kinds if k.shape == scale.shape and (k.element == "i8") == (scale.dtype == np.int8)]
    return fits[-1] if fits else "i8"


def _widen(x, form: str, axis: int, packed) -> np.ndarray:
    """Values of an operand as f32: e2m1 pairs along k unless packed along the other dimension."""
    if form == "e2m1":
        rank = x.ndim
        k = rank + axis
        return unpack_fp4(x, k if packed else (rank - 1 if k == rank - 2 else rank - 2))
    if x.dtype == np.int8:
        return decode(unsigned(x), {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}[form])
    if form not in ("e4m3", "e5m2", "bf16", "fp16"):
        raise NotRunnable("tt.dot_scaled", f"operand format {form}")
    return np.asarray(x, np.float32)


def _scaled(x, scale, element: str, axis: int) -> np.ndarray:
    if scale is None:
        return x
    return x * np.repeat(scale_values(scale, element), x.shape[axis] // scale.shape[axis], axis)


def scaled_operand(x, form: str, scale, element: str) -> np.ndarray:
    """Values of an operand [rows, k] with a scale per row and group of k, as f32; pairs of fp4 lie along k."""
    return _scaled(_widen(x, form, -1, True), scale, element, -1)


def scale_values(scale, element: str) -> np.ndarray:
    """E8M0 bytes -> 2^(s - 127), 255 is NaN; other types are their values."""
    if element != "i8":
        return np.asarray(scale, np.float32)
    raw = unsigned(np.asarray(scale)).astype(np.int32)
    return np.where(raw == 255, np.nan, np.ldexp(np.float32(1), raw - 127)).astype(np.float32)


@row("amdg.scaled_upcast_fp8")
def scaled_upcast_fp8(machine, op, x, scale):
    return as_type(np.asarray(x, np.float32) * scale_values(scale, _scale_kind(scale)), op.type)


@row("amdg.scaled_upcast_fp4")
def scaled_upcast_fp4(machine, op, x, scale):
    return as_type(unpack_fp4(x, op.attribute("axis")) * scale_values(scale, _scale_kind(scale)), op.type)


def _scale_kind(scale) -> str:
    return "i8" if scale.dtype == np.int8 else "float"
