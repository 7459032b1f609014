"""What other files of a program do to the names of a module: `helpers.GAIN = 2.0`, `helpers.TABLE["a"] = 2.0`, `helpers.fill()`.

A file is asked by its text; whether it is imported, and when, is left open. Tests are no part of a program.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gluonize.read.evaluate.bodies.changes import READING_BUILTINS, READING_METHODS, changes, decorator_name
from gluonize.read.evaluate.bodies.said import said_in
from gluonize.read.evaluate.host_objects import UserClass
from gluonize.read.evaluate.host_values import HostName
from gluonize.read.files import package as package_files
from gluonize.read.files.modules import find_module, module_of_path, parse_file
from gluonize.read.names.effects import CONTAINERS
from gluonize.read.names.file_names import file_names
from gluonize.read.names.scope import ProgramOfScope, Scope
from gluonize.read.unresolved import Place
from gluonize.triton_api.language import core
from gluonize.triton_api.package import triton

ANY = "*"
_MAX_FILES = 400
# Functions of Triton that keep what they are given as it is, and builtins that only go through the items of it.
_KEEPING = frozenset(f"triton.{name}" for name in ("autotune", "heuristics", "jit", "Config", "runtime.Config"))
_ITERATING = frozenset("dict enumerate filter iter list map reversed set zip".split())
_PLAIN = (bool, int, float, complex, str, bytes, type(None), core.dtype, HostName)


@dataclass(frozen=True)
class Change:
    """kind: `set` binds the name; `store` sets a part of its object; `escape` hands the object to something, `items` only what it
    holds; `call` calls it when the file is imported."""

    kind: str
    line: int
    column: int


@functools.lru_cache(maxsize=512)
def changes_of_imported(tree: ast.Module, package: str) -> dict[str, tuple[Change, ...]]:
    """What a file does to what it imports, by dotted names; `pkg.module.*` for a name that is not known."""
    bases, stars = _imported(tree, package)
    names = file_names(tree)
    at_import = {id(node) for node in names.top_level}
    out: dict[str, dict[Change, None]] = {}

    def dotted(node: ast.AST) -> list[str]:
        parts: list[str] = []
        while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
            if isinstance(node, ast.Attribute):
                parts.insert(0, node.attr)
                node = node.value
            else:
                parts, node = [], node.value if isinstance(node, ast.Subscript) else node.func
        if not isinstance(node, ast.Name):
            return []
        found = bases.get(node.id, ()) or ([] if node.id in names.bound else [f"{star}.{node.id}" for star in stars])
        return [".".join([base, *parts]) for base in found]

    def add(kind: str, node: ast.AST, target: ast.AST, more: str = "") -> None:
        if kind == "escape" and isinstance(target, ast.Subscript):
            kind = "items"
        for name in dotted(target):
            change = Change(kind, getattr(node, "lineno", 0), getattr(node, "col_offset", 0) + 1)
            out.setdefault(name + more, {})[change] = None

    for node in names.every:
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            if isinstance(node, ast.Attribute):
                add("set", node, node)
            add("store", node, node.value)
        elif isinstance(node, ast.Attribute) and node.attr == "__dict__":
            add("set", node, node.value, f".{ANY}")
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("setattr", "delattr") and len(node.args) >= 2:
                text = node.args[1].value if isinstance(node.args[1], ast.Constant) else ANY
                add("set", node, node.args[0], f".{text}")
                add("store", node, node.args[0])
            elif called == "vars" and node.args:
                add("set", node, node.args[0], f".{ANY}")
            if id(node) in at_import:
                add("call", node, node.func)
            if isinstance(node.func, ast.Attribute) and called not in READING_METHODS:
                add("store", node, node.func.value)
            if called not in READING_BUILTINS and not _KEEPING.intersection(dotted(node.func)):
                for given in [*node.args, *(k.value for k in node.keywords)]:
                    add("items" if called in _ITERATING else "escape", node, given)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.Return, ast.NamedExpr)) and node.value is not None:
            add("escape", node, node.value)
        elif isinstance(node, (ast.List, ast.Tuple, ast.Dict)) and not isinstance(
            getattr(node, "ctx", None), ast.Store
        ):
            for item in node.values if isinstance(node, ast.Dict) else node.elts:
                add("escape", node, item)
        elif isinstance(node, (ast.For, ast.comprehension)):
            add("items", node.iter, node.iter)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for decorator in node.decorator_list:
                add("call", decorator, decorator)
    return {name: tuple(found) for name, found in out.items()}


def _holds_containers(value: Any) -> bool:
    """Whether something that an object holds may be changed; configurations of autotuning are left as they are."""
    held = vars(value).values() if isinstance(value, types.SimpleNamespace) else value
    items = [*held.keys(), *held.values()] if isinstance(held, dict) else [*held]
    return any(not isinstance(item, (*_PLAIN, triton.Config)) for item in items)


def _imported(tree: ast.Module, package: str) -> tuple[dict[str, list[str]], list[str]]:
    """What the names that a file imports anywhere mean, as dotted names, and the modules that it imports all of."""
    bases: dict[str, list[str]] = {}
    stars = []
    for node in file_names(tree).every:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                bases.setdefault(alias.asname or name, []).append(name)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".") if package else []
            above = parts[: len(parts) - (node.level - 1)] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                if alias.name == "*":
                    stars.append(module)
                else:
                    bases.setdefault(alias.asname or alias.name, []).append(f"{module}.{alias.name}")
    return bases, stars


def foreign_change(program: ProgramOfScope, scope: Scope, name: str, value: Any) -> tuple[str, Place] | None:
    """How another file may change a name of a module, or the object that it means, and where."""
    if scope.kind != "module" or not scope.path or isinstance(value, (types.ModuleType, Scope)):
        return None
    kinds = {"set"}
    shared = isinstance(value, (*CONTAINERS, types.SimpleNamespace))
    if shared:
        kinds |= {"store", "escape"} | ({"items"} if _holds_containers(value) else set())
    elif isinstance(value, (UserClass, type, core.constexpr)):
        kinds |= {"store"}
    whole = f"{scope.module}.{name}"
    functions = _functions_that_change(scope, name)
    last = scope.module.rpartition(".")[2]
    for path in files_around(program, scope):
        said = said_in(package_files.text_of(path))
        if not said.may_change(last, name, functions, shared=shared, plain=isinstance(value, (int, float, str, tuple))):
            continue
        for dotted, found in _changes_in(path).items():
            if dotted == whole or dotted == f"{scope.module}.{ANY}":
                for change in found:
                    if change.kind in kinds:
                        return f"it is changed in {path}:{change.line}", Place(path, change.line, change.column)
            elif dotted.startswith(scope.module + ".") and any(change.kind == "call" for change in found):
                function = dotted[len(scope.module) + 1 :].partition(".")[0]
                if function in _functions_that_change(scope, name):
                    change = next(change for change in found if change.kind == "call")
                    reason = f"it is changed by {function}, which is called in {path}:{change.line}"
                    return reason, Place(path, change.line, change.column)
    return None


@functools.lru_cache(maxsize=1024)
def _functions_that_change(scope: Scope, name: str) -> frozenset[str]:
    """The functions and classes of a module that may change or bind one of its names when they are called; what runs on a GPU
    binds none."""
    tops = [n for n, found in scope.bindings.by_name.items() if any(b.kind in ("def", "class") for b in found)]
    own: dict[str, frozenset[str]] = {}
    called: dict[str, set[str]] = {}
    for top in tops:
        nodes = [b.node for b in scope.bindings.by_name[top] if b.kind in ("def", "class")]
        nodes = [node for node in nodes if not any(decorator_name(d) == "jit" for d in node.decorator_list)]
        own[top] = frozenset().union(*(_names_changed(node) for node in nodes))
        called[top] = {*(n for node in nodes for n in changes(node).called)}
    found = {top for top in tops if name in own[top]}
    while more := {top for top in tops if top not in found and called[top] & found}:
        found |= more
    return frozenset(found)


@functools.lru_cache(maxsize=4096)
def _names_changed(node: ast.AST) -> frozenset[str]:
    declared = (n for inner in ast.walk(node) if isinstance(inner, ast.Global) for n in inner.names)
    return frozenset([*changes(node).changed, *declared])


def _changes_in(path: str) -> dict[str, tuple[Change, ...]]:
    file, _ = module_of_path(path)
    return changes_of_imported(parse_file(path).tree, file.package)


def files_around(program: ProgramOfScope, scope: Scope) -> tuple[str, ...]:
    """The files that may change what a module binds: those of its package and of the source's that mention it, and what a script imports."""
    known = program.files_around.get(scope.path)
    if known is None:
        last = scope.module.rpartition(".")[2]
        found = dict.fromkeys([scope.path])
        for home in dict.fromkeys([scope.path, program.entry]):
            if home:
                found.update(dict.fromkeys(package_files.files_mentioning(home, (last,))))
        found.update(dict.fromkeys(path for path in imported_by(program) if last in package_files.text_of(path)))
        known = tuple(path for path in found if not _is_test(path) or path in (scope.path, program.entry))
        program.files_around[scope.path] = known
    return known


def imported_by(program: ProgramOfScope) -> tuple[str, ...]:
    """The files that the source, a script, imports from its own folder, directly or not, itself included."""
    if program.entry and not program.imported_files:
        folder = os.path.dirname(os.path.abspath(program.entry))
        todo = [os.path.abspath(program.entry)]
        found: dict[str, None] = {}
        while todo and len(found) < _MAX_FILES:
            path = todo.pop(0)
            if path in found:
                continue
            found[path] = None
            for name in _modules_named(path):
                file = find_module(name, (folder,))
                if file is not None and file.path:
                    todo.append(file.path)
        program.imported_files = tuple(found)
    return program.imported_files


def _modules_named(path: str) -> Iterator[str]:
    """The modules that a file may import, by their full names."""
    package = module_of_path(path)[0].package
    bases, stars = _imported(parse_file(path).tree, package)
    for name in sorted({name for names in bases.values() for name in names} | {*stars}):
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            yield ".".join(parts[:length])


def _is_test(path: str) -> bool:
    folder, name = os.path.split(path)
    return bool(re.match(r"(test_.*|.*_test|conftest)\.py$", name)) or os.path.basename(folder) in ("test", "tests")


__all__ = ["Change", "changes_of_imported", "foreign_change"]
