"""What a jit function mentions: the names in its text, and where each of them is defined."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from gluonize.read.names.bindings import Binding
from gluonize.read.names.scope import Frame, Scope
from gluonize.read.unresolved import NoValue
from gluonize.triton_api.jit_functions import JITCallable
from gluonize.triton_api.language import core


@dataclass(frozen=True)
class Reached:
    """A name that a jit function mentions, and what it is.

    `user` is the function (`module:qualname`) and `name` what it calls it. `kind` is `jit`, `constant`, `module` (of the
    user), `class` or `triton`. `module`, `qualname`, `path`, `line` say where it is defined (no path for Triton's own).
    """

    user: str
    name: str
    kind: str
    module: str
    qualname: str
    path: str
    line: int
    value: Any


def origin_of(scope: Scope, name: str) -> tuple[Scope, Binding | None]:
    """Where `name` is really bound: imports are followed to the module with the definition or assignment."""
    for _ in range(50):
        try:
            binding = scope.select(name)
        except (KeyError, *NoValue):
            if isinstance(scope.parent, Scope):
                scope = scope.parent
                continue
            return scope, None
        if binding.kind not in ("from", "star"):
            return scope, binding
        try:
            module = scope.program.import_module(scope.program.absolute_name(binding.node, scope))
        except NoValue:
            return scope, binding
        if not isinstance(module, Scope) or module is scope:
            return scope, binding
        name = binding.alias.name if binding.kind == "from" else name
        if name not in module.bindings.by_name and not module.bindings.stars:
            return scope, binding
        scope = module
    return scope, None


def describe(user: str, name: str, value: Any, scope: Scope | Frame, own_name: str) -> Reached:
    """Where a value that a function mentions comes from."""
    if isinstance(value, JITCallable) and hasattr(value, "file_name") and not _is_tritons(value.__module__):
        return Reached(
            user, name, "jit", value.__module__, value.__qualname__, value.file_name, value.def_file_line_number, value
        )
    module = getattr(value, "__module__", None) or getattr(value, "__name__", "")
    if (isinstance(value, ModuleType) or callable(value)) and _is_tritons(str(module)):
        qualname = "" if isinstance(value, ModuleType) else getattr(value, "__qualname__", "")
        if not isinstance(value, core.constexpr):
            return Reached(user, name, "triton", str(module), qualname, "", 0, value)
    home, binding = origin_of(scope, own_name) if isinstance(scope, Scope) else (scope, None)
    kind = "class" if isinstance(value, type) else "constant"
    line = getattr(binding.node, "lineno", 0) if binding is not None else 0
    bound = binding.name if binding is not None else own_name
    return Reached(
        user, name, kind, home.module, f"{home.qualname}.{bound}" if home.qualname else bound, home.path, line, value
    )


def _is_tritons(module: str) -> bool:
    return module == "triton" or module.startswith("triton.")


def mentioned_names(node: ast.AST) -> list[tuple[str, ast.Name, list[ast.Attribute]]]:
    """Names that a function or class reads, where first, and the attribute chains that start with each; in source order."""
    parameters = {arg.arg for arg in all_arguments(node.args)} if isinstance(node, ast.FunctionDef) else set()
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    skip = {id(inner) for decorator in decorators for inner in ast.walk(decorator)}
    spec_defaults = [*node.args.defaults, *node.args.kw_defaults] if isinstance(node, ast.FunctionDef) else []
    outer = {id(inner) for value in spec_defaults if value is not None for inner in ast.walk(value)}
    first: dict[str, ast.Name] = {}
    chains: dict[str, list[ast.Attribute]] = {}
    for inner in ast.walk(node):
        if id(inner) in skip:
            continue
        if isinstance(inner, ast.Attribute) and (parts := dotted_parts(inner)):
            chains.setdefault(parts[0], []).append(inner)
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            if inner.id not in parameters or id(inner) in outer:
                known = first.get(inner.id)
                if known is None or (inner.lineno, inner.col_offset) < (known.lineno, known.col_offset):
                    first[inner.id] = inner
    ordered = sorted(first.items(), key=lambda item: (item[1].lineno, item[1].col_offset))
    return [(name, where, chains.get(name, [])) for name, where in ordered]


def names_in_body(node: ast.AST) -> set[str]:
    body = node.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []
    return {inner.id for statement in body for inner in ast.walk(statement) if isinstance(inner, ast.Name)}


def all_arguments(spec: ast.arguments) -> list[ast.arg]:
    extra = [arg for arg in (spec.vararg, spec.kwarg) if arg is not None]
    return [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *extra]


def dotted_parts(node: ast.expr) -> list[str]:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return [node.id, *parts] if isinstance(node, ast.Name) else []
