"""Which line of the source a statement of the output came from: the statement itself knows it, whatever becomes of what is around it.

The white space behind a statement, or behind the colon of its header, is a text that knows a line beside. It prints, compares and
hashes as any other, so nothing that is decided of a tree depends on it.
"""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

Place = tuple[str, int]  # a file, and a line of it from 1


class From(str):
    """White space behind what came from a place."""

    place: Place

    @classmethod
    def of(cls, text: str, place: Place) -> From:
        made = cls(text)
        made.place = place
        return made


def marked(block: Sequence[Any], written: Sequence[ast.stmt], place: Callable[[int], Place | None]) -> list[Any]:
    """Statements that know where they came from. written: the same ones as `ast` reads them; place: of a line of their text."""
    out = []
    for s, first in _beside(block, written):
        where = place(first.lineno)
        for name, inner in _blocks(s, first):
            part = getattr(s, name)
            if isinstance(part, cst.If):
                (part,) = marked([part], inner, place)
            else:
                suite = part if name == "body" else part.body
                suite = suite.with_changes(body=marked(suite.body, inner, place))
                part = suite if name == "body" else part.with_changes(body=suite)
            s = s.with_changes(**{name: part})
        out.append(_behind(s, where) if where is not None else s)
    return out


def place_of(s: cst.CSTNode) -> Place | None:
    """Where a statement came from; None where it is new."""
    space = _space(s)
    return space.place if isinstance(space, From) else None


def copied(s: Any, known: cst.CSTNode) -> Any:
    """A statement that came from where another did."""
    where = place_of(known)
    return s if where is None else _behind(s, where)


def places(block: Sequence[Any], written: Sequence[ast.stmt]) -> Iterator[tuple[int, Place]]:
    """(line of a text, place) of the statements of a tree that know it. written: those of the text, in whatever layout.

    Raises: ValueError where these are others.
    """
    for s, first in _beside(block, written):
        if isinstance(s, AsWritten):
            at = written.index(first)
            yield from s.places(written[at : at + len(s.statements)])
            continue
        if (where := place_of(s)) is not None:
            yield first.lineno, where
        for name, inner in _blocks(s, first):
            part = getattr(s, name)
            yield from places(
                [part] if isinstance(part, cst.If) else (part if name == "body" else part.body).body, inner
            )


def lines_from(tree: cst.Module, text: str, path: str) -> tuple[tuple[int, int], ...]:
    """(line of `text`, line of the source at `path`) of the statements that came from there; `text` is that of `tree`, in whatever layout."""
    try:
        found = list(places(tree.body, ast.parse(text).body))
    except (SyntaxError, ValueError):
        return ()
    return tuple((line, place[1]) for line, place in found if os.path.realpath(place[0]) == os.path.realpath(path))


class Printed(str):
    """The text of a tree, which knows the tree."""

    tree: cst.Module

    @classmethod
    def of(cls, tree: cst.Module) -> Printed:
        made = cls(tree.code)
        made.tree = tree
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """In another process it is its text."""
        return str, (str(self),)


@dataclass(frozen=True, eq=False)  # a node is itself
class AsWritten(cst.BaseStatement):
    """Statements of the top level in which nothing changes, with what stands between them. start: where their text begins."""

    text: str
    leading_lines: Sequence[cst.EmptyLine] = ()
    start: Place = ("", 1)

    @functools.cached_property
    def statements(self) -> list[ast.stmt]:
        return ast.parse(self.text).body

    def places(self, written: Sequence[ast.stmt]) -> Iterator[tuple[int, Place]]:
        """As of `places`, for the statements that it has become."""
        path, first = self.start
        for own, new in zip(_inside(self.statements), _inside(written)):
            yield new.lineno, (path, first + own.lineno - 1)

    def _visit_and_replace_children(self, visitor: Any) -> AsWritten:
        return self

    def _codegen_impl(self, state: Any, default_semicolon: bool = False) -> None:
        for line in self.leading_lines:
            line._codegen(state)
        state.add_token(self.text)


def _inside(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    return (n for s in statements for n in ast.walk(s) if isinstance(n, ast.stmt))


def _beside(block: Sequence[Any], written: Sequence[ast.stmt]) -> Iterator[tuple[Any, ast.stmt]]:
    """Each statement with the first of those that `ast` has for it: several may share a line."""
    at = 0
    for s in block:
        if at >= len(written):
            raise ValueError("there are more statements than were written")
        yield s, written[at]
        at += (
            len(s.body)
            if isinstance(s, cst.SimpleStatementLine)
            else len(s.statements) if isinstance(s, AsWritten) else 1
        )
    if at != len(written):
        raise ValueError("there are fewer statements than were written")


def _blocks(s: cst.CSTNode, written: ast.stmt) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The blocks of a compound statement that have lines of their own."""
    if isinstance(s, (cst.If, cst.For, cst.While, cst.With, cst.FunctionDef, cst.ClassDef)):
        if isinstance(s.body, cst.IndentedBlock):
            yield "body", written.body  # type: ignore[attr-defined]
        other = getattr(s, "orelse", None)
        if isinstance(other, cst.If) or other is not None and isinstance(other.body, cst.IndentedBlock):
            yield "orelse", written.orelse  # type: ignore[attr-defined]


def _space(s: cst.CSTNode) -> str:
    if isinstance(s, cst.SimpleStatementLine):
        return s.trailing_whitespace.whitespace.value
    body = getattr(s, "body", None)
    return body.header.whitespace.value if isinstance(body, cst.IndentedBlock) else ""


def _behind(s: Any, where: Place) -> Any:
    def spaced(line: cst.TrailingWhitespace) -> cst.TrailingWhitespace:
        return line.with_changes(whitespace=cst.SimpleWhitespace(From.of(line.whitespace.value, where)))

    if isinstance(s, cst.SimpleStatementLine):
        return s.with_changes(trailing_whitespace=spaced(s.trailing_whitespace))
    if isinstance(getattr(s, "body", None), cst.IndentedBlock):
        return s.with_changes(body=s.body.with_changes(header=spaced(s.body.header)))
    return s
