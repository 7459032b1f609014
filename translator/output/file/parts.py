"""A file in parts: those of its top level in which something may change as concrete trees, the rest as text."""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.files.modules import ParsedFile


@dataclass(frozen=True)
class Part:
    """Some lines of a file. first: the number of the first one; tree: whether they are to be a tree; ends: the last line of each statement
    in it."""

    text: str
    first: int
    tree: bool
    ends: tuple[int, ...]


def parts(source: ParsedFile, lines: Collection[int] | None) -> Iterator[Part]:
    """The parts of a file, in turn trees and text; the first is a tree. lines: of functions that change; None: anything may.

    What stands between two parts belongs to that which is a tree.
    """
    text = source.text.split("\n")
    groups = [[*group] for _, group in itertools.groupby(_lines_of(source.tree.body), key=_changes(lines))]
    start = 0
    for number, group in enumerate(groups):
        tree = number % 2 == 0
        last = number == len(groups) - 1
        end = len(text) if last else groups[number + 1][0].first - 1 if tree else group[-1].end
        yield Part(
            "\n".join(text[start:end]) + ("" if last else "\n"), start + 1, tree, tuple(row.end for row in group)
        )
        start = end


@dataclass(frozen=True)
class _Row:
    """The statements that share a line: their first and last line."""

    first: int
    end: int
    kept: bool  # an import, or the first


def _lines_of(body: Sequence[ast.stmt]) -> Iterator[_Row]:
    rows: list[_Row] = []
    for s in body:
        first = min([s.lineno, *(d.lineno for d in getattr(s, "decorator_list", ()))])
        kept = not rows or isinstance(s, (ast.Import, ast.ImportFrom))
        if rows and first <= rows[-1].end:
            row = rows.pop()
            first, kept = row.first, kept or row.kept
        rows.append(_Row(first, s.end_lineno or first, kept))
    return iter(rows)


def _changes(lines: Collection[int] | None) -> Callable[[_Row], bool]:
    return lambda row: lines is None or row.kept or any(row.first <= line <= row.end for line in lines)


@functools.lru_cache(maxsize=64)  # a concrete tree takes hundreds of times its text
def read_tree(text: str, path: str) -> cst.Module:
    """The tree of a part. Raises: TranslationError `source-syntax`."""
    try:
        return cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        message = f"libcst cannot read the file: {error.message}"
        raise TranslationError(Diagnostic("source-syntax", message, path)) from error
