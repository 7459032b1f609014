"""Source text of one function, addressed by AST nodes, rewritten by replacing spans.

Everything that is not replaced (comments, blank lines, line breaks inside expressions) stays as the author wrote it.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Iterable


class SourceText:
    """`text` and the offsets of its AST nodes (columns are UTF-8 bytes in the AST, characters here)."""

    def __init__(self, text: str):
        self.text = text
        self.lines = list(io.StringIO(text, newline="\n"))  # a form feed ends no line of Python
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        raw = self.lines[line - 1]
        return self.starts[line - 1] + (column if raw.isascii() else len(raw.encode()[:column].decode()))

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def line_end(self, node: ast.AST) -> int:
        """The end of the last line of `node`, before its newline."""
        return self.starts[node.end_lineno - 1] + len(self.lines[node.end_lineno - 1].rstrip("\n"))

    def first_line(self, node: ast.AST, above: int = 0) -> int:
        """The line of `node`, or of the comments right above it that are below line `above`."""
        return first_line(self.lines, node.lineno, above)

    def of(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def indent(self, node: ast.AST) -> str:
        """White space before the statement `node`."""
        line = self.lines[node.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    def splice(self, node: ast.AST, edits: Iterable[tuple[ast.AST, str]]) -> str:
        """The text of `node` with the given descendants replaced."""
        start, end = self.span(node)
        spans = [(*self.span(child), new) for child, new in edits]
        return replace_spans(self.text, start, end, spans)


def first_line(lines: list[str], line: int, above: int = 0) -> int:
    """`line`, or the first of the comments right above it that are below line `above`."""
    while line - 1 > above and lines[line - 2].lstrip().startswith("#"):
        line -= 1
    return line


def replace_spans(text: str, start: int, end: int, spans: Iterable[tuple[int, int, str]]) -> str:
    """`text[start:end]` with non-overlapping spans replaced; insertions at one place keep their order."""
    out, at = [], start
    for a, b, new in sorted(spans, key=lambda span: span[:2]):
        assert a >= at, f"bug in gluonize: overlapping edits at {a} < {at}: {new!r}"
        out += [text[at:a], new]
        at = b
    return "".join(out) + text[at:end]
