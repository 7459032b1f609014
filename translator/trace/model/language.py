"""What Triton's language calls the operations of its modules: operators, and functions of one name in `triton.language` and in Gluon."""

from __future__ import annotations

# What elements are called: `tl.float16`, `gl.float16`.
DTYPES = {
    **{f"i{bits}": f"int{bits}" for bits in (1, 8, 16, 32, 64)},
    **{"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"},
    **{"f8E4M3FN": "float8e4nv", "f8E4M3FNUZ": "float8e4b8", "f8E5M2": "float8e5", "f8E5M2FNUZ": "float8e5b16"},
}
# And in the signature of a launch: `*fp16`.
SIGNATURE = {
    **{f"i{bits}": f"i{bits}" for bits in (1, 8, 16, 32, 64)},
    **{"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64"},
    **{element: name.replace("float8", "fp8") for element, name in DTYPES.items() if element.startswith("f8")},
}
# Operators between two numbers; those of unsigned numbers have operands of unsigned types.
OPERATORS = {
    **dict.fromkeys(("arith.addi", "arith.addf"), "+"),
    **dict.fromkeys(("arith.subi", "arith.subf"), "-"),
    **dict.fromkeys(("arith.muli", "arith.mulf"), "*"),
    **{"arith.divf": "/", "arith.divsi": "//", "arith.remsi": "%", "arith.remf": "%"},
    **{"arith.andi": "&", "arith.ori": "|", "arith.xori": "^", "arith.shli": "<<", "arith.shrsi": ">>"},
}
UNSIGNED_OPERATORS = {"arith.divui": "//", "arith.remui": "%", "arith.shrui": ">>"}
# By what `arith.cmpi` and `arith.cmpf` ask.
COMPARISONS = {
    **{"eq": "==", "ne": "!=", "slt": "<", "sle": "<=", "sgt": ">", "sge": ">="},
    **{"oeq": "==", "une": "!=", "olt": "<", "ole": "<=", "ogt": ">", "oge": ">="},
}
UNSIGNED_COMPARISONS = {"ult": "<", "ule": "<=", "ugt": ">", "uge": ">="}
# Functions of elements, each with the number of its operands.
FUNCTIONS = {
    **{f"math.{name}": (name, 1) for name in ("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf")},
    **{f"math.{name}": (name, 1) for name in ("floor", "ceil")},
    **dict.fromkeys(("math.absf", "math.absi"), ("abs", 1)),
    **dict.fromkeys(("arith.maxnumf", "arith.maxsi"), ("maximum", 2)),
    **dict.fromkeys(("arith.minnumf", "arith.minsi"), ("minimum", 2)),
    **{"arith.select": ("where", 3), "math.fma": ("fma", 3), "tt.mulhiui": ("umulhi", 2)},
    **{"tt.precise_sqrt": ("sqrt_rn", 1), "tt.precise_divf": ("div_rn", 2)},
}
UNSIGNED_FUNCTIONS = {"arith.maxui": "maximum", "arith.minui": "minimum"}
NAN_KEEPING = {"arith.maximumf": "maximum", "arith.minimumf": "minimum"}
# By the operation that combines two elements.
REDUCTIONS = {
    **dict.fromkeys(("arith.addf", "arith.addi"), "sum"),
    **dict.fromkeys(("arith.maxnumf", "arith.maxsi"), "max"),
    **dict.fromkeys(("arith.minnumf", "arith.minsi"), "min"),
    "arith.xori": "xor_sum",
}
SCANS = {**dict.fromkeys(("arith.addf", "arith.addi"), "cumsum"), "arith.mulf": "cumprod"}
