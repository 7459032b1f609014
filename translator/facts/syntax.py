"""Names that statements read and write, the statements inside others, and the sides of comparisons."""

from __future__ import annotations

import ast
from collections.abc import Iterator

ELEMENTWISE_NODES = (ast.BinOp, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.IfExp)


def augmented_binop(s: ast.AugAssign) -> ast.BinOp:
    """The binary operation that Triton's front end visits for `x += y` (same span as the statement)."""
    node = ast.BinOp(s.target, s.op, s.value)
    return ast.copy_location(node, s)


def called(node: ast.AST) -> str:
    """The last part of the name of what is called; empty where nothing is."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


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


def own_loads(s: ast.stmt) -> set[str]:
    """Names that a statement reads; of one with blocks, those that its header reads."""
    if not blocks_of(s):
        return loads(s)
    return {n for e in ast.iter_child_nodes(s) if isinstance(e, ast.expr) for n in loads(e)}


def stores(node: ast.AST) -> set[str]:
    """Names that are assigned anywhere in `node`."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def blocks_of(s: ast.stmt) -> list[list[ast.stmt]]:
    return [b for b in (getattr(s, "body", None), getattr(s, "orelse", None)) if b]


def inside(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block and of the blocks in it, in order."""
    for s in body:
        yield s
        for inner in blocks_of(s):
            yield from inside(inner)


def own_stores(s: ast.stmt) -> list[str]:
    """Names that a statement assigns, in order; of one with blocks, those that its header assigns."""
    if blocks_of(s) and not isinstance(s, ast.For):
        return []
    node = s.target if isinstance(s, ast.For) else s
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def free_names(body: list[ast.stmt]) -> set[str]:
    """Names that are read before they are certainly assigned; a branch that fails to compile assigns what the others do."""
    free: set[str] = set()

    def visit(statements: list[ast.stmt], known: set[str]) -> set[str] | None:
        for s in statements:
            if isinstance(s, (ast.For, ast.While)):
                free.update(loads(s.iter if isinstance(s, ast.For) else s.test) - known)
                visit(s.body, known | (stores(s.target) if isinstance(s, ast.For) else set()))
            elif isinstance(s, ast.If):
                free.update(loads(s.test) - known)
                ends = [end for b in (s.body, s.orelse) if (end := visit(b, set(known))) is not None]
                if not ends:
                    return None
                known |= set.intersection(*ends)
            else:
                free.update(loads(s) - known)
                known |= stores(s)
                if _fails(s):
                    return None
        return known

    visit(body, set())
    return free


def _fails(s: ast.stmt) -> bool:
    """Whether a statement is `static_assert(False, ...)`."""
    if not isinstance(s, ast.Expr) or called(s.value) != "static_assert":
        return False
    test = s.value.args[0]
    return isinstance(test, ast.Constant) and test.value is False


def is_constexpr(annotation: ast.expr) -> bool:
    return ast.unparse(annotation) in ("gl.constexpr", "tl.constexpr")
