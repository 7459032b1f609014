"""Kernels that are made by a call and not by a decorator: which call makes one, of which function, and what it is called.

def add(x_ptr, n): ...
add_kernel = triton.autotune(configs, key=["n"])(triton.jit(add))   # functions: add; names: add_kernel
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gluonize.read.names.bindings import Binding
from gluonize.read.names.scope import Scope
from gluonize.read.unresolved import NoValue
from gluonize.triton_api.gluon_language import gluon
from gluonize.triton_api.jit_functions import JITFunction
from gluonize.triton_api.package import triton

_KEYWORD = "fn"  # of triton.jit, for the function


@dataclass(frozen=True)
class JitCall:
    """One call that makes a jit function.

    node: the whole call, `triton.jit(f)` or `triton.jit(noinline=True)(f)`. maker: `triton.jit` in it, None where something
    else makes it. function: the definition. names: what its statement calls the result. around: what is called with
    the result in turn (`triton.autotune(...)`), outermost first. scope: where it stands.
    """

    node: ast.Call
    maker: ast.expr | None
    function: ast.FunctionDef
    names: tuple[str, ...]
    around: tuple[ast.expr, ...]
    scope: Scope


@functools.lru_cache(maxsize=256)
def jit_calls(scope: Scope) -> tuple[JitCall, ...]:
    """The calls in a module, class or function body that make jit functions of functions that are defined in it, in source order.

    A call is evaluated statically to know; bodies of functions and classes in it are not looked into.
    """
    out, program = [], scope.program
    for statement in _statements(scope):
        before = scope.bindings.positions.get(id(statement))
        parents = {child: node for node in ast.walk(statement) for child in ast.iter_child_nodes(node)}
        for call in (node for node in _own_nodes(statement) if isinstance(node, ast.Call)):
            name = _only_argument(call)
            if name is None or (function := _definition(scope, name, before)) is None:
                continue
            try:
                scope.run()
                made = scope.called[id(call)] if id(call) in scope.called else program.evaluate(call, scope, before)
            except NoValue:
                continue
            if isinstance(made, JITFunction) and program.evaluator.builder.built.get((id(function), id(scope))) is made:
                maker = _maker(call, scope, before)
                out.append(JitCall(call, maker, function, *_use(statement, call, parents), scope))
    return tuple(out)


def unread_calls(scope: Scope) -> list[ast.Call]:
    """Calls of `triton.jit` in a body that make kernels of something else than a function that is defined there."""
    found = []
    for statement in _statements(scope):
        before = scope.bindings.positions.get(id(statement))
        for call in (
            node for node in _own_nodes(statement) if isinstance(node, ast.Call) and (node.args or node.keywords)
        ):
            maker = _maker(call, scope, before)
            name = _only_argument(call)
            if maker is not None and (call.args or maker is not call.func):
                if name is None or _definition(scope, name, before) is None:
                    found.append(call)
    return found


def _statements(scope: Scope) -> Iterator[ast.stmt]:
    """The statements of a body with those of its `if`, `try` and `with`, without definitions."""
    todo = list(scope.body)
    while todo:
        statement = todo.pop(0)
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            continue
        inner = [s for name in ("body", "orelse", "finalbody") for s in getattr(statement, name, [])]
        inner += [s for handler in getattr(statement, "handlers", []) for s in handler.body]
        if inner:
            todo[:0] = inner
        else:
            yield statement


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop(0)
        yield node
        todo += [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.Lambda)]


def _only_argument(call: ast.Call) -> str | None:
    """`f` of `make(f)` and `make(fn=f)`."""
    given = [*call.args, *(k.value for k in call.keywords if k.arg == _KEYWORD)]
    return given[0].id if len(given) == 1 and isinstance(given[0], ast.Name) else None


def _definition(scope: Scope, name: str, before: int | None) -> ast.FunctionDef | None:
    """The function without a jit decorator that a name means before a statement."""
    held: list[Binding] = [b for b in scope.bindings.by_name.get(name, []) if before is None or b.position <= before]
    node = held[-1].node if held and held[-1].kind == "def" else None
    return node if isinstance(node, ast.FunctionDef) else None


def _maker(call: ast.Call, scope: Scope, before: int | None) -> ast.expr | None:
    """`triton.jit` in `triton.jit(f)`, `triton.jit(...)(f)` and `functools.partial(triton.jit, ...)(f)`."""
    maker = call.func
    try:
        value: Any = scope.program.evaluate(maker, scope, before)
        while isinstance(value, functools.partial) and isinstance(maker, ast.Call):
            called = scope.program.evaluate(maker.func, scope, before)
            maker = maker.args[0] if called is functools.partial else maker.func
            value = scope.program.evaluate(maker, scope, before)
    except NoValue:
        return None
    return maker if value is triton.jit or value is gluon.jit else None


def _use(
    statement: ast.stmt, call: ast.Call, parents: dict[ast.AST, ast.AST]
) -> tuple[tuple[str, ...], tuple[ast.expr, ...]]:
    """The names that the result is given, and what is called with it."""
    around: list[ast.expr] = []
    node: ast.AST = call
    while isinstance(above := parents.get(node), ast.Call) and node in above.args[:1]:
        around.insert(0, above.func)
        node = above
    if isinstance(statement, ast.Assign) and statement.value is node:
        return tuple(target.id for target in statement.targets if isinstance(target, ast.Name)), tuple(around)
    if isinstance(statement, ast.AnnAssign) and statement.value is node and isinstance(statement.target, ast.Name):
        return (statement.target.id,), tuple(around)
    return (), tuple(around)
