"""What makes a function a kernel: its decorators, or the calls that stand for them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from gluonize.read.evaluate.host_values import HostName
from gluonize.read.evaluate.jit_calls import jit_calls
from gluonize.read.files.torch_runtime import HEURISTICS
from gluonize.read.names.scope import Scope
from gluonize.read.unresolved import NoValue
from gluonize.triton_api.gluon_language import gluon
from gluonize.triton_api.jit_functions import JITFunction
from gluonize.triton_api.package import triton

MADE = "made"


@dataclass(frozen=True)
class Decorator:
    """A decorator of a kernel, or a call in its place (`triton.jit(f)`).

    kind: `jit`, `autotune`, `heuristics`, `inductor` (one of `triton_heuristics`), `other` (looked through), or `made` for something else that gives a jit function.
    text: its source.
    """

    kind: str
    name: str
    text: str
    line: int
    node: ast.expr = field(compare=False, repr=False)


def kernel_decorators(node: ast.FunctionDef, scope: Scope) -> tuple[Decorator, ...]:
    """What is done with a function of `scope`, outermost first; one of them is of kind `jit` or `made` if it is a jit function."""
    own = tuple(decorator_of(d, scope) for d in node.decorator_list)
    if any(d.kind == "jit" for d in own):
        return own
    call = next((call for call in jit_calls(scope) if call.function is node), None)
    if call is not None:
        around = tuple(decorator_of(d, scope) for d in call.around)
        maker = call.maker if call.maker is not None else call.node.func
        kind = MADE if call.maker is None else "jit"
        made = Decorator(kind, ast.unparse(maker), ast.unparse(call.node.func), call.node.lineno, call.node.func)
        return (*around, made, *own)
    if not own:
        return ()
    builder = scope.program.evaluator.builder
    builder.define(node, scope)
    if not isinstance(builder.built.get((id(node), id(scope))), JITFunction):
        return own
    last = own[-1]
    return (*own[:-1], Decorator(MADE, last.name, last.text, last.line, last.node))


def decorator_of(node: ast.expr, scope: Scope) -> Decorator:
    """What an expression is that is given a function, as a decorator or in a call."""
    called = node.func if isinstance(node, ast.Call) else node
    try:
        value = scope.program.evaluate(called, scope)
    except NoValue:
        value = None
    value = getattr(value, "func", value)
    kinds = {
        id(triton.jit): "jit",
        id(gluon.jit): "jit",
        id(triton.autotune): "autotune",
        id(triton.heuristics): "heuristics",
    }
    is_inductors = isinstance(value, HostName) and value.dotted.startswith(f"{HEURISTICS}.")
    kind = kinds.get(id(value), "inductor" if is_inductors else "other")
    return Decorator(kind, ast.unparse(called), ast.unparse(node), node.lineno, node)
