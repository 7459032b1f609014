"""Expressions of the lifted kernel as Triton text."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence

from gluonize.lift.machine.machine import NotLifted
from gluonize.lift.values.scalars import Expr, apply, const, floored, from_terms, terms
from gluonize.lift.values.tensors import Node
from gluonize.trace.model.language import (
    COMPARISONS,
    DTYPES,
    FUNCTIONS,
    NAN_KEEPING,
    OPERATORS,
    REDUCTIONS,
    SCANS,
    UNSIGNED_COMPARISONS,
    UNSIGNED_FUNCTIONS,
    UNSIGNED_OPERATORS,
)
from gluonize.trace.model.types import Type

INFIX = {
    "add": ("+", 5), "sub": ("-", 5), "mul": ("*", 6), "div": ("//", 6), "rem": ("%", 6), "and": ("&", 3), "or": ("|", 1),
    "xor": ("^", 2), "shl": ("<<", 4), "shr": (">>", 4), "eq": ("==", 0), "ne": ("!=", 0), "lt": ("<", 0), "le": ("<=", 0),
    "gt": (">", 0), "ge": (">=", 0),
}  # fmt: skip
SIGNS = {sign: name for name, (sign, _) in INFIX.items()}
# Functions of elements, or of other tensors, that take no other arguments than tensors.
CALLED = {name: called for name, (called, _) in FUNCTIONS.items()} | {"tt.join": "join", "tt.clampf": "clamp"}
# Operations on integers taken as unsigned ones, by what they are on signed ones.
UNSIGNED = {name: SIGNS[sign] for name, sign in UNSIGNED_OPERATORS.items()}
UNSIGNED |= {name: f"tl.{called}" for name, called in UNSIGNED_FUNCTIONS.items()}
CASTS = ("arith.truncf", "arith.extf", "arith.sitofp", "arith.fptosi", "arith.extsi", "arith.trunci", "tt.fp_to_fp")
UNSIGNED_NUMBERS = {
    "divu": "div", "remu": "rem", "shru": "shr", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge", "minu": "tl.minimum",
    "maxu": "tl.maximum",
}  # fmt: skip
ATOM, CALL = 10, 9

Texts = Callable[["Node | Expr"], tuple[str, int]]  # of an operand: its text and how tightly it binds


def dtype_text(element: str) -> str:
    """Raises: NotLifted for a type that Triton has no name for."""
    if element not in DTYPES:
        raise NotLifted(f"Triton has no element type {element}")
    return f"tl.{DTYPES[element]}"


def shape_text(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def bound(text: tuple[str, int], level: int) -> str:
    """The text, in brackets where it binds less than `level`."""
    return text[0] if text[1] >= level else f"({text[0]})"


def infix(name: str, left: tuple[str, int], right: tuple[str, int]) -> tuple[str, int]:
    sign, level = INFIX[name]
    return f"{bound(left, level + (level == 0))} {sign} {bound(right, level + 1)}", level


def argument_text(name: str) -> str:
    """`a_desc.shape.0` -> `a_desc.shape[0]`, `pair.1` -> `pair[1]`."""
    name = name.replace(".stride.", ".strides.")
    return re.sub(r"\.(\d+)", r"[\1]", name)


def expr_text(expr: Expr, inner: Callable[[Expr], tuple[str, int]]) -> tuple[str, int]:
    """An operation on integers; `inner` gives the text of an operand."""
    name, *operands = expr
    if name == "const":
        return str(expr[1]), ATOM if expr[1] >= 0 else 7
    if name == "arg":
        return argument_text(expr[1]), ATOM
    if name in ("pid", "np"):
        return f"tl.{'program_id' if name == 'pid' else 'num_programs'}({expr[1]})", CALL
    if name in ("add", "sub") and (found := floored(expr)) is not None:
        return f"tl.maximum({inner(found[0])[0]}, {found[1]})", CALL
    if name == "div" and (covered := _covered(*operands)) is not None:
        return f"tl.cdiv({inner(covered)[0]}, {inner(operands[1])[0]})", CALL
    if name in INFIX:
        return infix(name, inner(operands[0]), inner(operands[1]))
    if name in UNSIGNED_NUMBERS:
        return _unsigned_text(UNSIGNED_NUMBERS[name], [inner(x)[0] for x in operands[:2]], operands[2][1])
    given = ", ".join(inner(x)[0] for x in operands)
    if name in ("i64", "i32"):
        return f"tl.cast({given}, tl.int{name[1:]})", CALL
    return f"tl.{ {'min': 'minimum', 'max': 'maximum', 'select': 'where'}[name] }({given})", CALL


def _unsigned_text(how: str, operands: Sequence[str], bits: int) -> tuple[str, int]:
    """An operation on two integers taken as unsigned; what it gives is a signed one, or the answer of a comparison."""
    left, right = (f"tl.cast({x}, tl.uint{bits})" for x in operands)
    if how in INFIX and INFIX[how][1] == 0:
        return infix(how, (left, CALL), (right, CALL))
    text = infix(how, (left, CALL), (right, CALL))[0] if how in INFIX else f"{how}({left}, {right})"
    return f"tl.cast({text}, tl.int{bits})", CALL


def _covered(number: Expr, by: Expr) -> Expr | None:
    """`x` of `(x + by - 1) // by`."""
    rest = terms(apply("sub", apply("add", number, const(1)), by))
    return from_terms(rest) if rest and len(rest) < len(terms(number)) and (not by.is_const or by[1] > 1) else None


def constant_text(node: Node) -> str:
    """The one number of a constant tensor."""
    text = node.attrs[0]
    if text in ("true", "false"):
        return str(text == "true")
    if not node.type.is_float:
        return str(int(text))
    value = _float(text, node.type.element)
    return str(value) if math.isfinite(value) else f'float("{value}")'


def _float(text: str, element: str) -> float:
    if not text.startswith("0x"):
        return float(text)
    bits = bytes.fromhex(text[2:])
    if element == "bf16":
        return struct.unpack(">f", bits + b"\0\0")[0]
    kind = {2: ">e", 4: ">f", 8: ">d"}.get(len(bits))
    if kind is None:
        raise NotLifted(f"the constant {text} of {element}")
    return struct.unpack(kind, bits)[0]


def is_scalar_like(x: Node | Expr) -> bool:
    """Whether it is one number everywhere, so that Triton spreads it by itself."""
    return not isinstance(x, Node) or x.op in ("tt.splat", "arith.constant") or not x.type.shape


def operands_of(node: Node, args: tuple) -> list[Node | Expr]:
    """Operands of an elementwise operation without what Triton's broadcasting does by itself."""
    shape = node.type.shape
    if not shape:
        return list(args)
    whole = [x for x in args if not is_scalar_like(x)]
    out: list[Node | Expr] = []
    for x in args:
        if isinstance(x, Node) and x.op == "tt.splat" and whole:
            x = x.args[0]
        out.append(x)
    bare = [x.args[0] if isinstance(x, Node) and x.op == "tt.broadcast" else x for x in out]
    shapes = [x.type.shape for x in bare if isinstance(x, Node) and x.type.shape and not is_scalar_like(x)]
    if shapes and tuple(max(n) for n in zip(*shapes)) == shape:
        return bare
    return out


