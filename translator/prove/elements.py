"""What operations without memory mean: of each element from those at the same place, of indices where an element goes to another place.

Integers wrap as the operations do. Which floating-point operations are taken to be equal is `terms.COMMUTES` and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from translator.prove.machine import Machine
from translator.prove.rows import row
from translator.prove.terms import COMMUTES, Term, Terms, bits, is_integer
from translator.prove.values import (
    Descriptor,
    NotProved,
    Tensor,
    again_shaped,
    argument,
    element_of_type,
    indices,
    lam_over,
    moved,
    symbol_of,
    wrap,
)
from translator.ttgir.elements import bits_of
from translator.ttgir.op import Op
from translator.ttgir.op_text import VALUE
from translator.ttgir.types import Type

AXES = {"x": 0, "y": 1, "z": 2}
_HINTS = re.compile(r"\{[^{}]*\}")


def like(term: Term, kind: Type) -> Tensor:
    """A tensor of a printed type."""
    element = element_of_type(kind.kind, kind.element)
    return Tensor(term, kind.shape or (), element, kind.element if kind.kind == "ptr" else "")


# --- constants, numbers of programs, shapes


@row("arith.constant")
def constant(m: Machine, op: Op, given: list) -> list:
    kind, said, t = op.type, op.constant, m.terms
    if said.raw or not said.only:
        return [like(_table(m, op, kind), kind)]
    return [like(_scalar(t, said.only, kind.element), kind)]


def _scalar(t: Terms, text: str, element: str) -> Term:
    if element == "i1":
        return t.true if text in ("true", "1", "-1") else t.false
    if is_integer(element):
        return wrap(t, t.integer(int(text, 0)), element)
    return t.node("float", text, (), element)


def _table(m: Machine, op: Op, kind: Type) -> Term:
    t, at, number = m.terms, indices(m.terms, kind.shape), m.terms.integer(0)
    for x, n in zip(at, kind.shape):
        number = t.add(t.scaled(number, n), x)
    made = t.node("table", (op.constant.raw, op.constant.elements), (number,), kind.element)
    return t.integer_of(made) if is_integer(kind.element) else made


@row("ub.poison", "llvm.mlir.undef", "llvm.mlir.poison")
def poison(m: Machine, op: Op, given: list) -> list:
    return [like(m.unset(op.type.element), op.type)]


@row("tt.get_program_id")
def program_id(m: Machine, op: Op, given: list) -> list:
    atom = m.terms.node("program", AXES[op.word], (), "i32", 0, m.terms.programs[AXES[op.word]] - 1)
    return [Tensor(m.terms.integer_of(atom), (), "i32")]


@row("tt.get_num_programs")
def num_programs(m: Machine, op: Op, given: list) -> list:
    atom = m.terms.node("programs", AXES[op.word], (), "i32", 1, m.terms.programs[AXES[op.word]])
    return [Tensor(m.terms.integer_of(atom), (), "i32")]


@row("tt.make_range")
def make_range(m: Machine, op: Op, given: list) -> list:
    start, end = op.attribute("start"), op.attribute("end")
    return [like(m.terms.add(m.terms.index(0, end - start), m.terms.integer(start)), op.type)]


@row("tt.splat", "tt.unsplat", "ttg.convert_layout", "amdg.in_thread_transpose", "gluon.set_auto_layout")
def same(m: Machine, op: Op, given: list) -> list:
    (x,) = given
    term = again_shaped(m.terms, x.term, x.shape, op.type.shape or ()) if op.name == "tt.unsplat" else x.term
    return [like(term, op.type)]


@row("tt.expand_dims")
def expand_dims(m: Machine, op: Op, given: list) -> list:
    (x,), shape = given, op.type.shape
    axis = op.attribute("axis")
    at = [m.terms.index(d + (d >= axis), n) for d, n in enumerate(x.shape)]
    assert shape is not None
    return [like(moved(m.terms, x.term, x.shape, at), op.type)]


@row("tt.broadcast")
def broadcast(m: Machine, op: Op, given: list) -> list:
    return [like(given[0].term, op.type)]  # an index of one element is 0 already


@row("tt.reshape")
def reshape(m: Machine, op: Op, given: list) -> list:
    (x,) = given
    if "allow_reorder" in op.body:
        raise NotProved("a reshape may order its elements anyhow", op)
    return [like(m.shared_term(again_shaped, x, op.type.shape), op.type)]


@row("tt.trans")
def trans(m: Machine, op: Op, given: list) -> list:
    (x,) = given
    order = op.integers("order")
    at = [m.terms.integer(0)] * len(order)
    for d, source in enumerate(order):
        at[source] = m.terms.index(d, op.type.shape[d])
    return [like(moved(m.terms, x.term, x.shape, at), op.type)]


@row("tt.join")
def join(m: Machine, op: Op, given: list) -> list:
    a, b = given
    last = m.terms.index(len(a.shape), 2)
    return [like(m.terms.select(m.terms.is_zero(last), a.term, b.term), op.type)]


@row("tt.split")
def split(m: Machine, op: Op, given: list) -> list:
    (x,) = given
    front = indices(m.terms, x.shape)[:-1]
    return [
        like(moved(m.terms, x.term, x.shape, [*front, m.terms.integer(n)]), kind)
        for n, kind in enumerate(op.result_types)
    ]


@row("tt.cat")
def cat(m: Machine, op: Op, given: list) -> list:
    a, b = given
    t, at = m.terms, indices(m.terms, op.type.shape)
    first, n = t.less(at[0], t.integer(a.shape[0])), a.shape[0]
    left = t.assuming(a.term, []) if a.shape == op.type.shape else moved(t, a.term, a.shape, at)
    return [like(t.select(first, left, moved(t, b.term, b.shape, [t.add(at[0], t.integer(-n)), *at[1:]])), op.type)]


@row("amdg.extract_slice")
def extract_slice(m: Machine, op: Op, given: list) -> list:
    (x,) = given
    at = [
        m.terms.add(m.terms.index(d, n), m.terms.integer(s)) for d, (n, s) in enumerate(zip(op.type.shape, op.indices))
    ]
    return [like(moved(m.terms, x.term, x.shape, at), op.type)]


@row("amdg.concat")
def concat(m: Machine, op: Op, given: list) -> list:
    t, shape, tile = m.terms, op.type.shape, given[0].shape
    counts = [n // p for n, p in zip(shape, tile)]
    at = indices(t, shape)
    inner = [t.rem(x, t.integer(p)) for x, p in zip(at, tile)]
    which = t.integer(0)
    for x, p, n in zip(at, tile, counts):
        which = t.add(t.scaled(which, n), t.div(x, t.integer(p)))
    out = None
    for number in reversed(range(len(given))):
        part = moved(t, given[number].term, tile, inner)
        out = part if out is None else t.select(t.is_zero(t.add(which, t.integer(-number))), part, out)
    return [like(out, op.type)]


@row("tt.gather")
def gather(m: Machine, op: Op, given: list) -> list:
    source, where = given
    axis = op.attribute("axis")
    at = indices(m.terms, where.shape)
    at[axis] = m.terms.value(where.term, bits(where.element))
    return [like(moved(m.terms, source.term, source.shape, at), op.type)]


# --- integers


def _two(name: str, function: Callable[[Terms, Term, Term, int], Term], boolean: Callable | None = None) -> None:
    @row(name)
    def run(m: Machine, op: Op, given: list) -> list:
        a, b = given
        if a.element == "i1":
            if boolean is None:
                raise NotProved(f"{name} of conditions", op)
            return [like(boolean(m.terms, a.term, b.term), op.type)]
        return [like(wrap(m.terms, function(m.terms, a.term, b.term, bits(a.element)), a.element), op.type)]


def _xor(t: Terms, a: Term, b: Term) -> Term:
    return t.either(t.both(a, t.no(b)), t.both(t.no(a), b))


_and: Callable[[Terms, Term, Term], Term] = lambda t, a, b: t.both(a, b)  # noqa: E731
_or: Callable[[Terms, Term, Term], Term] = lambda t, a, b: t.either(a, b)  # noqa: E731
_two("arith.addi", lambda t, a, b, w: t.add(a, b), _xor)
_two("arith.subi", lambda t, a, b, w: t.add(a, b, -1), _xor)
_two("arith.muli", lambda t, a, b, w: t.multiply(a, b), _and)


def _signed(function: str) -> Callable[[Terms, Term, Term, int], Term]:
    return lambda t, a, b, w: getattr(t, function)(t.value(a, w), t.value(b, w))


def _unsigned(function: str) -> Callable[[Terms, Term, Term, int], Term]:
    return lambda t, a, b, w: getattr(t, function)(t.unsigned(a, w), t.unsigned(b, w))


_two("arith.divsi", _signed("div"))
_two("arith.remsi", _signed("rem"))
_two("arith.divui", _unsigned("div"))
_two("arith.remui", _unsigned("rem"))
_two("arith.minsi", _signed("smaller"), _or)
_two("arith.maxsi", _signed("larger"), _and)
_two("arith.minui", _unsigned("smaller"), _and)
_two("arith.maxui", _unsigned("larger"), _or)


def _opaque(op_name: str) -> Callable[[Terms, Term, Term, int], Term]:
    def made(t: Terms, a: Term, b: Term, w: int) -> Term:
        args = [t.value(a, w), t.value(b, w)]
        if op_name in COMMUTES:
            args.sort()
        half = 1 << (w - 1)
        return t.integer_of(t.node(op_name, w, args, "int", -half, half - 1))

    return made


def _bits_and(t: Terms, a: Term, b: Term, w: int) -> Term:
    x, y = t.value(a, w), t.value(b, w)
    for value, mask in ((x, y.constant), (y, x.constant)):
        if mask is not None and mask > 0 and mask & (mask + 1) == 0:
            source = value if value.low >= 0 else t.unsigned(value, w)
            return t.rem(source, t.integer(mask + 1))
        if mask == 0:
            return t.integer(0)
        if mask == -1:
            return value
    return _opaque("andi")(t, a, b, w)


def _bits_or(t: Terms, a: Term, b: Term, w: int) -> Term:
    x, y = t.value(a, w), t.value(b, w)
    if x.constant == 0 or y.constant == 0:
        return y if x.constant == 0 else x
    return x if x is y else _opaque("ori")(t, a, b, w)


def _bits_xor(t: Terms, a: Term, b: Term, w: int) -> Term:
    x, y = t.value(a, w), t.value(b, w)
    if x.constant == 0 or y.constant == 0:
        return y if x.constant == 0 else x
    if x is y:
        return t.integer(0)
    if -1 in (x.constant, y.constant):
        return t.add(t.integer(-1), y if x.constant == -1 else x, -1)
    return _opaque("xori")(t, a, b, w)


_two("arith.andi", _bits_and, _and)
_two("arith.ori", _bits_or, _or)
_two("arith.xori", _bits_xor, _xor)


def _shift_left(t: Terms, a: Term, b: Term, w: int) -> Term:
    by = b.constant
    return t.scaled(a, 1 << by) if by is not None and 0 <= by < w else _opaque("shli")(t, a, b, w)


def _shift_right(signed: bool) -> Callable[[Terms, Term, Term, int], Term]:
    def made(t: Terms, a: Term, b: Term, w: int) -> Term:
        by, x = b.constant, t.value(a, w) if signed else t.unsigned(a, w)
        if by is not None and 0 <= by < w and x.low >= 0:
            return t.div(x, t.integer(1 << by))
        return _opaque("shrsi" if signed else "shrui")(t, a, b, w)

    return made


_two("arith.shli", _shift_left)
_two("arith.shrsi", _shift_right(True))
_two("arith.shrui", _shift_right(False))


@row("tt.mulhiui")
def mulhiui(m: Machine, op: Op, given: list) -> list:
    a, b = given
    w = bits(a.element)
    x, y = sorted((m.terms.unsigned(a.term, w), m.terms.unsigned(b.term, w)))
    if x.constant is not None and y.constant is not None:
        made = m.terms.integer((x.constant * y.constant) >> w)
    else:
        made = m.terms.integer_of(m.terms.node("mulhu", w, (x, y), "int", 0, (1 << w) - 1))
    return [like(wrap(m.terms, made, a.element), op.type)]


@row("arith.cmpi")
def cmpi(m: Machine, op: Op, given: list) -> list:
    (a, b), how, t = given, op.word, m.terms
    if a.element == "i1":
        if how in ("eq", "ne"):
            different = _xor(t, a.term, b.term)
            return [like(different if how == "ne" else t.no(different), op.type)]
        raise NotProved("an order of conditions", op)
    if a.element == "ptr":
        return _generic(m, op, given)
    w = bits(a.element)
    see = t.unsigned if how[0] == "u" else t.value
    x, y = see(a.term, w), see(b.term, w)
    if how in ("eq", "ne"):
        equal = t.is_zero(t.add(x, y, -1))
        return [like(equal if how == "eq" else t.no(equal), op.type)]
    order = how[1:]
    if order in ("gt", "ge"):
        x, y = y, x
    below = t.less if how[0] == "s" else _unsigned_below(m, (x, y), (a, b) if order in ("lt", "le") else (b, a), w)
    strict = below(x, y) if order in ("lt", "gt") else t.no(below(y, x))
    return [like(strict, op.type)]


def _unsigned_below(
    m: Machine, numbers: tuple[Term, Term], given: tuple[Tensor, Tensor], w: int
) -> Callable[[Term, Term], Term]:
    """x < y of unsigned numbers. Below a number that is one with a sign too is what is not negative as such, and below it."""
    t = m.terms
    signed = {number: t.value(x.term, w) for number, x in zip(numbers, given)}

    def below(x: Term, y: Term) -> Term:
        if y.high < 1 << (w - 1):
            return t.both(t.no(t.negative(signed[x])), t.less(signed[x], _positive_part(t, y)))
        if x.high < 1 << (w - 1):
            return t.no(t.both(t.no(t.negative(signed[y])), t.no(t.less(x, signed[y]))))
        return t.less(x, y)

    def _positive_part(t: Terms, y: Term) -> Term:
        """y, of which it only matters what is greater than 0: `max(n, 0)` is `n`."""
        only = t._atom(y)
        if only is not None and only.op == "max" and any(z.constant == 0 for z in only.args):
            return next((z for z in only.args if z.constant != 0), y)
        return y

    return below


@row("arith.select")
def select(m: Machine, op: Op, given: list) -> list:
    condition, a, b = given
    if isinstance(a, Descriptor) or not isinstance(a, Tensor):
        raise NotProved("a choice of what is no tensor", op)
    t = m.terms
    if is_integer(a.element):
        w = bits(a.element)
        made = wrap(t, t.select(condition.term, t.value(a.term, w), t.value(b.term, w)), a.element)
    else:
        made = t.select(condition.term, a.term, b.term)
    return [like(made, op.type)]


@row("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui")
def resized(m: Machine, op: Op, given: list) -> list:
    (a,), t, target = given, m.terms, op.type.element
    target = "i64" if target == "index" else target
    if a.element == "i1":
        if op.name == "arith.trunci":
            return [like(a.term, op.type)]
        one = -1 if op.name == "arith.extsi" else 1
        return [like(t.select(a.term, t.integer(one), t.integer(0)), op.type)]
    w = bits(a.element)
    if target == "i1":
        return [like(t.no(t.is_zero(t.rem(t.unsigned(a.term, w), t.integer(2)))), op.type)]
    if bits(target) > w:
        wide = t.unsigned(a.term, w) if op.name in ("arith.extui", "arith.index_castui") else t.value(a.term, w)
        return [like(wrap(t, wide, target), op.type)]
    return [like(wrap(t, a.term, target), op.type)]


@row("tt.addptr")
def addptr(m: Machine, op: Op, given: list) -> list:
    pointer, offset = given
    step = m.terms.scaled(m.terms.value(offset.term, bits(offset.element)), bits_of(op.type.element) // 8)
    return [like(m.terms.pointer(*_parts(m, pointer.term, step)), op.type)]


def _parts(m: Machine, pointer: Term, step: Term) -> tuple[Term, Term]:
    return pointer, step


@row("tt.ptr_to_int")
def ptr_to_int(m: Machine, op: Op, given: list) -> list:
    (x,), t = given, m.terms
    if x.term.op != "ptr":
        return _generic(m, op, given)
    base = t.integer_of(t.node("addressof", (), (x.term.args[0],), "i64"))
    return [like(wrap(t, t.add(base, x.term.args[1]), op.type.element), op.type)]


@row("tt.int_to_ptr")
def int_to_ptr(m: Machine, op: Op, given: list) -> list:
    (x,), t = given, m.terms
    base = t.node("pointerto", (), (t.value(x.term, 64),), "ptr")
    return [like(t.pointer(base, t.integer(0)), op.type)]


# --- what is not interpreted


def said_of(op: Op) -> str:
    """What an operation says beside its operands, but for promises to the compiler."""
    text = _HINTS.sub(lambda found: "" if "tt." in found.group() or "ttg." in found.group() else found.group(), op.body)
    return re.sub(rf"{VALUE}", "%", text).strip()


def _generic(m: Machine, op: Op, given: list, how: str | None = None) -> list:
    """An operation on elements that stands for itself."""
    t = m.terms
    if not all(isinstance(x, Tensor) for x in given) or op.regions:
        raise NotProved(f"{op.name} is not known", op)
    args = [argument(t, x) for x in given]
    name = op.name.rpartition(".")[2]
    if name in COMMUTES and len(args) == 2:
        args.sort()
    out = []
    for number, kind in enumerate(op.result_types):
        data = (op.name, said_of(op) if how is None else how, number, tuple(x.element for x in given))
        element = element_of_type(kind.kind, kind.element)
        made = t.node(name, data, args, element)
        if is_integer(element):
            made = t.integer_of(made)
        elif element == "ptr":
            made = t.pointer(made, t.integer(0))
        out.append(like(made, kind))
    return out


for _name in (
    "addf subf mulf divf remf maximumf minimumf maxnumf minnumf negf extf truncf sitofp uitofp fptosi fptoui cmpf "
    "mulsi_extended mului_extended addui_extended"
).split():
    row(f"arith.{_name}")(_generic)
for _name in (
    "exp exp2 log log2 log10 log1p expm1 sqrt rsqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh floor ceil "
    "trunc round roundeven absf erf erfc powf copysign atan2 absi fma fpowi ipowi ctpop ctlz cttz isnan isinf isfinite"
).split():
    row(f"math.{_name}")(_generic)
row("tt.fp_to_fp", "tt.clampf", "tt.precise_sqrt", "tt.precise_divf", "tt.approx_divf", "tt.extern_elementwise")(
    _generic
)


@row("tt.elementwise_inline_asm")
def inline_asm(m: Machine, op: Op, given: list) -> list:
    if "pure = true" not in op.text:
        raise NotProved("assembly that may do anything", op)
    if op.attribute("packed_element", 1) != 1:
        raise NotProved("assembly of packed elements", op)
    return _generic(m, op, given)


@row("tt.bitcast", "arith.bitcast")
def bitcast(m: Machine, op: Op, given: list) -> list:
    (x,) = given
    source = x.element
    target = element_of_type(op.type.kind, op.type.element)
    if source == target:
        return [like(x.term, op.type)]
    made = _generic(m, op, given, "")
    inner = made[0].term
    if x.term.op == "bitcast" and x.term.args[0].element == target:
        return [like(x.term.args[0], op.type)]
    return [like(inner, op.type)]


@row("ttg.fp4_to_fp")
def fp4_to_fp(m: Machine, op: Op, given: list) -> list:
    """Two numbers of a byte along an axis, the low half first."""
    (x,), t = given, m.terms
    axis = op.attribute("axis")
    at = indices(t, op.type.shape)
    half = t.rem(at[axis], t.integer(2))
    at[axis] = t.div(at[axis], t.integer(2))
    byte = t.unsigned(moved(t, x.term, x.shape, at), 8)
    return [like(t.node("fp4", op.type.element, (byte, half), op.type.element), op.type)]


# --- sums and the like


def region_terms(m: Machine, op: Op, given: Sequence[Tensor]) -> list[Term]:
    """What the region of a reduction or scan gives, of symbols for its operands."""
    block = op.regions[0].blocks[0]
    if len(op.regions[0].blocks) > 1:
        raise NotProved("branches in a function of elements", op)
    env = dict(m.env)
    for number, (name, kind) in enumerate(block.arguments):
        symbol = m.terms.node("sym", ("operand", number), (), kind.element)
        term = m.terms.integer_of(symbol) if is_integer(kind.element) else symbol
        env[name] = Tensor(term, (), kind.element)
    results = m.pure_block(block, env)
    return [argument(m.terms, x) for x in results]


def over_axis(m: Machine, x: Tensor, axis: int, rest: list[Term]) -> Term:
    """A tensor as a function along one axis, with the other indices given."""
    t, n = m.terms, x.shape[axis]
    along = t.fresh("idxf", "int", 0, n - 1)
    at = [*rest[:axis], t.integer_of(along) if n > 1 else t.integer(0), *rest[axis:]]
    body = moved(t, argument(t, x), x.shape, at)
    return t.lam(body, [along if n > 1 else None])


@row("tt.reduce")
def reduce_op(m: Machine, op: Op, given: list) -> list:
    t, axis = m.terms, op.attribute("axis")
    function = region_terms(m, op, given)
    shape = given[0].shape[:axis] + given[0].shape[axis + 1 :]
    if given[0].shape[axis] == 1:
        return [
            like(moved(t, x.term, x.shape, indices(t, shape)[:axis] + [t.integer(0)] + indices(t, shape)[axis:]), k)
            for x, k in zip(given, op.result_types)
        ]
    operands = [over_axis(m, x, axis, indices(t, shape)) for x in given]
    elements = tuple(x.element for x in given)
    group = t.node("region", (len(function), elements), function, "region")
    out = []
    for number, kind in enumerate(op.result_types):
        made = t.node("reduce", (number, given[0].shape[axis]), (group, *operands), kind.element)
        out.append(like(t.integer_of(made) if is_integer(kind.element) else made, kind))
    return out


@row("tt.scan")
def scan_op(m: Machine, op: Op, given: list) -> list:
    t, axis = m.terms, op.attribute("axis")
    function = region_terms(m, op, given)
    at = indices(t, given[0].shape)
    operands = [over_axis(m, x, axis, at[:axis] + at[axis + 1 :]) for x in given]
    group = t.node("region", (len(function), tuple(x.element for x in given)), function, "region")
    out = []
    for number, kind in enumerate(op.result_types):
        data = (number, given[0].shape[axis], bool(op.attribute("reverse", False)))
        made = t.node("scan", data, (group, at[axis], *operands), kind.element)
        out.append(like(t.integer_of(made) if is_integer(kind.element) else made, kind))
    return out


@row("tt.histogram")
def histogram(m: Machine, op: Op, given: list) -> list:
    t = m.terms
    operands = [lam_over(t, argument(t, x), x.shape) for x in given]
    made = t.node(
        "histogram", (given[0].shape, op.type.shape), (t.index(0, op.type.shape[0]), *operands), "int", 0, 1 << 31
    )
    return [like(wrap(t, t.integer_of(made), op.type.element), op.type)]


@row("tt.dot")
def dot(m: Machine, op: Op, given: list) -> list:
    a, b, acc = given[:3]
    how = op.attribute("inputPrecision", "ieee") if a.element == b.element == "f32" else ""
    return [product(m, op, a, b, acc, str(how))]


WIDER = ("f16", "bf16")


def narrow(t: Terms, term: Term) -> Term | None:
    """The number of 8 bits that a number was widened from, which is the same number; None of another. Of widened numbers the product is that of
    the numbers: both have their exact products summed in 32 bits."""
    if term.op == "fp_to_fp" and term.args[0].element.startswith("f8") and term.element in WIDER:
        return term.args[0]
    if term.op == "sel":
        ways = [narrow(t, x) for x in term.args[1:]]
        known = next((x for x in ways if x is not None), None)
        if known is None:
            return None
        ways = [
            (
                t.node("float", y.data, (), known.element)
                if x is None and y.op == "float" and y.data == "0.000000e+00"
                else x
            )
            for x, y in zip(ways, term.args[1:])
        ]
        return None if None in ways else t.select(term.args[0], *ways)
    return None


def product(m: Machine, op: Op, a: Tensor, b: Tensor, acc: Tensor, how: str, scales: Sequence[Term] = ()) -> Tensor:
    """acc + a @ b. What is multiplied is named by the elements of a row and of a column, in order."""
    t, rank = m.terms, len(a.shape)
    pair = [narrow(t, x.term) for x in (a, b)]
    if a.element in WIDER and b.element in WIDER and None not in pair:
        a, b = (Tensor(term, x.shape, term.element) for term, x in zip(pair, (a, b)))
    at = indices(t, acc.shape)
    row_of = over_axis(m, a, rank - 1, at[: rank - 1])
    column_of = over_axis(m, b, rank - 2, [*at[: rank - 2], at[rank - 1]])
    data = (how, a.shape[-1], a.element, b.element)
    made = t.node("dot", data, (row_of, column_of, argument(t, acc), *scales), acc.element)
    return like(t.integer_of(made) if is_integer(acc.element) else made, op.type)


WHOLE = (["e4m3", "e4m3"], ["e5m2", "e5m2"], ["e4m3", "e5m2"], ["e5m2", "e4m3"])  # each number in a byte of its own


@row("tt.dot_scaled")
def dot_scaled(m: Machine, op: Op, given: list) -> list:
    t = m.terms
    parts = op.groups
    scale_a = op.keyword("scale")
    names = list(op.operands)
    scaled = [i for i in op.keywords("scale")]
    plain = [i for i in range(len(names)) if i not in scaled]
    a, b, acc = (given[i] for i in plain[:3])
    words = re.findall(r"(?:lhs|rhs) = (\w+)", op.body)
    # Scales of one number: 127 stands for 1.
    if all(given[i].term.constant == 127 for i in scaled):
        scaled = []
    if not scaled and all(x.element.startswith("f8") for x in (a, b)) and words in WHOLE:
        return [product(m, op, a, b, acc, "")]
    raise NotProved(f"scaled products are not known ({len(parts)} parts, {words})", op)


# --- no effect


@row(
    "rocdl.sched.barrier", "rocdl.s.setprio", "rocdl.iglp.opt", "rocdl.sched.group.barrier", "llvm.intr.assume", "ttg.local_dealloc"
)  # fmt: skip
def no_effect(m: Machine, op: Op, given: list) -> list:
    return []


__all__ = ["argument", "like", "said_of", "symbol_of"]
