"""The jit function that a name means in a module: `f`, `Class.f`, `outer.<locals>.f`, or one that is imported there."""

from __future__ import annotations

import ast
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError, did_you_mean
from gluonize.read.evaluate.jit_calls import jit_calls
from gluonize.read.evaluate.jit_function import JitBuilder
from gluonize.read.names.reached import origin_of
from gluonize.read.names.scope import Scope
from gluonize.read.unresolved import NoValue
from gluonize.triton_api.jit_functions import JITFunction


def find_kernel(builder: JitBuilder, module: Scope, qualname: str) -> tuple[Any, ast.FunctionDef, Scope]:
    """The jit function `f`, `Class.f` or `outer.<locals>.f` of a module, before any decorator above its `jit`; also by the name
    that an assignment gives it (`kernel = triton.jit(f)`).

    Raises: TranslationError `kernel-missing`, `kernel-not-jit`, `source-unresolved`.
    """
    scope = module
    parts = [part for part in qualname.split(".") if part != "<locals>"]
    for number, part in enumerate(parts):
        found = [b for b in scope.bindings.by_name.get(part, []) if b.kind in ("def", "class")]
        held = [b for b in found if scope.holds(b) is not False] or found
        if not held:
            if number == len(parts) - 1 and (found := _assigned(builder, scope, part)) is not None:
                return found
            origin = _imported(scope, part) if len(parts) == 1 else None
            if origin is not None:
                return find_kernel(builder, *origin)
            raise TranslationError(_no_such_kernel(module, qualname, part))
        if number < len(parts) - 1:
            scope = scope.inside(held[-1].node)
    definitions = [b.node for b in reversed(held) if isinstance(b.node, ast.FunctionDef)]
    unusable = ""
    for node in definitions:
        unusable = getattr(builder.define(node, scope), "unusable", "") or unusable
        if isinstance(fn := builder.built.get((id(node), id(scope))), JITFunction):
            return fn, node, scope
    for call in jit_calls(scope):
        if call.function in definitions:
            return builder.built[(id(call.function), id(scope))], call.function, scope
    node = held[-1].node
    if not definitions:
        raise TranslationError(
            Diagnostic("kernel-not-jit", f"{qualname} is a class, not a kernel", module.path, node.lineno)
        )
    why = (
        "none of its decorators is triton.jit"
        if definitions[0].decorator_list
        else "it has no decorator, and no call makes it one"
    )
    place = module.path, node.lineno, node.col_offset + 1
    if unusable:
        raise TranslationError(Diagnostic("kernel-not-jit", f"{qualname} is not a jit function: {unusable}", *place))
    help = did_you_mean(qualname, [name for name in _decorated(module) if name != qualname])
    raise TranslationError(Diagnostic("kernel-not-jit", f"{qualname} is not a jit function", *place, why, help))


def _assigned(builder: JitBuilder, scope: Scope, name: str) -> tuple[Any, ast.FunctionDef, Scope] | None:
    """The jit function that an assignment gives a name: `kernel = triton.jit(f)`, `kernel = f`."""
    given = [b for b in scope.bindings.by_name.get(name, []) if b.kind == "assign"]
    if not given:
        return None
    for call in jit_calls(scope):
        if name in call.names:
            return builder.built[(id(call.function), id(scope))], call.function, scope
    other = given[0].value if len(given) == 1 and not given[0].path else None
    if isinstance(other, ast.Name) and any(b.kind == "def" for b in scope.bindings.by_name.get(other.id, [])):
        return find_kernel(builder, scope, other.id)  # whatever is set on it, such as its `run`
    try:
        value = scope.own(name)
    except NoValue:
        return None
    for node, home in builder.definitions:
        if builder.built[(id(node), id(home))] is value and isinstance(value, JITFunction) and isinstance(home, Scope):
            return value, node, home
    return None


def _imported(scope: Scope, name: str) -> tuple[Scope, str] | None:
    home, binding = origin_of(scope, name)
    return (home, binding.name) if binding is not None and home is not scope and binding.kind == "def" else None


def _decorated(module: Scope) -> list[str]:
    """The functions of a module that have a decorator."""
    return [
        n
        for n, found in module.bindings.by_name.items()
        if any(b.kind == "def" and b.node.decorator_list for b in found)
    ]


def _no_such_kernel(module: Scope, qualname: str, part: str) -> Diagnostic:
    names = _decorated(module)
    known = f"it has {', '.join(names)}" if names else "it has no decorated functions"
    missing = qualname if part == qualname else f"{qualname} (no {part} in it)"
    help = did_you_mean(part, names)
    return Diagnostic("kernel-missing", f"no kernel named {missing}", module.path, why=known, help=help)
