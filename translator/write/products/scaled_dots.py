"""`tl.dot_scaled`: the scaled matrix instruction where the target has it, else operands upcast and scaled before a dot.

Which of the two Triton takes for the target and the formats is read back from its passes, with the operand and scale
layouts. The upcast is a small function written into the output, one per operand side.
"""

from __future__ import annotations

import ast
from collections.abc import Container
from dataclasses import replace
from typing import Any

from gluonize.decide.layouts.inferred import infer
from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.products import products
from gluonize.facts.products.scaled import ScaledProduct, scaled_product
from gluonize.facts.refusals import refuse
from gluonize.gluon.nodes import Named
from gluonize.gluon.written import Part, Written, call, keyword, method, operand
from gluonize.trace.front.trace import ConstFact, TensorFact
from gluonize.trace.model.language import DTYPES
from gluonize.trace.model.layouts import DotOperand, Layout, Mfma, Wmma
from gluonize.write.products import packed_scales
from gluonize.write.products.dots import registers
from gluonize.write.products.packed_scales import Side
from gluonize.write.state import shapes
from gluonize.write.state.relations import NOT_READ, Wants
from gluonize.write.state.site import Site, Spot, TileRead
from gluonize.write.state.unit import Synthesized
from gluonize.write.state.writing import Cheap, Writing, added

BYTES = ("uint8", "int8")


def emit_dot_scaled(site: Site, node: ast.Call, given: dict[str, ast.expr], want: Any) -> Written:
    for side in ("lhs_k_pack", "rhs_k_pack"):
        fact = site.facts.fact(given[side]) if side in given else None
        if isinstance(fact, ConstFact) and not fact.value:
            raise refuse(
                site.facts.frame,
                node,
                "fp4-packing",
                f"`tl.dot_scaled` with {side}=False",
                "fp4 packed along M or N",
                "pack along K",
            )
    made = scaled_product(site.facts, node)
    text, result = _native(site, made, given) if made is not None else _upcast(site, node, given)
    return text if want is None or want == result else site.convert(text, want)


def dot_scaled_wants(site: Spot, node: ast.Call, given: dict[str, ast.expr]) -> Wants:
    """In which layouts a scaled product wants its operands, their scales and its accumulator."""
    facts, made, wants = site.facts, scaled_product(site.facts, node), {}
    if made is not None:
        result = made.result
        for which in (0, 1):
            wants |= packed_scales.wants(site, made, which)
    else:
        op = _placed_dot(site.facts, node)
        result, types = op.results[0].layout, [t for t in op.operands if isinstance(t.layout, DotOperand)]
        formats = _formats(facts, given)
        reads = _read_late(site, given, formats)[1] if isinstance(result, Wmma) else {}
        for side, fmt, ty in zip(("lhs", "rhs"), formats, types):
            scale, matrix = given.get(f"{side}_scale"), isinstance(ty.layout.root, (Mfma, Wmma))
            own = _read_in(ty, fmt) if matrix else site.home(given[side])
            wants[given[side]] = NOT_READ if side in reads else own
            if callees.is_given(facts, scale):
                wants[scale] = site.home(scale)
    acc = given.get("acc")
    return wants | ({acc: result} if callees.is_given(facts, acc) else {})


def _formats(facts: FunctionFacts, given: dict[str, ast.expr]) -> list[str]:
    return [_constant(facts, given[k]) for k in ("lhs_format", "rhs_format")]


def _placed_dot(facts: FunctionFacts, node: ast.Call):
    """Triton's dot of the upcast operands."""
    placed = facts.placed(node, "tt.dot")
    if not placed:
        raise refuse(facts.frame, node, "dot-eliminated", "Triton removes this `tl.dot_scaled`")
    return placed[0]


