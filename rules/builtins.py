"""How each builtin of `triton.language` is written in Gluon: one row per function (`gluonize.rules.rows` says what a row holds).

`kind` says which code decides about layouts:

* `elementwise`: every tensor argument has the layout of the result;
* `creator`: the result gets a layout argument;
* `load`, `store`, `atomic`: addresses, masks and values share one layout;
* `reduce`, `scan`: along an axis of the operand's layout;
* `shape`: the result's layout follows from the operand's;
* `dot`, `gather`, `histogram`, `descriptor`: as named;
* `helper`: Triton's own library source is translated like a user's helper;
* `same`: nothing depends on layouts;
* `refuse`: has no meaning on these targets; `note` says what to do.

Names that `gl` lacks but that Gluon accepts through `triton.language` are spelled `tl.NAME`. Verified on Triton 3.9.0.
"""

from __future__ import annotations

from dataclasses import replace

from gluonize.rules.rows import Example, Row, RuleSet, with_rows

# The near miss of most rows: a function of the author's own that has the same name stays a call of that function.
_OF_ONE = Example("y = NAME(x)", "y = NAME(x)")


def _calls(
    names: str, kind: str, arguments: str, after: str = "", use: str = "", module: str = "gl", **fields
) -> list[Row]:
    """Rows of functions that Gluon has under the same name, with the author's arguments."""
    example = Example(f"y = tl.NAME({arguments})", f"y = {module}.NAME({after or arguments})", use)
    row = Row("NAME", kind, f"{module}.NAME({{...}})", example=example, near_miss=_OF_ONE, **fields)
    return with_rows(names, row)


def _statements(names: str, arguments: str) -> list[Row]:
    example = Example(f"tl.NAME({arguments})", f"gl.NAME({arguments})")
    near_miss = Example("NAME(x)", "NAME(x)")
    return with_rows(names, Row("NAME", "same", "gl.NAME({...})", ("none",), example=example, near_miss=near_miss))


def _method(name: str, kind: str, before: str, after: str, use: str = "", **fields) -> Row:
    return Row(
        name, kind, f"{{self}}.{name}({{...}})", example=Example(before, after, use), near_miss=_named(name), **fields
    )


def _named(name: str) -> Example:
    return Example(f"y = {name}(x)", f"y = {name}(x)")


_SAME = dict(layouts=("none",))
_HEAVY = dict(cost="heavy")

_PLAIN = (
    *_calls("program_id num_programs", "same", "0", use="y + x", **_SAME),
    *_statements("static_assert assume device_assert", "x_ptr is not None"),
    *_statements("static_print", '"compiling"'),
    *_calls("to_tensor constexpr", "same", "3", use="y + x", **_SAME),
    *_calls("expect_zero", "same", "x, k", use="x", **_SAME),
    Row("static_range", "same", "gl.static_range({...})", ("none",),
        example=Example("for n in tl.static_range(2): x += n", "for n in gl.static_range(2):"),
        near_miss=Example("y = static_range(x)", "y = static_range(x)")),
    Row("range", "same", "range({...})", ("none",),
        example=Example("for n in tl.range(0, 2, num_stages=1): x += n", "for n in range(0, 2):"),
        near_miss=Example("for n in tl.range(0, 2, loop_unroll_factor=2): x += n",
                          "for n in tl.range(0, 2, loop_unroll_factor=2):"),
        note="a loop's schedule is written out; unrolling stays the compiler's"),
    _method("item", "same", "y = tl.load(x_ptr + tl.arange(0, 1)).item()", ".item()", "y + x", **_SAME),
    Row("debug_barrier", "same", "gl.barrier()", ("none",), example=Example("tl.debug_barrier()", "gl.barrier()"),
        near_miss=Example("debug_barrier(x)", "debug_barrier(x)")),
)  # fmt: skip

