"""Statements by where they stand: what follows one in its block, and which of them a place in the source belongs to."""

from __future__ import annotations

import ast

from gluonize.facts.function import FunctionFacts

PLAIN = (ast.Assign, ast.AugAssign, ast.Expr)
_SIMPLE = (*PLAIN, ast.AnnAssign, ast.Return)


def holds(s: ast.AST, node: ast.AST) -> bool:
    return any(n is node for n in ast.walk(s))


def statements_after(tree: ast.AST, s: ast.stmt) -> list[ast.stmt]:
    """The statements that follow `s` in its block."""
    for node in ast.walk(tree):
        for _, block in ast.iter_fields(node):
            if isinstance(block, list) and s in block:
                return block[block.index(s) + 1 :]
    return []


def statement_of(facts: FunctionFacts, node: ast.expr) -> ast.AST:
    """The simple statement that `node` stands in; `node` itself where there is none."""
    found: ast.AST | None = node
    while found is not None and not isinstance(found, _SIMPLE):
        found = facts.parents.get(found)
    return node if found is None else found
