"""What becomes of a function's source text in one round: spans and what stands in their place."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gluonize.read.files.source_text import Edit, SourceText, replace_spans


class Edits(list[Edit]):
    """(start, end, text), in the order in which they were made. held: those that fill LDS which several statements read; last: those
    that come behind all others at their place, also behind what passes over a loop that ends there add to it."""

    def __init__(self, source: SourceText, made: Iterable[Edit] = ()):
        super().__init__(made)
        self.source = source
        self.held: list[Edit] = []
        self.last: list[Edit] = []

    def copy(self) -> Edits:
        return Edits(self.source, self)

    def text(self, start: int, end: int) -> str:
        """What the source from `start` to `end` has become."""
        return replace_spans(self.source.text, start, end, [*self, *self.last])

    def replace(self, node: ast.AST, text: str) -> None:
        if text != self.source.of(node):
            self.append((*self.source.span(node), text))

    def insert_before(self, s: ast.stmt, *lines: str) -> None:
        start, indent = self.source.starts[s.lineno - 1], self.source.indent(s)
        self.append((start, start, "".join(f"{indent}{line}\n" for line in lines)))

    def insert_behind(self, s: ast.stmt, lines: list[str]) -> None:
        indent, end = self.source.indent(s), self.source.span(s)[1]
        if lines:
            self.append((end, end, "".join(f"\n{indent}{line}" for line in lines)))

    def insert_above(self, line: int, lines: list[str], indent: str) -> None:
        """Put lines above that of a number, and an empty one behind them."""
        at = self.source.offset(line, 0)
        if lines:
            self.append((at, at, "".join(f"{indent}{line}\n" for line in lines) + "\n"))
