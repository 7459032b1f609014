"""What facts are read from: one function of a kernel."""

from __future__ import annotations

import ast
from typing import Any, Protocol

from translator.frontend.trace import Frame, Visit


class Function(Protocol):
    """What is asked of a function: its trace, its variables, and the helpers that it calls."""

    frame: Frame
    path: tuple[int, ...]
    tree: ast.FunctionDef
    webs: Any
    unit: Any

    def fact(self, node: ast.AST) -> Any: ...
    def taken(self, statement: ast.AST) -> bool: ...
    def iteration_visits(self, node: ast.AST, iteration: int) -> list[Visit]: ...
    def branches_around(self, node: ast.AST) -> list[ast.If]: ...
    def callee(self, node: ast.Call) -> tuple[Any, dict[str, ast.expr]]: ...
