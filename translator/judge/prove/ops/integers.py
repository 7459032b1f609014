"""What operations on integers and conditions mean; they wrap as the operations do."""

from __future__ import annotations

from collections.abc import Callable

from gluonize.judge.prove.op_table import row
from gluonize.judge.prove.ops.opaque import generic
from gluonize.judge.prove.promises import divided
from gluonize.judge.prove.proof_values import Descriptor, NotProved, Tensor, like, wrap
from gluonize.judge.prove.symbolic_program import Machine
from gluonize.judge.prove.terms.elements import COMMUTES, Term, Terms, bits, is_integer
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.op import Op

# --- integers


def _two(name: str, function: Callable[[Terms, Term, Term, int], Term], boolean: Callable | None = None) -> None:
    @row(name)
    def run(m: Machine, op: Op, given: list) -> list:
        a, b = given
        if a.element == "i1":
            if boolean is None:
                raise NotProved(f"{name} of conditions", op)
            return [like(boolean(m.terms, a.term, b.term), op.type)]
        if name.startswith(("arith.div", "arith.rem")):
            divided(m, op, b, m.terms.value(b.term, bits(b.element)))
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


for _name in ("div", "rem"):
    _two(f"arith.{_name}si", _signed(_name))
    _two(f"arith.{_name}ui", _unsigned(_name))
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
        choice = t._atom(value)
        if mask is not None and choice is not None and choice.op == "sel":
            condition, *ways = choice.args
            if all(way.constant is not None for way in ways):
                return t.select(condition, *(t.integer(way.constant & mask) for way in ways))
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
        if by == w - 1:  # the sign
            return t.select(t.negative(t.value(a, w)), t.integer(-1 if signed else 1), t.integer(0))
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
        return generic(m, op, given)
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
    return [like(m.terms.pointer(pointer.term, step), op.type)]


@row("tt.ptr_to_int")
def ptr_to_int(m: Machine, op: Op, given: list) -> list:
    (x,), t = given, m.terms
    if x.term.op != "ptr":
        return generic(m, op, given)
    base = t.integer_of(t.node("addressof", (), (x.term.args[0],), "i64"))
    return [like(wrap(t, t.add(base, x.term.args[1]), op.type.element), op.type)]


@row("tt.int_to_ptr")
def int_to_ptr(m: Machine, op: Op, given: list) -> list:
    (x,), t = given, m.terms
    base = t.node("pointerto", (), (t.value(x.term, 64),), "ptr")
    return [like(t.pointer(base, t.integer(0)), op.type)]
