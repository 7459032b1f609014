"""Which names a piece of code may change, as far as its text says: for code that is not, or cannot be, followed.

Whatever is not known to leave an object alone may change it: a method that is not on a list, a call that it is given to, an item
or an attribute that is set, the same through another name.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass

# Methods of Python's own containers and texts that leave their object as it is, and builtins that do so with what they are given.
READING_METHODS = frozenset(
    "get items keys values copy index count format join split rsplit splitlines startswith endswith strip lstrip rstrip lower upper "
    "replace encode decode title partition rpartition isdigit union intersection difference issubset issuperset isdisjoint".split()
)
READING_BUILTINS = frozenset(
    "len str int float bool min max sum sorted tuple repr any all isinstance issubclass hasattr print abs round range type id "
    "format callable hash frozenset".split()
)


@dataclass(frozen=True)
class Changes:
    """changed: names whose objects may be changed, with the place; called: names that are called, or decorate."""

    changed: dict[str, ast.AST]
    called: dict[str, ast.AST]


def decorator_name(decorator: ast.expr) -> str:
    """The last part of a decorator's name: `jit` of `@triton.jit(noinline=True)`; "" where it has none."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    return name.lstrip("_")


@functools.lru_cache(maxsize=4096)
def changes(node: ast.AST) -> Changes:
    """What a statement, expression, function or class may change; the insides of functions and classes count too."""
    changed: dict[str, ast.AST] = {}
    called: dict[str, ast.AST] = {}
    aliases: list[tuple[ast.AST, ast.AST]] = []  # what is bound, and to what
    for inner in ast.walk(node):
        if isinstance(inner, (ast.Subscript, ast.Attribute)) and not isinstance(inner.ctx, ast.Load):
            _add(changed, inner)
        elif isinstance(inner, ast.Call):
            _call(inner, changed, called)
        elif isinstance(inner, ast.Assign):
            aliases += [(target, inner.value) for target in inner.targets]
        elif isinstance(inner, (ast.AnnAssign, ast.NamedExpr)) and inner.value is not None:
            aliases.append((inner.target, inner.value))
        elif isinstance(inner, ast.AugAssign):
            _add(changed, inner.target)
            aliases.append((inner.target, inner.value))
        elif isinstance(inner, (ast.For, ast.comprehension)):
            aliases.append((inner.target, inner.iter))
        elif isinstance(inner, ast.withitem):
            _add(changed, inner.context_expr)
        elif isinstance(inner, (ast.Yield, ast.YieldFrom, ast.Await)) and inner.value is not None:
            _add(changed, inner.value)
        elif isinstance(inner, (ast.FunctionDef, ast.ClassDef)):
            for decorator in inner.decorator_list:
                called.update((name.id, name) for name in ast.walk(decorator) if isinstance(name, ast.Name))
            bases = [*inner.bases, *(k.value for k in inner.keywords)] if isinstance(inner, ast.ClassDef) else []
            called.update((base.id, base) for base in bases if isinstance(base, ast.Name))
    found = -1
    while found != len(changed):
        found = len(changed)
        for target, value in aliases:
            if any(isinstance(n, ast.Name) and n.id in changed for n in ast.walk(target)):
                _add(changed, value)
    return Changes(changed, called)


def _call(call: ast.Call, changed: dict[str, ast.AST], called: dict[str, ast.AST]) -> None:
    if isinstance(call.func, ast.Name):
        if call.func.id in READING_BUILTINS:
            return
        called[call.func.id] = call.func
    elif isinstance(call.func, ast.Attribute):
        if (root := root_of(call.func)) is not None:
            called.setdefault(root.id, call.func)
        if call.func.attr not in READING_METHODS:
            _add(changed, call.func.value)
    for given in [*call.args, *(keyword.value for keyword in call.keywords)]:
        _add(changed, given)


def _add(changed: dict[str, ast.AST], value: ast.AST) -> None:
    for name in handed_on(value):
        changed.setdefault(name.id, value)


def handed_on(value: ast.AST) -> Iterator[ast.Name]:
    """The names through which an expression hands on an object that is there already, or a part of one."""
    if isinstance(value, ast.Name):
        yield value
    elif isinstance(value, (ast.Compare, ast.JoinedStr, ast.Constant)):
        return
    elif isinstance(value, ast.Call):
        if isinstance(value.func, ast.Name) and value.func.id in READING_BUILTINS:
            return
        for part in [value.func, *value.args, *(keyword.value for keyword in value.keywords)]:
            yield from handed_on(part)
    elif isinstance(value, (ast.Subscript, ast.Attribute)):
        yield from handed_on(value.value)
    else:
        for child in ast.iter_child_nodes(value):
            yield from handed_on(child)


def root_of(node: ast.AST) -> ast.Name | None:
    """`X` of `X.a[0].b`."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node if isinstance(node, ast.Name) else None


__all__ = ["READING_BUILTINS", "READING_METHODS", "Changes", "changes", "handed_on", "root_of"]
