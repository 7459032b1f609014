"""Names that statements read and write, and the statements inside others."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def called(node: ast.AST) -> str:
    """The last part of the name of what is called; empty where nothing is."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


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
    """Names that are read before they are certainly assigned."""
    free: set[str] = set()

    def visit(statements: list[ast.stmt], known: set[str]) -> set[str]:
        for s in statements:
            if isinstance(s, (ast.For, ast.While)):
                free.update(loads(s.iter if isinstance(s, ast.For) else s.test) - known)
                visit(s.body, known | (stores(s.target) if isinstance(s, ast.For) else set()))
            elif isinstance(s, ast.If):
                free.update(loads(s.test) - known)
                ends = [visit(b, set(known)) for b in (s.body, s.orelse)]
                known |= ends[0] & ends[1]
            else:
                free.update(loads(s) - known)
                known |= stores(s)
        return known

    visit(body, set())
    return free


def is_constexpr(annotation: ast.expr) -> bool:
    return ast.unparse(annotation) in ("gl.constexpr", "tl.constexpr")
