"""Names that statements read and write, the statements inside others, and the sides of comparisons."""

from __future__ import annotations

import ast

ELEMENTWISE_NODES = (ast.BinOp, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.IfExp)


def augmented_binop(s: ast.AugAssign) -> ast.BinOp:
    """The binary operation that Triton's front end visits for `x += y` (same span as the statement)."""
    node = ast.BinOp(s.target, s.op, s.value)
    return ast.copy_location(node, s)


def target_of(s: ast.stmt) -> ast.expr:
    """What an assignment of any kind gives a value; of `a = b = x` the first."""
    return s.targets[0] if isinstance(s, ast.Assign) else s.target  # type: ignore[attr-defined]


def less_than(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """(a, b) of `a < b` and `b > a`; None for anything else."""
    if not (isinstance(node, ast.Compare) and len(node.ops) == 1):
        return None
    if isinstance(node.ops[0], ast.Lt):
        return node.left, node.comparators[0]
    return (node.comparators[0], node.left) if isinstance(node.ops[0], ast.Gt) else None


def loads(node: ast.AST) -> set[str]:
    """Names that are read anywhere in `node`."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    for n in ast.walk(node):
        if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
            names.add(n.target.id)
    return names


def stores(node: ast.AST) -> set[str]:
    """Names that are assigned anywhere in `node`."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def blocks_of(s: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a statement that has any: its body, and its `else`."""
    return [b for b in (getattr(s, "body", None), getattr(s, "orelse", None)) if b]


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """What a call is given, by position and by name."""
    return [*call.args, *(k.value for k in call.keywords)]


def index_parts(node: ast.Subscript) -> list[ast.expr]:
    """The parts of an index: two of `[:, None]`."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def is_new_axis(part: ast.expr) -> bool:
    """Whether a part of an index, as in `[:, None]`, is a new dimension."""
    return isinstance(part, ast.Constant) and part.value is None


def is_whole_axis(part: ast.expr) -> bool:
    """Whether a part of an index is `:`."""
    return isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None


def is_constexpr(annotation: ast.expr) -> bool:
    """Whether an annotation says that a parameter is known at compile time."""
    return unparsed(annotation) in ("gl.constexpr", "tl.constexpr")


def unparsed(node: ast.AST) -> str:
    """The author's code as a message shows it, in one line."""
    return ast.unparse(node)