def node_text(node: Node, texts: Texts) -> tuple[str, int]:
    """An operation that gives one tensor. Raises: NotLifted for one without a Triton spelling."""
    name, args = node.op, node.args
    if name == "arith.constant":
        if not node.type.shape:
            return constant_text(node), ATOM
        return f"tl.full({shape_text(node.type.shape)}, {constant_text(node)}, {dtype_text(node.type.element)})", CALL
    if name == "arith.divf":
        left, right = operands_of(node, args)
        return f"{bound(_operand(left, texts), 6)} / {bound(_operand(right, texts), 7)}", 6
    if name in OPERATORS:
        left, right = operands_of(node, args)
        return infix(SIGNS[OPERATORS[name]], _operand(left, texts), _operand(right, texts))
    if name == "arith.negf":
        return f"-{bound(texts(args[0]), 7)}", 7
    if name in UNSIGNED or (name == "arith.cmpi" and node.attrs[0] in UNSIGNED_COMPARISONS):
        how = UNSIGNED.get(name) or SIGNS[UNSIGNED_COMPARISONS[node.attrs[0]]]
        given = [_operand(x, texts)[0] for x in operands_of(node, args)]
        return _unsigned_text(how, given, int(args[0].type.element[1:]))
    if name in ("arith.cmpi", "arith.cmpf"):
        if node.attrs[0] not in COMPARISONS:
            raise NotLifted(f"a comparison {node.attrs[0]}")
        left, right = operands_of(node, args)
        return f"{bound(_operand(left, texts), 1)} {COMPARISONS[node.attrs[0]]} {bound(_operand(right, texts), 1)}", 0
    if name == "tt.addptr":
        pointer, offset = operands_of(node, args)
        return f"{bound(texts(pointer), 5)} + {bound(texts(offset), 6)}", 5
    if name in CASTS:
        given_type = args[0].type.element if isinstance(args[0], Node) else ""
        if (
            (name, given_type) in (("arith.extsi", "i1"), ("arith.sitofp", "i1"))
            or name == "arith.trunci"
            and node.type.element == "i1"
        ):
            raise NotLifted(f"{name} of truths: Triton's are 0 and 1, and everything but 0 is one")
        way = f', fp_downcast_rounding="{node.attrs[0]}"' if node.attrs else ""
        return f"{bound(texts(args[0]), CALL)}.to({dtype_text(node.type.element)}{way})", CALL
    if name in ("arith.uitofp", "arith.extui") and isinstance(args[0], Node):
        kind = args[0].type.element
        plain = "" if kind == "i1" else f".to(tl.uint{kind[1:]})"
        return f"{bound(texts(args[0]), CALL)}{plain}.to({dtype_text(node.type.element)})", CALL
    if name in CALLED or name in NAN_KEEPING:
        given = [_operand(x, texts)[0] for x in operands_of(node, args)]
        if name in NAN_KEEPING or name == "tt.clampf" and node.attrs == ("all",):
            given.append("propagate_nan=tl.PropagateNan.ALL")
        return f"tl.{(CALLED | NAN_KEEPING)[name]}({', '.join(given)})", CALL
    return shape_text_of(node, texts)


