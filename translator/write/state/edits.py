"""What becomes of a function's source in one round: spans and what stands in their place."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Union

from gluonize.gluon.code import Lined, code_of, ended, joined, outline, spliced
from gluonize.gluon.nodes import Code
from gluonize.gluon.written import Written
from gluonize.read.text.source_text import SourceText, kept_lines

Made = Union[str, Code, Written, Lined]  # what comes into the place of some of the source
CodeEdit = tuple[int, int, Made]


class Edits(list[CodeEdit]):
    """(start, end, code), in the order in which they were made. held: those that fill LDS which several statements read; last: those
    that come behind all others at their place, also behind what passes over a loop that ends there add to it."""

    def __init__(self, source: SourceText, made: Iterable[CodeEdit] = ()):
        super().__init__(made)
        self.source = source
        self.held: list[CodeEdit] = []
        self.last: list[CodeEdit] = []

    def copy(self) -> Edits:
        return Edits(self.source, self)

    def code(self, start: int, end: int) -> Code:
        """What the source from `start` to `end` has become."""
        return spliced(self.source.text, start, end, [*self, *self.last])

    def kept(self, start: int, end: int) -> list[int]:
        """For each of its lines the line of the source that it came from, 0 for one that is new."""
        return origins(self.source, start, end, [*self, *self.last])

    def replace(self, node: ast.AST, made: Made) -> None:
        if made != self.source.of(node):
            self.append((*self.source.span(node), made))

    def insert_before(self, s: ast.stmt, *lines: Made) -> None:
        start, indent = self.source.starts[s.lineno - 1], self.source.indent(s)
        self.append((start, start, ended(lines, indent)))

    def insert_behind(self, s: ast.stmt, lines: Sequence[Made]) -> None:
        indent, end = self.source.indent(s), self.source.span(s)[1]
        if lines:
            self.append((end, end, code_of("\n" + indent, joined("\n" + indent, lines))))

    def insert_above(self, line: int, lines: Sequence[Made], indent: str) -> None:
        """Put lines above that of a number, and an empty one behind them."""
        at = self.source.offset(line, 0)
        if lines:
            self.append((at, at, code_of(ended(lines, indent), "\n")))


def origins(source: SourceText, start: int, end: int, edits: Sequence[CodeEdit]) -> list[int]:
    """For each line of what `spliced` gives the line of the source that it came from, 0 for one that is new."""
    spans = [(a, b, outline(code_of(new)), new.lines if isinstance(new, Lined) else ()) for a, b, new in edits]
    return kept_lines(source.text, start, end, spans)