def _read_in(ty, fmt: str) -> Layout:
    """The layout of an operand before it is upcast."""
    return replace(ty.layout, k_width=ty.layout.k_width // 2) if fmt == "e2m1" else ty.layout


def _constant(facts: FunctionFacts, node: ast.expr) -> str:
    fact = facts.fact(node)
    assert isinstance(fact, ConstFact), f"bug in gluonize: format of tl.dot_scaled is not a constant: {fact}"
    return fact.value


def _accumulator(writing: Writing, node, given, result: Layout) -> Written:
    facts = writing.facts
    acc = given.get("acc")
    if callees.is_given(facts, acc):
        text = writing.emit(acc, result)
        return text if facts.fact(acc).dtype == "fp32" else method(text, "to", "gl.float32")
    shape = shapes.shape_text(facts, writing.emit, writing.rebound, node)
    return call("gl.zeros", shape, "gl.float32", keyword("layout", writing.names.spell(result)))


def _native(writing: Writing, made: ScaledProduct, given) -> tuple[Written, Layout]:
    """The scaled matrix instruction: operands and scales in the layouts that Triton gave them."""
    rows = writing.facts.tensor(made.node).shape
    sides = [
        packed_scales.in_turn(writing, made, which, packed_scales.read(writing, made, which), rows[which])
        for which in (0, 1)
    ]
    return instruction(writing, made, *sides, _accumulator(writing, made.node, given, made.result)), made.result


def _kind(result: Layout) -> str:
    """What the layout of a product is called."""
    return "mma" if isinstance(result, Mfma) else "wmma"


def instruction(writing: Writing, made: ScaledProduct, a: Side, b: Side, acc: Written) -> Written:
    kind, function = _kind(made.result), f"{writing.facts.kernel.target.matrix_kind}_scaled"
    writing.names.suggest(made.result, kind, 1, made.node.lineno)
    module = writing.record.amd(writing.facts.kernel.dot_module)
    formats = [f'"{fmt}"' for fmt in made.formats]
    return call(f"{module}.{function}", *a, formats[0], *b, formats[1], acc, *registers(writing, made.result))


def _upcast(site: Site, node, given) -> tuple[Written, Layout]:
    """Both operands brought to the 16-bit type of Triton's dot, scaled, then an ordinary matrix instruction."""
    formats, wants = _formats(site.facts, given), dot_scaled_wants(site, node, given)
    op = _placed_dot(site.facts, node)
    result = op.results[0].layout
    types = [t for t in op.operands if isinstance(t.layout, DotOperand)]
    first, reads = _read_late(site, given, formats) if isinstance(result, Wmma) else ("", {})
    texts = []
    for side, fmt, ty, axis in zip(("lhs", "rhs"), formats, types, (1, 0)):
        texts.append(_operand(site, given, wants, side, fmt, ty, axis, reads.get(side), first == side))
    acc = _accumulator(site, node, given, result)
    if not isinstance(result, (Mfma, Wmma)):
        return call("gl.dot_fma", *texts, acc), result
    if first == "rhs":  # keywords are evaluated first
        texts[1], acc = keyword("b", texts[1]), keyword("acc", acc)
    site.names.suggest(result, _kind(result), 1, node.lineno)
    module = site.record.amd(site.facts.kernel.dot_module)
    name = site.facts.kernel.target.matrix_kind
    return call(f"{module}.{name}", *texts, acc, *registers(site, result)), result


def _read_late(site: Site, given, formats) -> tuple[str, dict[str, TileRead]]:
    """(the side whose scales move between lanes, how each side's tile is read from LDS) where only one side's do.

    Before the barriers of that move nothing is read then, and the other side's tile not before this one is upcast: neither is
    held in registers across them. Where both move, there would be one more barrier.
    """
    reads: dict[str, TileRead] = {}
    moved = []
    for side, fmt in zip(("lhs", "rhs"), formats):
        scale, fact = given.get(f"{side}_scale"), site.facts.tensor(given[side])
        read = site.tile_at_use(given[side])
        if read is None or (fmt != "e2m1" and fact.dtype in BYTES):
            return "", {}
        reads[side] = read
        if (
            scale is not None
            and not callees.is_none(site.facts, scale)
            and _moves(site.facts, site.cheap, site.staged, scale)
        ):
            if site.facts.tensor(scale).dtype not in BYTES:
                return "", {}
            moved.append(side)
    return (moved[0], reads) if len(moved) == 1 else ("", {})


def _moves(facts: FunctionFacts, is_cheap: Cheap, staged: Container[ast.AST], scale: ast.expr) -> bool:
    """Whether scales have to be brought to the lanes that multiply by them: they are loaded, not made there."""
    made = facts.webs.definition_of(scale) if isinstance(scale, ast.Name) else None
    return scale in staged or (made is not None and made.value in staged) or not is_cheap(scale)


def _operand(
    site: Site, given, wants: Wants, side: str, fmt: str, ty, axis: int, read: TileRead | None, behind_move: bool
) -> Written:
    """One operand in the element type and layout of the dot, upcast in the lanes that multiply it.

    wants: in which layouts; read: how its tile is read from LDS here; behind_move: after its scales have been moved.
    """
    node, scale = given[side], given.get(f"{side}_scale")
    fact = site.facts.tensor(node)
    dtype = f"gl.{DTYPES[ty.element]}"
    packed = fmt == "e2m1"
    matrix = isinstance(ty.layout.root, (Mfma, Wmma))
    source = _read_in(ty, fmt)
    if read is not None:
        site.names.suggest(source, f"{node.id.lower()}_operand", 1, node.lineno)
        value = site.expression(Named(node.id)) if behind_move else read.text(site, source, Named(node.id))
    else:
        value = operand(site.emit(node, wants[node]))
    if not packed and fact.dtype in BYTES:  # 8-bit floats carried as bytes
        float8 = {"e4m3": "float8e4nv", "e5m2": "float8e5"}[fmt]
        value = method(value, "to", f"gl.{float8}", "bitcast=True")
    if not callees.is_given(site.facts, scale):
        if packed:
            return site.convert(call("gl.fp4_to_fp", value, dtype, str(axis)), ty.layout)
        same = DTYPES[ty.element] == products.DTYPE.get(fact.dtype)
        text = value if same else method(value, "to", dtype)
        return text if matrix else site.convert(text, ty.layout)
    scales = site.facts.tensor(scale)
    size = ty.shape[axis] // scales.shape[1]
    groups = (
        _groups(site.facts, ty, axis, size) if matrix else site.facts.default_layout(_grouped(ty.shape, axis, size))
    )
    scale_text = site.emit(scale, wants[scale])
    arguments: list[Part] = [value, scale_text, dtype, str(size), site.names.spell(ty.layout), site.names.spell(groups)]
    name, function = f"scale_{side}", _SCALE
    if matrix and scales.dtype in BYTES:
        name, function = f"upcast_{side}", _UPCAST
        arguments.append(str(axis) if packed else "None")
        module = site.record.amd(site.facts.kernel.buffer_module)
        if behind_move:
            name, function = f"{name}_from_lds", _UPCAST_FROM_LDS
            arguments.append(site.names.spell(source))
    else:
        arguments[0] = call("gl.fp4_to_fp", value, dtype, str(axis)) if packed else method(value, "to", dtype)
        module = ""
    own = function.format(name=name, side=side, module=module, spread=_SPREAD[side])
    return call(added(site.facts, site.record, Synthesized(name, own)), *arguments)


def _grouped(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    """The shape of an operand with K, dimension `axis`, split into groups of `size` elements."""
    return (*shape[:axis], shape[axis] // size, size, *shape[axis + 1 :])


def _groups(facts: FunctionFacts, ty, axis: int, size: int) -> Layout:
    """The layout of the operand with K split into groups: scales spread in it are where they are multiplied."""
    return infer(
        facts.kernel.target, facts.kernel.num_warps, "reshape", ty.shape, ty.layout, _grouped(ty.shape, axis, size)
    )


_SPREAD = {
    "lhs": """scale = gl.convert_layout(scale, gl.SliceLayout(2, groups))
    M: gl.constexpr = scale.shape[0]
    GROUPS: gl.constexpr = scale.shape[1]
    spread = scale[:, :, None] + gl.zeros([M, GROUPS, GROUP], scale.dtype, layout=groups)
    spread = gl.convert_layout(gl.reshape(spread, [M, GROUPS * GROUP]), layout)""",
    "rhs": """scale = gl.convert_layout(scale.T, gl.SliceLayout(1, groups))
    GROUPS: gl.constexpr = scale.shape[0]
    N: gl.constexpr = scale.shape[1]
    spread = scale[:, None, :] + gl.zeros([GROUPS, GROUP, N], scale.dtype, layout=groups)
    spread = gl.convert_layout(gl.reshape(spread, [GROUPS * GROUP, N]), layout)""",
}
_UPCAST = '''@gluon.jit
def {name}(
    x, scale, dtype: gl.constexpr, GROUP: gl.constexpr, layout: gl.constexpr, groups: gl.constexpr, axis: gl.constexpr
):
    """The {side} operand of a scaled dot in `dtype`: each run of GROUP elements along K times 2 ** (scale - 127)."""
    {spread}
    values = {module}.scaled_upcast(x, spread, dtype, axis)
    return gl.where(spread.to(gl.uint8, bitcast=True) == 255, float("nan"), values)
'''
_UPCAST_FROM_LDS = (
    _UPCAST.replace("axis: gl.constexpr\n", "axis: gl.constexpr,\n    source: gl.constexpr,\n")
    .replace(
        "times 2 ** (scale - 127).",
        "times 2 ** (scale - 127).\n\n    The tile `x` is read from LDS after the scales have been moved.\n    ",
    )
    .replace("scaled_upcast(x, ", "scaled_upcast(x.load(source), ")
)
_SCALE = '''@gluon.jit
def {name}(values, scale, dtype: gl.constexpr, GROUP: gl.constexpr, layout: gl.constexpr, groups: gl.constexpr):
    """The {side} operand of a scaled dot in `dtype`: each run of GROUP elements along K times its scale."""
    if scale.dtype.is_floating():
        scale = scale.to(gl.float32)
    else:
        # E8M0: 2 ** (scale - 127); 0 is the subnormal 2 ** -127, 255 is NaN.
        bits = scale.to(gl.uint8, bitcast=True).to(gl.uint16) << 7
        scale = gl.where(bits == 0, 0x40, bits).to(gl.uint16).to(gl.bfloat16, bitcast=True).to(gl.float32)
        scale = gl.where(bits == 0x7F80, float("nan"), scale)
    {spread}
    return (gl.convert_layout(values, layout).to(gl.float32) * spread).to(dtype)
'''

__all__ = ["TensorFact", "emit_dot_scaled"]
