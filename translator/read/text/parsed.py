"""Python's own syntax tree of a text, in whichever thread."""

from __future__ import annotations

import ast
import threading

# Up to Python 3.12 the trees of one interpreter are made with one count of their depth: threads that make some at a time end in a
# SystemError ("AST constructor recursion depth mismatch").
_ONE_AT_A_TIME = threading.Lock()


def parsed_text(text: str | bytes, path: str = "<unknown>", mode: str = "exec") -> ast.AST:
    """`ast.parse(text)`. Raises what that raises: SyntaxError, ValueError, RecursionError, MemoryError."""
    with _ONE_AT_A_TIME:
        return ast.parse(text, path, mode)
