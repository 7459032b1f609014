"""8-bit floats that Triton widens by comparing and selecting, widened by arithmetic.

    a.to(gl.float16)    ->    fp8e4nv_to_fp16(a)

CDNA3 and RDNA3 have no instruction for OCP's e4m3, and Triton 3.9 uses none on RDNA4. A kernel that widens 16 values per lane has
99 instructions for 556 that way on gfx942, 98 for 426 on gfx1100 and 101 for 436 on gfx1201, with the same values. To bf16 Triton
is as fast (109, 113, 116), and to fp32 it goes through fp16.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from translator.rewrite.splice import operand
from translator.rewrite.unit import Synthesized, added

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter

_FAMILIES = ("cdna3", "rdna3", "rdna4")
_TO_FP16 = Synthesized(
    "fp8e4nv_to_fp16",
    '''@gluon.jit
def fp8e4nv_to_fp16(x):
    """`x.to(gl.float16)`, in a fifth of the instructions."""
    gl.static_assert(x.dtype == gl.float8e4nv, "fp8e4nv_to_fp16 is given another type")
    bits = x.to(gl.uint8, bitcast=True).to(gl.int16) << 8
    # The sign stays, exponent and mantissa move to where fp16 has them; its exponents are 8 less.
    half = ((bits >> 1) & -0x4080).to(gl.float16, bitcast=True)
    # NaN, which would be 480, is the one code that overflows in the second term; the others add nothing.
    return half * 256.0 + half * 35840.0 * 0.0
''',
)


def widens(rw: "FunctionRewriter", dtype: str, to: str) -> bool:
    """Whether a cast of Triton's `dtype` to Gluon's `to` is made here."""
    return dtype == "fp8e4nv" and to in ("float16", "float32") and rw.unit.target.family in _FAMILIES


def to_fp16(rw: "FunctionRewriter", text: str) -> str:
    """`text`, which is of fp8e4nv, in fp16."""
    return f"{added(rw, _TO_FP16)}({text})"


def cast(rw: "FunctionRewriter", text: str, dtype: str, to: str) -> str:
    """`text`, which is of Triton's `dtype`, in Gluon's `to`."""
    if not widens(rw, dtype, to):
        return f"{operand(text)}.to(gl.{to})"
    half = to_fp16(rw, text)
    return half if to == "float16" else f"{half}.to(gl.{to})"


def is_fp16(dtype: ast.expr | None) -> bool:
    """Whether a type is written out as `tl.float16`, rather than a parameter's."""
    return isinstance(dtype, ast.Attribute) and dtype.attr == "float16"
