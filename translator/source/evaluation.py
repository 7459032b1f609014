"""What the parts of a static evaluation ask of the whole: values of expressions, calls, and definitions.

`Evaluator` is the whole. Calls, host functions and jit functions are evaluated by modules of their own, which know no more of it
than this.
"""

from __future__ import annotations

import ast
from typing import Any, Protocol

from triton.runtime.jit import JITFunction

from translator.source.host_objects import UserFunction
from translator.source.scope import Frame, ProgramOfScope, Scope
from translator.source.unresolved import Place


class Applies(Protocol):
    """Calls of what is known to be pure."""

    def apply(self, function: Any, args: list, kwargs: dict[str, Any], place: Place) -> Any: ...


class Defines(Protocol):
    """What `def` and the decorators of Triton make."""

    def define(self, node: ast.FunctionDef, scope: Scope | Frame) -> Any: ...
    def jit(self, function: UserFunction, is_gluon: bool, options: dict[str, Any], place: Place) -> JITFunction: ...
    def kernel_side(self, function: UserFunction, maker: Any) -> Any: ...


class Evaluation(Protocol):
    """Expressions, by the rules of `evaluate.py`, which says of each method what it gives and raises."""

    @property
    def program(self) -> ProgramOfScope: ...
    @property
    def calls(self) -> Applies: ...
    @property
    def builder(self) -> Defines: ...

    def evaluate(self, node: ast.expr, scope: Scope | Frame, before: int | None = None) -> Any: ...
    def items(self, nodes: list[ast.expr], scope: Scope | Frame, before: int | None) -> list: ...
    def truth(self, node: ast.expr, scope: Scope | Frame, before: int | None = None) -> bool: ...
    def known(self, value: Any, place: Place) -> Any: ...
    def guarded(self, function: Any, *args: Any, place: Place, **kwargs: Any) -> Any: ...
    def iterate(self, value: Any, place: Place) -> list: ...
    def attribute(self, value: Any, name: str, place: Place) -> Any: ...
    def binary(self, op: ast.operator, left: Any, right: Any, place: Place) -> Any: ...
