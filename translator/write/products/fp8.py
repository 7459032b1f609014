"""Casts from and to OCP's e4m3 by arithmetic, where Triton compares and selects.

    a.to(gl.float16)           ->    fp8e4nv_to_fp16(a)
    x.to(gl.float8e4nv)        ->    to_fp8e4nv(x)

CDNA3 and RDNA3 have no instruction for this format, and Triton 3.9 uses none on RDNA4. The values are the same. Instructions of a
kernel that casts 16 values per lane, which otherwise has some 25, with Triton's cast and with these:

    from         to         gfx942        gfx1100       gfx1201
    fp8e4nv      fp16       556   99      426   98      436  101
    fp8e4nv      fp32       563  117      444  124      459  127
    fp32         fp8e4nv    657  219      524  265      550  283
    bf16         fp8e4nv    681  233      576  238      608  256

From fp8e4nv to bf16 Triton's has 109, 113 and 116.
"""

from __future__ import annotations

import ast

from gluonize.facts.function import FunctionFacts
from gluonize.gluon.written import Part, Written, call, method
from gluonize.write.state.unit import Synthesized
from gluonize.write.state.writing import Writing

_WIDEN = Synthesized(
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
_NARROW = Synthesized(
    "to_fp8e4nv",
    '''@gluon.jit
def to_fp8e4nv(x, dtype: gl.constexpr = gl.float8e4nv):
    """`x.to(dtype)`, in less than half of the instructions."""
    gl.static_assert(dtype == gl.float8e4nv, "to_fp8e4nv is asked for another type")
    gl.static_assert(x.dtype.is_fp16() or x.dtype.is_bf16() or x.dtype.is_fp32(), "to_fp8e4nv is given another type")
    x = x.to(gl.float32)
    bits = x.to(gl.uint32, bitcast=True)
    size = gl.minimum(gl.abs(x), 448.0)
    # The power of two within `size`, at least that of the smallest normal number, and the float 2^20 times as large.
    power = gl.maximum(size.to(gl.uint32, bitcast=True) & 0x7F800000, 0x3C800000)
    step = power + 0x0A000000
    # Their sum has `size` in eighths of the power as its last bits, rounded to even; 8 of them are the next exponent's 0.
    eighths = (size + step.to(gl.float32, bitcast=True)).to(gl.uint32, bitcast=True) - step
    code = gl.where(x != x, 0x7F, (power >> 20) + eighths - 968)
    return (code | (bits >> 24 & 0x80)).to(gl.uint8).to(gl.float8e4nv, bitcast=True)
''',
)


def _function(facts: FunctionFacts, dtype: str, to: str) -> Synthesized | None:
    """What casts values of Triton's `dtype` to `to`, or to fp16 on the way there; None where Triton's own cast stays."""
    if facts.kernel.target.casts_fp8:
        return None
    if dtype == "fp8e4nv" and to in ("fp16", "fp32"):
        return _WIDEN
    return _NARROW if to == "fp8e4nv" and dtype in ("fp16", "bf16", "fp32") else None


def cast(writing: Writing, text: Written, dtype: str, to: str, spelled: Part) -> Written:
    """`text`, which is of Triton's `dtype`, as `to`, which is spelled so."""
    function = _function(writing.facts, dtype, to)
    if function is None:
        return method(text, "to", spelled)
    literal = spelled in ("gl.float16", "gl.float8e4nv")
    arguments = [text] if literal or function is _WIDEN else [text, spelled]
    value = call(writing.added(function), *arguments)
    return value if literal or function is _NARROW else method(value, "to", spelled)


def is_cast(facts: FunctionFacts, given: dict[str, ast.expr], dtype: str, to: str) -> bool:
    """Whether a cast in the source, with these arguments, is made by arithmetic."""
    return not {"fp_downcast_rounding", "bitcast"} & given.keys() and _function(facts, dtype, to) is not None
