"""Shapes in the author's words: the compile-time expression that each dimension of a tensor comes from.

`a_ptr + offs_m[:, None] + tl.arange(0, BLOCK_K)[None, :]` has the dimensions `BLOCK_M` and `BLOCK_K`, if `offs_m` is made
from `tl.arange(0, BLOCK_M)`. A dimension whose origin is not found, or is something else than constexpr parameters and
constants of the function, is a number.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gluonize.facts.callees import bind, callee_of
from gluonize.facts.function import FunctionFacts
from gluonize.facts.syntax import index_parts, is_constexpr, is_new_axis
from gluonize.gluon.layout_names import LayoutNames, Tile
from gluonize.gluon.written import Part, Written, listed
from gluonize.trace.front.trace import ConstFact, TensorFact
from gluonize.trace.model.layouts import Layout
from gluonize.write.state.writing import Emit, Rebound

Names = tuple[ast.expr | None, ...]  # the origin of each dimension
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)
_SHAPE_ARGUMENTS = {"zeros": "shape", "full": "shape", "broadcast_to": "shape", "reshape": "shape", "view": "shape"}
_POINTWISE = ("elementwise", "scan", "load", "atomic")


def dimensions(facts: FunctionFacts, emit: Emit, rebound: Rebound, node: ast.expr) -> tuple[Part, ...]:
    """The dimensions of the tensor that `node` is."""
    return texts(facts, emit, rebound, node, facts.tensor(node).shape)


def shape_text(facts: FunctionFacts, emit: Emit, rebound: Rebound, node: ast.expr) -> Written:
    """`[BLOCK_M, 64]`."""
    return listed(*dimensions(facts, emit, rebound, node))


def texts(
    facts: FunctionFacts, emit: Emit, rebound: Rebound, node: ast.expr, shape: tuple[int, ...]
) -> tuple[Part, ...]:
    """The dimensions of `node`; shape: as numbers."""
    names = _names(facts, node, frozenset())
    if names is None or len(names) != len(shape):
        return tuple(map(str, shape))
    return tuple(_text(facts, emit, rebound, name, size) for name, size in zip(names, shape))


def tell(
    names: LayoutNames, layout: Layout, shape: tuple[int, ...], parts: Iterable[Part], dtype: tuple[str, str] = ("", "")
) -> None:
    """Say of a layout which tile has it, where its dimensions are plain text. dtype: as in `Tile`."""
    codes = [(part,) if isinstance(part, str) else part.code for part in parts]
    dimensions = ["".join(code) for code in codes if all(isinstance(piece, str) for piece in code)]
    if len(dimensions) == len(shape):
        names.tiles.setdefault(layout, Tile(shape, tuple(dimensions), dtype))


def _text(facts: FunctionFacts, emit: Emit, rebound: Rebound, name: ast.expr | None, size: int) -> Part:
    fact = facts.fact(name) if name is not None else None
    if not isinstance(fact, ConstFact) or fact.value != size or not _is_settled(facts, rebound, name):
        return str(size)
    return emit(name)


def _is_settled(facts: FunctionFacts, rebound: Rebound, node: ast.expr) -> bool:
    """Whether the expression has one compile-time value everywhere in the function."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
        return _is_settled(facts, rebound, node.left) and _is_settled(facts, rebound, node.right)
    made = facts.webs.single_of(node)
    if made is None or rebound(made.name):
        return False
    if isinstance(made.node, ast.arg):
        return any(p.name == made.name and p.is_constexpr for p in facts.frame.fn.params)
    return isinstance(made.node, ast.AnnAssign) and is_constexpr(made.node.annotation) and not made.in_loop


def _names(facts: FunctionFacts, node: ast.AST, seen: frozenset[int]) -> Names | None:
    fact = facts.fact(node)
    if not isinstance(fact, TensorFact) or not fact.shape:
        return None
    if isinstance(node, ast.Name):
        return _of_variable(facts, node, seen)
    if isinstance(node, ast.Subscript):
        return _of_subscript(facts, node, seen)
    if isinstance(node, ast.Attribute) and node.attr == "T":
        names = _names(facts, node.value, seen)
        return names[::-1] if names is not None else None
    if isinstance(node, ast.Call):
        return _of_call(facts, node, fact, seen)
    operands: list[ast.AST] = []
    if isinstance(node, ast.BinOp):
        operands = [node.left, node.right]
    elif isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
    elif isinstance(node, ast.BoolOp):
        operands = node.values
    elif isinstance(node, ast.UnaryOp):
        operands = [node.operand]
    elif isinstance(node, ast.IfExp):
        operands = [node.body, node.orelse]
    return _broadcast(facts, operands, fact, seen)


def _broadcast(facts: FunctionFacts, operands: list, fact: TensorFact, seen: frozenset[int]) -> Names:
    """Each dimension from the first operand that has all of it and says where it comes from."""
    found: list[ast.expr | None] = [None] * fact.rank
    for operand in operands:
        own = facts.tensor(operand)
        if own is None or own.rank != fact.rank:
            continue
        names = _names(facts, operand, seen)
        for d, size in enumerate(own.shape):
            if names is not None and found[d] is None and size == fact.shape[d]:
                found[d] = names[d]
    return tuple(found)


def _of_variable(facts: FunctionFacts, node: ast.Name, seen: frozenset[int]) -> Names | None:
    web = facts.webs.of_use.get(node)
    if web is None or web.index in seen:
        return None
    for made in web.definitions:
        plain = isinstance(made.node, (ast.Assign, ast.AnnAssign)) and made.value is not None and not made.augmented
        names = _names(facts, made.value, seen | {web.index}) if plain else None
        if names is not None and any(name is not None for name in names):
            return names
    return None


def _of_subscript(facts: FunctionFacts, node: ast.Subscript, seen: frozenset[int]) -> Names | None:
    names = _names(facts, node.value, seen)
    if names is None:
        return None
    left, out = list(names), []
    for part in index_parts(node):
        out.append(None if is_new_axis(part) else left.pop(0) if left else None)
    return (*out, *left)


def _of_call(facts: FunctionFacts, node: ast.Call, fact: TensorFact, seen: frozenset[int]) -> Names | None:
    callee = callee_of(facts, node)
    if callee is None or callee.row is None:
        return None
    given = bind(node, callee)
    if callee.name == "arange":
        start = facts.fact(given["start"])
        return (given["end"],) if isinstance(start, ConstFact) and start.value == 0 else None
    if callee.name in _SHAPE_ARGUMENTS:
        shape = given.get(_SHAPE_ARGUMENTS[callee.name])
        return tuple(shape.elts) if isinstance(shape, (ast.Tuple, ast.List)) else None
    if callee.name == "dot":
        a, b = (_names(facts, given[k], seen) or (None,) * fact.rank for k in ("input", "other"))
        return (*a[:-1], b[-1])
    if callee.name == "trans" and len(given) == 1:
        names = _names(facts, next(iter(given.values())), seen)
        return names[::-1] if names is not None and len(names) == 2 else None
    if callee.row.kind in _POINTWISE:
        return _broadcast(facts, list(given.values()), fact, seen)
    return None
