"""What operations without memory mean: numbers where all operands are integers, else expressions; and matrix products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gluonize.lift.machine.amd_ops import AMD
from gluonize.lift.machine.functions import function_of, mapped, params_of, plain_operation
from gluonize.lift.machine.machine import NotLifted, Run
from gluonize.lift.machine.memory_ops import MEMORY, read, result_name, write
from gluonize.lift.machine.spelled import has_name
from gluonize.lift.machine.sync_ops import SYNC, commit_to
from gluonize.lift.values.induction import added
from gluonize.lift.values.scalars import NAMES, Scalar, apply, atom, combine, number, unsigned
from gluonize.lift.values.tensors import Node, Value, View
from gluonize.lift.values.whole_products import whole_product
from gluonize.trace.model.op import Op
from gluonize.trace.model.types import Type

INTEGER = {
    "addi": "add", "subi": "sub", "muli": "mul", "divsi": "div", "remsi": "rem", "minsi": "min", "maxsi": "max",
    "andi": "and", "ori": "or", "xori": "xor", "shli": "shl", "shrsi": "shr",
}  # fmt: skip
PREDICATES = {
    "eq": "eq",
    "ne": "ne",
    "slt": "lt",
    "sle": "le",
    "sgt": "gt",
    "sge": "ge",
}
CASTS = ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui")
AXES = {"x": 0, "y": 1, "z": 2}
PACKED = {
    "add": "arith.addf",
    "sub": "arith.subf",
    "mul": "arith.mulf",
    "fma": "math.fma",
    "min": "arith.minnumf",
    "max": "arith.maxnumf",
}
UNSIGNED = {
    "divui": "div", "remui": "rem", "minui": "min", "maxui": "max", "shrui": "shr", "ult": "lt", "ule": "le", "ugt": "gt",
    "uge": "ge",
}  # fmt: skip


def constant(run: Run, op: Op, given: list[Value]) -> list[Value]:
    if not op.constant.only:
        raise NotLifted("a tensor of different constants", op)
    kind = replace(op.type, layout="")
    if kind.kind != "int":
        return [run.graph.node("arith.constant", (), kind, (op.constant.only,), result_name(op), op.place)]
    value = number(op.constant.integer)
    return [value if kind.shape is None else run.graph.node("tt.splat", (value,), kind, (), result_name(op), op.place)]


def program_id(run: Run, op: Op, given: list[Value]) -> list[Value]:
    axis = AXES[op.word]
    which, numbers = ("pid", run.program) if op.name == "tt.get_program_id" else ("np", run.grid)
    value = (*numbers, *(0 if which == "pid" else 1,) * 3)[axis]
    return [named(Scalar(value, atom(which, axis)), op)]


def arithmetic(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """An `arith` or `math` operation, element by element."""
    name = op.name.partition(".")[2]
    if all(isinstance(x, Scalar) for x in given) and op.type.shape is None and op.type.kind == "int":
        return [_integer(run, op, name, given)]
    if op.name == "arith.select" and isinstance(given[0], Scalar):
        return [given[1] if given[0].value else given[2]] if given[0].expr.is_const else [_node(run, op, given, ())]
    if name in ("addi", "muli") and _is_spread(given[1]) and not _is_spread(given[0]):
        given = given[::-1]  # one order, whichever side the canonicalizer has left a constant on
    attrs: tuple = ()
    if name in ("cmpi", "cmpf"):
        attrs = (op.word,)
    made = _node(run, op, given, attrs)
    return [added(run.graph, made) if name == "addi" else made]


def _is_spread(x: Value) -> bool:
    return isinstance(x, Node) and x.op == "tt.splat"


def _integer(run: Run, op: Op, name: str, given: list[Scalar]) -> Scalar:
    how = op.word if name == "cmpi" else name
    if how in UNSIGNED:
        return named(unsigned(UNSIGNED[how], *given, _bits(op)), op)
    if name == "cmpi":
        return named(combine(PREDICATES[how], *given), op)
    if name == "select":
        return named(combine("select", *given), op)
    if op.name in CASTS:
        bits = int(op.type.element[1:])
        if op.name == "arith.extsi" and op.operand_types and op.operand_types[0].element == "i1":
            return combine("sub", number(0), given[0])
        if op.name == "arith.trunci" and not -(2 ** (bits - 1)) <= given[0].value < 2**bits:
            raise NotLifted("an integer that does not fit is cut off", op)
        if op.name in ("arith.extui", "arith.index_castui") and given[0].value < 0:
            raise NotLifted("a negative integer is widened as an unsigned one", op)
        source = op.operand_types[0].element if op.operand_types else ""
        other = {source, op.type.element} == {"i32", "i64"}  # arithmetic with what it gives wraps around elsewhere
        return Scalar(given[0].value, apply(op.type.element, given[0].expr)) if other else given[0]
    if name not in INTEGER:
        raise NotLifted(f"{op.name} of integers that decide what is done", op)
    return named(combine(INTEGER[name], *given), op)


def _bits(op: Op) -> int:
    """How many bits the operands of an operation on integers have."""
    element = (op.operand_types or (op.type,))[0].element
    return int(element[1:]) if element[1:].isdigit() else 64


def named(value: Scalar, op: Op) -> Scalar:
    if (name := result_name(op)) and not value.expr.is_const and value.expr[0] not in ("arg", "it"):
        NAMES.setdefault(value.expr, name)
    return value


def _node(run: Run, op: Op, given: list[Value], attrs: tuple) -> Node:
    kind = replace(op.type, layout="")
    return run.graph.node(op.name, given, kind, attrs, result_name(op), op.place, run.around)


def plain(*attributes: Callable[[Op], object]) -> Callable:
    """A handler for an operation that is its name, its operands and these attributes."""

    def handler(run: Run, op: Op, given: list[Value]) -> list[Value]:
        return [_node(run, op, given, tuple(a(op) for a in attributes))]

    return handler


def fp_to_fp(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """A conversion between floating-point types, which says how it rounds where that is not to the nearest."""
    way = op.attribute("rounding")
    return [_node(run, op, given, (way,) if way not in (None, "rtne") else ())]


def make_range(run: Run, op: Op, given: list[Value]) -> list[Value]:
    return [_node(run, op, [], (op.attribute("start"), op.attribute("end")))]


def split(run: Run, op: Op, given: list[Value]) -> list[Value]:
    kind = replace(op.result_types[0], layout="")
    moved = given[0]
    if moved.op == "tt.trans" and moved.args[0].op == "tt.reshape":
        shape = moved.args[0].type.shape
        whole, rank = moved.args[0].args[0], len(shape) - 1
        if moved.attrs[0] == (*range(rank - 1), rank, rank - 1) and whole.type.shape == (
            *shape[: rank - 1],
            2 * shape[-1],
        ):
            box = tuple((0, n) for n in shape[: rank - 1])
            half = shape[-1]
            return [run.graph.part(whole, (*box, (h * half, (h + 1) * half))) for h in (0, 1)]
    return [run.graph.node("split", given, kind, (half,), place=op.place, context=run.around) for half in (0, 1)]


def unsplat(run: Run, op: Op, given: list[Value]) -> list[Value]:
    inner = given[0]
    while isinstance(inner, Node) and inner.op in ("tt.reshape", "tt.splat", "tt.broadcast", "tt.expand_dims"):
        inner = inner.args[0]
    if isinstance(inner, Scalar):
        return [inner]
    return [_node(run, op, given, ())]


def reduced(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """A reduction or scan of one or several tensors: each by one operation where that is all that happens to it, else by a function."""
    function = function_of(run, op)
    axis, reverse = op.attribute("axis"), op.attribute("reverse", False)
    kinds = [replace(kind, layout="") for kind in op.result_types]
    plain = [plain_operation(x, i, i + len(given)) for i, x in enumerate(function.results)]
    plain = [how if how and has_name(op.name, how, kind.element) else None for how, kind in zip(plain, kinds)]
    node, name = run.graph.node, result_name(op)
    if all(plain):
        return [
            node(op.name, (x,), kind, (how, axis, reverse), name, op.place, run.around)
            for x, kind, how in zip(given, kinds, plain)
        ]
    return [
        node(op.name, given, kind, (function, axis, reverse, i), "", op.place, run.around)
        for i, kind in enumerate(kinds)
    ]


def map_elementwise(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """A function of one element of each tensor, for all of them. Raises: NotLifted where neighbours go into it together."""
    function, pack = function_of(run, op), int(op.attribute("pack", 1))
    memo: dict[int, Node] = {}
    out = []
    for i in range(len(op.results)):
        lanes = []
        for lane in range(pack):
            tensors = {k * pack + lane: x for k, x in enumerate(given)}
            result = function.results[i * pack + lane]
            if not params_of(result) <= tensors.keys():
                raise NotLifted("a function of several elements of one tensor", op)
            lanes.append(mapped(run.graph, result, tensors, memo, op.place, run.around))
        if any(x is not lanes[0] for x in lanes):
            raise NotLifted("a function that treats elements that lie side by side differently", op)
        out.append(lanes[0])
    return out


# --- matrix products


def dot(
    run: Run, op: Op, a: Value, b: Value, acc: Node | None, kind: Type, scales: tuple = (), attrs: tuple = ()
) -> Node:
    if acc is not None and acc.op == "arith.constant" and float(acc.attrs[0]) == 0:
        acc = None
    first, second = read(run, a), read(run, b)
    precision = op.attribute("inputPrecision", 0) if first.type.element == "f32" else 0
    if not scales and (whole := whole_product(run.graph, first, second, acc, (precision,), run.around)) is not None:
        first, second, acc = whole
    args = (first, second, *scales) if acc is None else (first, second, *scales, acc)
    attrs = (acc is not None, precision, *attrs)
    name = "dot_scaled" if scales else "dot"
    return run.graph.node(name, args, replace(kind, layout=""), attrs, result_name(op), op.place, run.around)


def warp_group_dot(run: Run, op: Op, given: list[Value]) -> list[Value]:
    a, b, c = given[:3]
    use = given[3].value if len(given) > 3 and isinstance(given[3], Scalar) else 1
    return [dot(run, op, a, b, c if use else None, op.type)]


def plain_dot(run: Run, op: Op, given: list[Value]) -> list[Value]:
    return [dot(run, op, *given[:3], op.type)]


def scaled_dot(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """A product of scaled operands in registers; of scales that are all 1, or none, a plain one."""
    formats = op.attribute("lhs"), op.attribute("rhs")
    if len(given) == 3 and all(x.type.element.startswith("f8") for x in given[:2]):
        return [dot(run, op, *given, op.result_types[0])]
    if None in formats or len(given) != 5 or not all(op.attribute(f"{side}_k_pack", True) for side in ("lhs", "rhs")):
        raise NotLifted("a scaled product without one of its scales, or packed otherwise than along k", op)
    a, a_scale, b, b_scale, acc = given
    narrow = all(x.type.element.startswith("f8") for x in (a, b))
    if narrow and all(s.op == "tt.splat" and s.args[0] == number(127) for s in (a_scale, b_scale)):
        return [dot(run, op, a, b, acc, op.result_types[0])]
    return [dot(run, op, a, b, acc, op.result_types[0], (a_scale, b_scale), formats)]


def tensor_core(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """tcgen05: the product goes into tensor memory; barriers behind it are told."""
    scaled = op.name.endswith("scaled")
    views = [x for x in given if isinstance(x, View)]
    flags = [x for x in given if isinstance(x, Scalar)]
    count = 5 if scaled else 3
    a, b, d, *scale_views = views[:count]
    use, pred = flags[:2]
    if pred.value:
        acc = read(run, d) if use.value else None
        kind = Type("float", d.element, d.shape)
        scales, attrs = (), ()
        if scaled:
            scales = tuple(read(run, s) for s in scale_views)
            attrs = op.attribute("lhs"), op.attribute("rhs")
            if None in attrs:
                raise NotLifted("a scaled product whose formats are not written", op)
        write(run, d, dot(run, op, a, b, acc, kind, scales, attrs))
        for bar, told in zip(views[count:], flags[2:] or [number(1)] * len(views)):
            if told.value:
                commit_to(run, op, bar)
    return [None] * len(op.results)


def packed(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """Arithmetic on pairs of elements: the same as on each of them. Raises: NotLifted for fp4, fp8 and mixed types."""
    name = PACKED.get(op.word)
    if (
        name is None
        or op.type.element not in ("f32", "f16", "bf16")
        or any(x.type.element != op.type.element for x in given)
    ):
        raise NotLifted(
            f"arithmetic on pairs that gives {op.type.element} of {', '.join(x.type.element for x in given)}", op
        )
    kind = replace(op.type, layout="")
    return [run.graph.node(name, given, kind, (), result_name(op), op.place, run.around)]


def addptr(run: Run, op: Op, given: list[Value]) -> list[Value]:
    return [added(run.graph, _node(run, op, given, ()))]


def order_of(op: Op) -> tuple[int, ...]:
    return op.integers("order")


PURE: dict[str, Callable] = {
    "arith.constant": constant,
    "tt.get_program_id": program_id,
    "tt.get_num_programs": program_id,
    "tt.make_range": make_range,
    "tt.splat": plain(),
    "tt.broadcast": plain(),
    "tt.expand_dims": plain(lambda op: op.attribute("axis")),
    "tt.reshape": plain(),
    "tt.trans": plain(order_of),
    "tt.join": plain(),
    "tt.cat": plain(),
    "tt.split": split,
    "tt.unsplat": unsplat,
    "tt.addptr": addptr,
    "tt.bitcast": plain(),
    "tt.fp_to_fp": fp_to_fp,
    "tt.clampf": plain(lambda op: op.attribute("propagateNan", "")),
    "tt.mulhiui": plain(),
    "tt.precise_sqrt": plain(),
    "tt.precise_divf": plain(),
    "tt.reduce": reduced,
    "tt.scan": reduced,
    "tt.map_elementwise": map_elementwise,
    "tt.gather": plain(lambda op: op.attribute("axis")),
    "tt.dot": plain_dot,
    "tt.dot_scaled": scaled_dot,
    "ttng.packed_arith": packed,
    "ttng.warp_group_dot": warp_group_dot,
    "ttng.tc_gen5_mma": tensor_core,
    "ttng.tc_gen5_mma_scaled": tensor_core,
}


class Handlers(dict):
    """All handlers; every `arith` and `math` operation has one."""

    def get(self, name: str, default=None):
        if name in self:
            return self[name]
        return arithmetic if name.startswith(("arith.", "math.")) else default


HANDLERS = Handlers(PURE | MEMORY | SYNC | AMD)
