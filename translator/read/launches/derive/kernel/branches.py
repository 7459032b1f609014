"""Which statements of host code lie on the way to a launch, and which branch is taken where nothing tells."""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Iterator


@functools.lru_cache(maxsize=1 << 16)
def inside(goal: ast.AST, node: ast.AST) -> bool:
    return any(inner is goal for inner in ast.walk(node))


def leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def likely(node: ast.If) -> list[ast.stmt]:
    """The branch of a test that cannot be told: none that leaves, unless the other one is an error; one that gives values to names."""
    if raises(node.orelse):
        return node.body
    if leaves(node.body):
        return node.orelse
    return node.body if not node.orelse and fills(node.body) else node.orelse or node.body


def with_errors(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements, where an error behind `if t: ... return x` is what happens where `t` does not hold."""
    for statement, behind in itertools.zip_longest(statements, statements[1:]):
        if isinstance(statement, ast.If) and not statement.orelse and isinstance(behind, ast.Raise):
            yield ast.copy_location(ast.If(statement.test, statement.body, [behind]), statement)
        else:
            yield statement


def raises(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise)


def fills(body: list[ast.stmt]) -> bool:
    """Whether a branch gives values to names that may have none: what most conditional assignments are for."""
    return all(isinstance(statement, (ast.Assign, ast.AnnAssign)) for statement in body)