_ELEMENTWISE = (
    *_calls("abs", "elementwise", "x"),
    *_calls("exp exp2 log log2 sin cos sqrt sqrt_rn rsqrt floor ceil erf", "elementwise", "x", **_HEAVY),
    *_calls("sigmoid", "elementwise", "x", module="tl", **_HEAVY),
    *_calls("add sub mul maximum minimum", "elementwise", "x, x"),
    *_calls("fdiv div_rn", "elementwise", "x, x", **_HEAVY),
    *_calls("umulhi", "elementwise", "i, i"),
    *_calls("cdiv", "elementwise", "i, 3"),
    *_calls("where", "elementwise", "k, x, 0.0"),
    *_calls("clamp", "elementwise", "x, 0.0, 1.0"),
    *_calls("fma", "elementwise", "x, x, x"),
    *_calls("cast", "elementwise", "i, tl.float32", "i, gl.float32"),
    *_calls("multiple_of max_contiguous max_constancy", "elementwise", "i, 1"),
    _method("to", "elementwise", "y = (i + 1).to(tl.float32)", "y = (i + 1).to(gl.float32)"),
    _method("logical_and", "elementwise", "y = k.logical_and(k)", "y = k.logical_and(k)"),
    _method("logical_or", "elementwise", "y = k.logical_or(k)", "y = k.logical_or(k)"),
    *_calls("rand randn randint", "elementwise", "7, i", module="tl", **_HEAVY),
    *_calls("rand4x randn4x randint4x", "elementwise", "7, i", use="y[0]", module="tl", **_HEAVY),
    *_calls("philox", "elementwise", "7, i, i, i, i", use="y[0]", module="tl", **_HEAVY),
    *_calls("philox_impl", "elementwise", "u, u, u, u, u, u", use="y[0]", module="tl", **_HEAVY),
    *_calls("pair_uniform_to_normal", "elementwise", "x, x", use="y[0]", module="tl", **_HEAVY),
    *_calls("uint_to_uniform_float", "elementwise", "i", module="tl", **_HEAVY),
    *_calls("swizzle2d", "elementwise", "i, i, 8, 8, 4", use="y[0]", module="tl"),
    *(replace(row, example=Example('tl.device_print("x", x)', 'gl.device_print("x", x)'), near_miss=Example("device_print(x)", "device_print(x)"))
      for row in _calls("device_print", "elementwise", "", **_HEAVY)),
    Row("map_elementwise", "elementwise", **_HEAVY, note="the function that it maps is translated like a helper of yours"),
    Row("inline_asm_elementwise", "elementwise", **_HEAVY, note="PTX that has a meaning elsewhere becomes arithmetic (`rules/ptx.py`)"),
    Row("ravel_index", "elementwise", note="called by Triton's own library"),
    *with_rows("mulhi pow tanh", Row("NAME", "elementwise", note="of the device library")),
)  # fmt: skip
_ELEMENTWISE = tuple(replace(row, cost="heavy") if row.name in ("pow", "tanh") else row for row in _ELEMENTWISE)

_CREATORS = (
    Row("arange", "creator", "gl.arange({...}, layout={layout})", ("given",),
        example=Example("y = tl.arange(0, 64)", "y = gl.arange(0, 64, layout=layout)"), near_miss=_named("arange")),
    Row("full", "creator", "gl.full({...}, layout={layout})", ("given",),
        example=Example("y = tl.full([64], 3.0, tl.float32)", "y = gl.full([64], 3.0, gl.float32, layout=layout)"),
        near_miss=_named("full")),
    Row("zeros", "creator", "gl.zeros({...}, layout={layout})", ("given",), added={"dtype": "gl.float32"},
        example=Example("y = tl.zeros([64], tl.int32)", "y = gl.zeros([64], gl.int32, layout=layout)"), near_miss=_named("zeros")),
    Row("zeros_like", "creator", "gl.zeros_like({input})", ("same",), of_scalar="gl.cast({zero}, {dtype})",
        example=Example("y = tl.zeros_like(x)", "y = gl.zeros_like(x)"),
        near_miss=Example("y = tl.zeros_like(tl.program_id(0))", "y = gl.cast(0, gl.int32)", "y + x")),
)  # fmt: skip

