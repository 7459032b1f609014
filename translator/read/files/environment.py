"""Which environment variables a file may ask for, so that a result need not depend on all of them."""

from __future__ import annotations

import ast

ALL = "*"  # the file asks for variables by names that it computes, or for all


def names_asked(tree: ast.AST) -> frozenset[str]:
    """The names in `os.environ.get("X")`, `os.getenv("X")`, `os.environ["X"]` and `"X" in os.environ`, read or changed.

    ALL among them when the environment is used in another way.
    """
    found: set[str] = set()
    known: set[int] = set()
    for node in ast.walk(tree):
        for name, environment in _asked(node):
            found.add(name)
            known.add(id(environment))
    other = any(_is(node, "environ", "getenv", "environb") and id(node) not in known for node in ast.walk(tree))
    return frozenset(found | {ALL} if other else found)


def _asked(node: ast.AST) -> list[tuple[str, ast.expr]]:
    """The variable that an expression asks for, and the node in it that is the environment."""
    if isinstance(node, ast.Call) and node.args:
        if _is(node.func, "getenv"):
            return _named(node.args[0], node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if method in ("get", "setdefault", "pop") and _is(node.func.value, "environ"):
            return _named(node.args[0], node.func.value)
    if isinstance(node, ast.Subscript) and _is(node.value, "environ"):
        return _named(node.slice, node.value)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        if _is(node.comparators[0], "environ"):
            return _named(node.left, node.comparators[0])
    return []


def _named(name: ast.expr, environment: ast.expr) -> list[tuple[str, ast.expr]]:
    constant = isinstance(name, ast.Constant) and isinstance(name.value, str)
    return [(name.value, environment)] if constant else []


def _is(node: ast.AST, *names: str) -> bool:
    name = getattr(node, "attr", None) if isinstance(node, ast.Attribute) else getattr(node, "id", None)
    return name in names
