"""Numbers of a kernel that the host can work out before a launch: sums, products and quotients of arguments and constants."""

from __future__ import annotations

import ast
from typing import Any

from gluonize.facts.callees import is_descriptor
from gluonize.facts.function import Function
from gluonize.facts.integers.host_bounds import (
    Bound,
    argument,
    ceiling,
    number,
    plus,
    positive,
    programs,
    quotient,
    times,
)
from gluonize.facts.integers.known import is_linear
from gluonize.facts.integers.operations import operation_of
from gluonize.facts.integers.ranges import int_type
from gluonize.facts.numbers.values import BINARY, Question
from gluonize.trace.front.trace import ConstFact, TensorFact


def constant(function: Function, node: ast.AST, fact: ConstFact) -> Bound | None:
    """A compile-time number, by the names of the kernel's parameters where it is one or a product of them: another launch may have other
    values."""
    if type(fact.value) is not int:
        return None
    if isinstance(node, ast.Name) and not function.path and _is_parameter(function, node):
        return argument(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = [(side, function.settled(side)) for side in (node.left, node.right)]
        bounds = [constant(function, side, known) for side, known in sides if isinstance(known, ConstFact)]
        if len(bounds) == 2 and all(bound is not None and bound.arguments() for bound in bounds):
            return times(*bounds)  # type: ignore[arg-type]
    return number(fact.value)


def _is_parameter(function: Function, node: ast.Name) -> bool:
    args = function.tree.args
    if all(a.arg != node.id for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)):
        return False
    return all(isinstance(d.node, ast.arg) for w in function.webs.all if w.name == node.id for d in w.definitions)


def descriptor_size(function: Function, node: ast.AST) -> str | None:
    """`desc.shape[1]` where `desc` is a descriptor that the kernel is given: the name by which a launch check has that number."""
    if function.path or not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Attribute):
        return None
    owner, axis = node.value.value, function.settled(node.slice)
    if node.value.attr != "shape" or not isinstance(owner, ast.Name) or not isinstance(axis, ConstFact):
        return None
    return (
        f"{owner.id}.shape[{axis.value}]"
        if is_descriptor(function.fact(owner)) and _is_parameter(function, owner)
        else None
    )


def value_in_launch(question: Question, node: ast.AST) -> Bound | None:
    """What `node`, of which nothing overflows, is in a launch; None where the host cannot tell."""
    function = question.function
    fact = function.settled(node)
    if isinstance(fact, ConstFact):
        return constant(function, node, fact)
    if (size := descriptor_size(function, node)) is not None:
        return argument(size)
    if isinstance(node, ast.Name):
        d = function.webs.single_of(node)
        if d is None or function.path:
            return None
        if isinstance(d.node, ast.arg):
            return argument(d.name)
        return value_in_launch(question, d.value) if d.value is not None and not d.augmented else None
    if isinstance(node, ast.BinOp) and BINARY.get(node.op.__class__) in ("add", "mul", "floordiv"):
        return _operated(question, node, BINARY[node.op.__class__], node.left, node.right)
    operation = operation_of(node, function.fact(node.func)) if isinstance(node, ast.Call) else None
    if operation is None:
        return None
    if operation.name == "cdiv":
        x, by = operation.operands.get("x"), operation.operands.get("div")
        return None if x is None or by is None else _operated(question, node, "cdiv", x, by)
    axis = function.settled(operation.first) if operation.first is not None else None
    counted = operation.name == "num_programs" and isinstance(axis, ConstFact) and axis.value in (0, 1, 2)
    return programs(axis.value) if counted else None


def _operated(question: Question, node: ast.AST, name: str, left: ast.AST, right: ast.AST) -> Bound | None:
    a, b, fact = value_in_launch(question, left), value_in_launch(question, right), question.function.fact(node)
    type = int_type(fact.dtype) if isinstance(fact, TensorFact) else None
    if a is None or b is None or type is None:
        return None
    if name in ("add", "mul"):
        return (plus if name == "add" else times)(a, b) if is_linear(type) else None
    known = [question.value(n) for n in (left, right)]
    if known[0].exact.lo < 0 or known[1].exact.lo < 0:  # Python rounds down, Triton toward zero
        return None
    top = known[0].range.hi + (known[1].range.hi - 1 if name == "cdiv" else 0)
    if not question.exactly and (any(k.exact != k.range for k in known) or top > type.most):
        return None  # it may be a quotient of what overflowed
    b = b if known[1].exact.lo >= 1 else positive(b)
    return ceiling(a, b) if name == "cdiv" else quotient(a, b)


def exceeds(function: Function, bound: Bound, most: int) -> bool:
    """Whether a bound is above `most` by the compile-time numbers of the launch alone: it would never pass the check."""
    known = {}
    for name in bound.arguments():
        fact = kernel_argument(function, name)
        if not isinstance(fact, ConstFact) or type(fact.value) is not int:
            return False
        known[name] = fact.value, fact.value
    span = bound.span(known, 1)
    return span is not None and span[0] > most


def kernel_argument(function: Function, name: str) -> Any:
    """The fact of the kernel's argument of that name, for a function that it calls too."""
    while function.path and getattr(function, "called", None):
        function = function.called[0]
    return function.frame.args.get(name)


__all__ = ["constant", "descriptor_size", "exceeds", "kernel_argument", "value_in_launch"]