_WITH_INDEX = "gl.reduce(({values}, {index}), {axis}, {combine}, keep_dims={keep_dims})"
_REDUCTIONS = (
    *(replace(row, with_index=_WITH_INDEX, combine=f"tl.standard._arg{row.name}_combine_tie_break")
      for row in _calls("max min", "reduce", "x, 0", use="y + x", layouts=("slice",), **_HEAVY)),
    *_calls("sum", "reduce", "x, 0", use="y + x", layouts=("slice",), **_HEAVY),
    *_calls("xor_sum reduce_or", "reduce", "i, 0", use="y + x", layouts=("slice",), **_HEAVY),
    Row("reduce", "reduce", "gl.reduce({...})", ("slice",), **_HEAVY,
        example=Example("y = tl.reduce(x, 0, combine)", "y = gl.reduce(x, 0, combine)", "y + x"), near_miss=_named("reduce")),
    *(Row(name, "reduce", f"{_WITH_INDEX}[1]", ("slice",), combine=f"tl.standard._{name}_combine_tie_break", **_HEAVY,
          example=Example(
              f"y = tl.{name}(i, 0)",
              f"y = gl.reduce((i, gl.arange(0, 64, layout=layout)), 0, tl.standard._{name}_combine_tie_break_left)[1]", "y + x"),
          near_miss=_named(name))
      for name in ("argmax", "argmin")),
    *_calls("cumsum cumprod", "scan", "x, 0", **_HEAVY),
    Row("associative_scan", "scan", "gl.associative_scan({...})", **_HEAVY,
        example=Example("y = tl.associative_scan(x, 0, combine)", "y = gl.associative_scan(x, 0, combine)"),
        near_miss=_named("associative_scan")),
)  # fmt: skip

_OF_SCALAR = "gl.full({shape}, {input}, {dtype}, layout={layout})"
# Two scalars side by side, which Gluon does not join.
_PAIR = "gl.where(gl.arange(0, 2, layout={layout}) == 0, {a}, {b})"
_SHAPES = (
    *(replace(row, cost="heavy" if row.name == "unsqueeze" else "cheap", of_scalar=_OF_SCALAR)
      for row in with_rows("expand_dims unsqueeze", Row("NAME", "shape", "{input}[{index}]", ("expand",),
        example=Example("y = tl.NAME(x, 1)", "[:, None]", "y.sum(1)"), near_miss=_OF_ONE))),
    Row("broadcast_to", "shape", "tl.broadcast_to({input}, {shape})", ("broadcast",), of_scalar=_OF_SCALAR,
        example=Example("y = tl.broadcast_to(x[:, None], [64, 2])", "y = tl.broadcast_to(x[:, None], [64, 2])", "y.sum(1)"),
        near_miss=Example("y = tl.broadcast_to(tl.load(x_ptr), [64])", "y = gl.full([64], gl.load(x_ptr), gl.load(x_ptr).dtype, layout=")),
    Row("broadcast", "shape", "gl.broadcast({...})", ("broadcast",),
        example=Example("y = tl.broadcast(x, tl.full([64], 1.0, tl.float32))",
                        "y = gl.broadcast(x, gl.full([64], 1.0, gl.float32, layout=layout))", "y[0]"),
        near_miss=_named("broadcast")),
    *with_rows("reshape view", Row("NAME", "shape", "gl.reshape({input}, {shape})", ("reshape",), cost="heavy",
        example=Example("y = tl.NAME(q, [64])", "y = gl.reshape(q, [64])"), near_miss=_OF_ONE)),
    Row("ravel", "shape", "gl.ravel({input})", ("reshape",), cost="heavy",
        example=Example("y = tl.ravel(q)", "y = gl.ravel(q)"), near_miss=_named("ravel")),
    *with_rows("trans permute", Row("NAME", "shape", "gl.permute({input}, {order})", ("permute",), cost="heavy",
        example=Example("y = tl.NAME(q, 1, 0)", "y = gl.permute(q, [1, 0])", "y.reshape([64])"), near_miss=_OF_ONE)),
    Row("join", "shape", "gl.join({a}, {b})", ("join",), cost="heavy", of_scalar=_PAIR,
        example=Example("y = tl.join(x, x)", "y = gl.join(x, x)", "y.sum(1)"), near_miss=Example("y = join(x, x)", "y = join(x, x)")),
    Row("split", "shape", "gl.split({...})", ("split",), cost="heavy",
        example=Example("y = tl.split(tl.reshape(x, [32, 2]))", "gl.split(", "tl.join(y[0], y[1]).reshape([64])"), near_miss=_named("split")),
    Row("interleave", "shape", "gl.reshape(gl.join({a}, {b}), {shape})", ("join", "reshape"), cost="heavy", of_scalar=_PAIR,
        example=Example("y = tl.interleave(x, x)", "gl.reshape(gl.join(x, x), [128])", "y.reshape([64, 2]).sum(1)"),
        near_miss=Example("y = interleave(x, x)", "y = interleave(x, x)")),
    Row("cat", "shape", "gl.reshape(gl.permute(gl.join({a}, {b}), {order}), {shape})", ("join", "permute", "reshape"), cost="heavy",
        example=Example("y = tl.cat(x, x)", "gl.reshape(gl.permute(gl.join(x, x), [1, 0]), [128])", "y.reshape([64, 2]).sum(1)"),
        near_miss=Example("y = cat(x, x)", "y = cat(x, x)")),
    Row("squeeze", "shape", "tl.squeeze({...})", ("squeeze",), cost="heavy",
        example=Example("y = tl.squeeze(x[None, :], 0)", "tl.squeeze("), near_miss=_named("squeeze")),
)  # fmt: skip