def has_name(op: str, how: str, element: str) -> bool:
    """Whether Triton has a function for a reduction or scan by one operation that gives a tensor of the same type."""
    widened = ("i1", "i8", "i16", "bf16") if op == "tt.reduce" and how != "arith.addf" else ("i1", "i8", "i16")
    return how in (REDUCTIONS if op == "tt.reduce" else SCANS) and element not in widened


def unspread(x: Node | Expr) -> Node | Expr:
    """What Triton spreads by itself to the shape of the pointers that it goes with."""
    return x.args[0] if isinstance(x, Node) and x.op == "tt.broadcast" else x  # type: ignore[return-value]


def _operand(x: Node | Expr, texts: Texts) -> tuple[str, int]:
    """A constant tensor is its number where another operand has the shape."""
    if isinstance(x, Node) and x.op == "arith.constant" and x.type.shape:
        text = constant_text(x)
        return text, 7 if text.startswith("-") else ATOM
    return texts(x)


def shape_text_of(node: Node, texts: Texts) -> tuple[str, int]:
    """Operations that move elements, load them or combine them along an axis."""
    name, args, shape = node.op, node.args, node.type.shape or ()
    first = texts(args[0]) if args else ("", ATOM)
    if name == "tt.make_range":
        return f"tl.arange({node.attrs[0]}, {node.attrs[1]})", CALL
    if name == "tt.splat":
        return f"tl.full({shape_text(shape)}, {first[0]}, {dtype_text(node.type.element)})" if node.type.kind != "ptr" else (
            f"tl.broadcast_to({first[0]}, {shape_text(shape)})"
        ), CALL  # fmt: skip
    if name == "tt.broadcast":
        return f"tl.broadcast_to({first[0]}, {shape_text(shape)})", CALL
    if name == "tt.expand_dims":
        if len(shape) == 2:
            return f"{bound(first, CALL)}[{'None, :' if node.attrs[0] == 0 else ':, None'}]", CALL
        return f"tl.expand_dims({first[0]}, {node.attrs[0]})", CALL
    if name == "tt.reshape":
        return f"tl.reshape({first[0]}, {shape_text(shape)})", CALL
    if name == "tt.trans":
        order = node.attrs[0]
        return f"tl.trans({first[0]})" if order == (1, 0) else f"tl.permute({first[0]}, {shape_text(order)})", CALL
    if name == "param":
        return f"x{node.attrs[0]}", ATOM
    if name in ("tt.reduce", "tt.scan"):
        if not has_name(name, node.attrs[0], node.type.element):
            raise NotLifted(f"a reduction by {node.attrs[0]}")
        return (
            f"tl.{(REDUCTIONS if name == 'tt.reduce' else SCANS)[node.attrs[0]]}({first[0]}, {node.attrs[1]}{', reverse=True' if node.attrs[2:] == (True,) else ''})",
            CALL,
        )
    if name == "tt.bitcast":
        return f"{bound(first, CALL)}.to({dtype_text(node.type.element)}, bitcast=True)", CALL
    if name == "tt.gather":
        return f"tl.gather({first[0]}, {texts(args[1])[0]}, {node.attrs[0]})", CALL
    if name == "tt.load":
        more = [f"{key}={_operand(unspread(x), texts)[0]}" for key, x in zip(("mask", "other"), args[1:])]
        return f"tl.load({', '.join([first[0], *more])})", CALL
    if name == "make_descriptor":
        rank = len(shape)
        sizes, strides = ([texts(x)[0] for x in args[1 + i * rank : 1 + (i + 1) * rank]] for i in (0, 1))
        listed = (
            f"shape=[{', '.join(sizes)}], strides=[{', '.join(strides)}], block_shape=[{', '.join(map(str, shape))}]"
        )
        return f"tl.make_tensor_descriptor({first[0]}, {listed})", CALL
    if name == "descriptor_load":
        return f"{bound(first, CALL)}.load([{', '.join(texts(x)[0] for x in args[1:])}])", CALL
    if name == "descriptor_gather":
        return f"{bound(first, CALL)}.gather({texts(args[1])[0]}, {texts(args[2])[0]})", CALL
    if name == "tt.unsplat":
        return f"tl.sum({first[0]}, 0)", CALL
    raise NotLifted(f"{name} has no spelling in Triton")


def kind_text(kind: Type) -> str:
    return f"tl.zeros({shape_text(kind.shape or ())}, {dtype_text(kind.element)})"
