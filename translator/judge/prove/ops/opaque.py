"""Operations that stand for themselves: floating point but for what commutes (`terms.COMMUTES`), conversions, libraries, assembly."""

from __future__ import annotations

import re

from gluonize.judge.prove.op_table import row
from gluonize.judge.prove.proof_values import NotProved, Tensor, argument, element_of_type, indices, like, moved
from gluonize.judge.prove.symbolic_program import Machine
from gluonize.judge.prove.terms.elements import COMMUTES, is_integer
from gluonize.judge.prove.terms.scaled_maxima import multiplied
from gluonize.trace.model.op import Op
from gluonize.trace.model.op_text import VALUE

_HINTS = re.compile(r"(?:, )?\btt\.\w+ = dense<[^>]*> : tensor<\w+>(?:, )?|\bttg\.\w+(?: = [^,}]*)?(?:, )?")


# --- what is not interpreted


def said_of(op: Op) -> str:
    """What an operation says beside its operands, but for promises to the compiler."""
    text = _HINTS.sub("", op.body).replace("{}", "")
    return re.sub(rf"{VALUE}", "%", text).strip()


def generic(m: Machine, op: Op, given: list, how: str | None = None) -> list:
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
        if name == "mulf" and element == "f32" and len(args) == 2:
            made = multiplied(t, data, args)
        else:
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
    row(f"arith.{_name}")(generic)
for _name in (
    "exp exp2 log log2 log10 log1p expm1 sqrt rsqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh floor ceil "
    "trunc round roundeven absf erf erfc powf copysign atan2 absi fma fpowi ipowi ctpop ctlz cttz isnan isinf isfinite"
).split():
    row(f"math.{_name}")(generic)
row("tt.fp_to_fp", "tt.clampf", "tt.precise_sqrt", "tt.precise_divf", "tt.approx_divf", "tt.extern_elementwise")(
    generic
)


@row("tt.elementwise_inline_asm")
def inline_asm(m: Machine, op: Op, given: list) -> list:
    if "pure = true" not in op.text:
        raise NotProved("assembly that may do anything", op)
    if op.attribute("packed_element", 1) != 1:
        raise NotProved("assembly of packed elements", op)
    return generic(m, op, given)


@row("tt.bitcast", "arith.bitcast")
def bitcast(m: Machine, op: Op, given: list) -> list:
    (x,) = given
    source = x.element
    target = element_of_type(op.type.kind, op.type.element)
    if source == target:
        return [like(x.term, op.type)]
    made = generic(m, op, given, "")
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