# Elements of buffer atomics that Gluon takes (reference of Triton 3.9.0). int32 and int64 additions go through the unsigned type of
# the same width, which adds the same bits; operations on bits of unsigned integers through the signed one.
_BUFFER_TYPES = {
    "atomic_add": ("fp16", "fp32", "fp64", "uint32", "uint64", "int32", "int64"),
    **dict.fromkeys(("atomic_max", "atomic_min"), ("int32", "int64", "uint32", "uint64", "fp64")),
    **dict.fromkeys(("atomic_and", "atomic_or", "atomic_xor", "atomic_xchg"), ("int32", "int64", "uint32", "uint64")),
}
_MEMORY = (
    *(replace(row, buffer_types=_BUFFER_TYPES.get(row.name, ()))
      for row in (*_calls("atomic_add atomic_max atomic_min atomic_xchg", "atomic", "y_ptr, 1.0", use="x", **_HEAVY),
                  *_calls("atomic_and atomic_or atomic_xor", "atomic", "n_ptr, 1", use="x", **_HEAVY))),
    Row("atomic_cas", "atomic", "gl.atomic_cas({...})", cost="heavy",
        example=Example("y = tl.atomic_cas(n_ptr + i, i, i)", "y = gl.atomic_cas(n_ptr + i, i, i)"), near_miss=_named("atomic_cas")),
    *_calls("atomic_load", "atomic", "x_ptr + i", **_HEAVY),
    Row("atomic_store", "atomic", "gl.atomic_store({...})", cost="heavy",
        example=Example("tl.atomic_store(y_ptr + i, x)", "gl.atomic_store(y_ptr + i, x)"), near_miss=Example("atomic_store(x)", "atomic_store(x)")),
    Row("atomic_poll", "atomic", **_HEAVY, note="waits for another program"),
    Row("load", "load", "gl.load({...})", **_HEAVY, note="a buffer load, a copy to LDS or one of the tensor data mover where that is safe",
        example=Example("y = tl.load(x_ptr) + x", "y = gl.load(x_ptr) + x"), near_miss=_named("load")),
    Row("store", "store", "gl.store({...})", **_HEAVY, note="a buffer store where that is safe",
        example=Example("tl.store(y_ptr, 1.0)", "gl.store(y_ptr, 1.0)"), near_miss=Example("store(x)", "store(x)")),
    *with_rows("make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor", Row("NAME", "descriptor", **_HEAVY)),
)  # fmt: skip

_OTHERS = (
    *with_rows("flip sort topk bitonic_merge softmax", Row("NAME", "helper", **_HEAVY, note="Triton's own source is translated")),
    *_calls("gather", "gather", "x, i, 0", layouts=("placed",), **_HEAVY),
    Row("histogram", "histogram", "gl.histogram({input}, {num_bins}, mask={mask}, layout={layout})", ("given",), **_HEAVY,
        example=Example("y = tl.histogram(i, 64)", "y = gl.histogram(i, 64, layout=layout)"), near_miss=_named("histogram")),
    Row("dot", "dot", **_HEAVY, note="a matrix instruction with its operand layouts, or multiply-adds"),
    Row("dot_scaled", "dot_scaled", **_HEAVY, note="a scaled matrix instruction, or operands that are brought to 16 bits"),
)  # fmt: skip

ROWS: tuple[Row, ...] = (*_PLAIN, *_ELEMENTWISE, *_CREATORS, *_REDUCTIONS, *_SHAPES, *_MEMORY, *_OTHERS)
BUILTINS = RuleSet(ROWS)
assert len(BUILTINS.by_callee) == len(ROWS), "two rows for one function"
