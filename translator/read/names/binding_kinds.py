"""What bindings are, by their syntax: imports of Triton, functions that only raise, handlers that catch."""

from __future__ import annotations

import ast
import builtins
from typing import Any

from gluonize.read.names.bindings import Binding


class UserError(Exception):
    """Stands for an exception of a kind that is not Python's own."""


def catches(handler: ast.expr | None, error: Exception) -> bool | None:
    """Whether a handler takes an exception, None where one of the two is of a kind that is not Python's own."""
    if handler is None:
        return True
    unknown = False
    for name in handler.elts if isinstance(handler, ast.Tuple) else [handler]:
        kind = getattr(builtins, name.id, None) if isinstance(name, ast.Name) else None
        if isinstance(kind, type) and isinstance(error, kind):
            return True
        unknown |= not isinstance(kind, type) or isinstance(error, UserError)
    return None if unknown else False


def catcher(handlers: list[ast.ExceptHandler], error: Exception) -> int | None:
    """The number of the handler that takes an exception, -1 where none does, None where it cannot be told."""
    for number, handler in enumerate(handlers):
        if (found := catches(handler.type, error)) is not False:
            return number if found else None
    return -1


def is_equal(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, (int, float, str, bool, tuple)) and a == b)


def only_raises(node: ast.AST | None) -> bool:
    """Whether it is a function whose first statement, but for a docstring, raises an exception."""
    if not isinstance(node, ast.FunctionDef):
        return False
    first, *rest = node.body
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return isinstance((rest or [first])[0] if is_docstring else first, ast.Raise)


def imports_triton(binding: Binding) -> bool:
    if isinstance(binding.node, ast.ImportFrom) and binding.alias is not None:
        return not binding.node.level and (binding.node.module or "").split(".")[0] == "triton"
    return binding.kind == "import" and binding.alias is not None and binding.alias.name.split(".")[0] == "triton"


def line_of(binding: Binding) -> int:
    return getattr(binding.node, "lineno", 0)


def shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 70 else text[:67] + "..."
