"""Builtins that outputs bring along: operations under Gluon that its own functions do not give in every form."""

from __future__ import annotations

from gluonize.gluon.imports import Import

BUILTIN = Import("triton.language.core", "builtin")
# Gluon's mfma has no precision; the operation under it has one.
MFMA_TF32 = '''@builtin
def mfma_tf32(a, b, acc, _semantic=None):
    """`mfma` of fp32 operands in the precision that `tl.dot` has here unless it is told otherwise: TF32."""
    product = _semantic.dot(a, b, acc, input_precision="tf32", max_num_imprecise_acc=None, out_dtype=acc.dtype)
    return gl.tensor(product.handle, acc.type)
'''
# Gluon's scaled_upcast takes scales as raw bytes; the operation under it takes numbers too.
_UPCAST = '''@builtin
def {name}(x, scale, _semantic=None):
    """Each number of `x`, {what}, times its scale, which is a number: `scaled_upcast` takes raw bytes alone."""
    builder = _semantic.builder
    handle = builder.{create}
    layout = builder.get_gluon_layout_from_tensor(handle)
    return gl.tensor(handle, gl.distributed_type({dtype}, builder.get_shape_from_tensor(handle), layout))
'''
# Gluon's barrier of LLVM's scheduler lets nothing cross; the operation under it takes which kinds of instructions may. Masks of ROCDL's `SchedGroupMask`.
CROSSING = {"non_mem_non_sideeffect": 1}
_SCHED_BARRIER = '''@builtin
def sched_barrier_{word}(_semantic=None):
    """A barrier of the compiler's scheduler that instructions of this kind may cross: `sched_barrier` lets none."""
    _semantic.builder.create_amd_sched_barrier({mask})
'''
# Gluon's scaled products take ones for scales that are not given; the operation under them takes none.
_UNSCALED = '''@builtin
def multiply_{a}_{b}(a, b, acc, _semantic=None):
    """`acc` with the product of {a} and {b} without scales: `{instruction}` multiplies by ones."""
    product = _semantic.dot_scaled(a, None, "{a}", b, None, "{b}", acc, False, True, True, acc.dtype)
    return gl.tensor(product.handle, acc.type)
'''


def unscaled(a: str, b: str, instruction: str) -> tuple[str, str]:
    """(name, text) of a function that multiplies without scales. a, b: the formats; instruction: Gluon's with scales."""
    return f"multiply_{a}_{b}", _UNSCALED.format(a=a, b=b, instruction=instruction)


def sched_barrier(word: str) -> tuple[str, str]:
    """(name, text) of a barrier of LLVM's scheduler. word: which instructions may cross it."""
    return f"sched_barrier_{word}", _SCHED_BARRIER.format(word=word, mask=CROSSING[word])


def scaled_upcast(element: str, dtype: str, axis: int | None) -> tuple[str, str]:
    """(name, text) of a function that scales numbers by numbers. element: `fp4` or `fp8`; dtype: of the scales and of the result, as Gluon
    has it; axis: along which two numbers of fp4 lie in a byte."""
    to = f"{dtype}.to_ir(builder)"
    if element == "fp4":
        name, what = f"upcast_fp4_along_{axis}", f"two of fp4 in a byte along axis {axis}"
        create = f"create_scaled_upcast_fp4(x.handle, scale.handle, {to}, {axis})"
    else:
        name, what = "upcast_fp8", "of fp8"
        create = "create_scaled_upcast_fp8(scale.type.to_ir(builder), x.handle, scale.handle)"
    return name, _UPCAST.format(name=name, what=what, create=create, dtype=dtype)
