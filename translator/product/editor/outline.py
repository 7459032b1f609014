"""Where the functions of a text bind names and spell layouts: what a place in an editor is looked up in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from gluonize.product.report.layouts.inlined import inlined
from gluonize.read.text.parsed import parsed_text


@dataclass(frozen=True)
class Place:
    """Part of a text. line: from 1; column, end: in characters from 0, of the first line; last: the line on which it ends."""

    line: int
    column: int
    end: int
    last: int

    def holds(self, line: int, column: int) -> bool:
        if self.line == self.last:
            return line == self.line and self.column <= column <= self.end
        return self.line < line <= self.last or (line == self.line and column >= self.column)


@dataclass(frozen=True)
class Scope:
    """A function at the top of a text. bindings: (name, where) in the order of the text, parameters among them.

    layouts: (constant, its constructor, names of other constants replaced, where). spelled: (constructor, its text, where) of
    every layout that is spelled in place, inner ones after those around them.
    """

    name: str
    first: int
    last: int
    bindings: tuple[tuple[str, Place], ...]
    layouts: tuple[tuple[str, str, Place], ...]
    spelled: tuple[tuple[str, str, Place], ...]

    def definition(self, name: str, line: int) -> Place | None:
        """Where the value that `name` has in a line was bound: the nearest place above, else the first below (in a loop)."""
        found = [place for bound, place in self.bindings if bound == name]
        return max((p for p in found if p.line <= line), key=lambda p: p.line, default=found[0] if found else None)

    def layout(self, name: str, line: int) -> str:
        """The constructor of the layout that `name` is in a line; "" for a name of something else."""
        found = {place: text for constant, text, place in self.layouts if constant == name}
        return found.get(self.definition(name, line), "") if found else ""


@dataclass(frozen=True)
class Outline:
    """The functions of a text, in order."""

    scopes: tuple[Scope, ...]

    def at(self, line: int) -> Scope | None:
        return next((scope for scope in self.scopes if scope.first <= line <= scope.last), None)


def read_outline(text: str) -> Outline:
    """The outline of a Python text. Raises: SyntaxError; ValueError, RecursionError, MemoryError for what no parser takes."""
    lines = text.splitlines()
    functions = (n for n in parsed_text(text).body if isinstance(n, ast.FunctionDef))
    return Outline(tuple(_scope(function, lines) for function in functions))


def _scope(function: ast.FunctionDef, lines: list[str]) -> Scope:
    first = min([d.lineno for d in function.decorator_list] + [function.lineno])
    bound = sorted(_bound(function, lines), key=lambda x: (x[1].line, x[1].column))
    constants = [
        (target, s.value)
        for s in ast.walk(function)
        if isinstance(s, (ast.Assign, ast.AnnAssign)) and s.value is not None and _is_layout(s.value)
        for target in [s.target if isinstance(s, ast.AnnAssign) else s.targets[0]]
        if isinstance(target, ast.Name)
    ]

    def written(node: ast.expr) -> str:
        known = {target.id: value for target, value in constants if target.lineno < node.lineno}
        return ast.unparse(inlined(node, known))

    layouts = tuple((target.id, written(value), _place(target, lines)) for target, value in constants)
    calls = (n for n in ast.walk(function) if _is_layout(n))
    spelled = tuple((written(n), ast.unparse(n), _place(n, lines)) for n in calls)
    return Scope(function.name, first, function.end_lineno or first, tuple(bound), layouts, spelled)


def _is_layout(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether a layout is made here: `gl.BlockedLayout(...)`, `gl.PaddedSharedLayout.with_identity_for(...)`."""
    words = ast.unparse(node.func).split(".") if isinstance(node, ast.Call) else []
    return any(word.endswith("Layout") for word in words)


def _bound(function: ast.FunctionDef, lines: list[str]) -> Iterator[tuple[str, Place]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, _place(node, lines)
        elif isinstance(node, ast.arg):
            place = _place(node, lines)
            yield node.arg, Place(place.line, place.column, place.column + len(node.arg), place.line)


def _place(node: ast.expr | ast.arg, lines: list[str]) -> Place:
    last = node.end_lineno or node.lineno
    return Place(
        node.lineno,
        _characters(lines[node.lineno - 1], node.col_offset),
        _characters(lines[last - 1], node.end_col_offset or 0),
        last,
    )


def _characters(line: str, offset: int) -> int:
    """A column in characters for one in bytes of UTF-8, as `ast` counts."""
    return len(line.encode()[:offset].decode(errors="ignore"))
