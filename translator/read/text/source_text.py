"""Source text of one function, addressed by AST nodes, rewritten by replacing spans.

Everything that is not replaced (comments, blank lines, line breaks inside expressions) stays as the author wrote it.
"""

from __future__ import annotations

import ast
import bisect
import copy
import functools
import io
import tokenize
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gluonize.read.text.moved_lines import record_moved

Edit = tuple[int, int, str]  # what stands from one offset to another is replaced


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

    @functools.cached_property
    def _brackets(self) -> tuple[list[int], list[int], list[tuple[int, int]]]:
        """Where brackets open and close, how many are open from there on, and (offset, open brackets) of line ends in brackets."""
        at, depths, breaks, depth = [0], [0], [], 0
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            offset = self.starts[token.start[0] - 1] + token.start[1]
            if token.type == tokenize.NL and depth:
                breaks.append((offset, depth))
            elif token.type == tokenize.OP and token.string in "([{":
                depth += 1
                at.append(offset + 1)
                depths.append(depth)
            elif token.type == tokenize.OP and token.string in ")]}":
                depth -= 1
                at.append(offset)
                depths.append(depth)
        return at, depths, breaks

    def depth(self, offset: int) -> int:
        """How many brackets are open at a place; one that closes there is not."""
        at, depths, _ = self._brackets
        return depths[bisect.bisect_right(at, offset) - 1]

    def is_grouped(self, node: ast.AST) -> bool:
        """Whether the text of `node` stands in one pair of brackets, as that of a tuple may."""
        (start, end), (at, depths, _) = self.span(node), self._brackets
        inside = depths[bisect.bisect_right(at, start) : bisect.bisect_left(at, end - 1)]
        depth = self.depth(start)
        return self.text[start] in "([{" and self.depth(end - 1) == depth and min(inside, default=depth + 1) > depth

    def is_open(self, node: ast.AST, instead: Iterable[tuple[ast.AST, bool]] = ()) -> bool:
        """Whether a line ends in `node` outside of its brackets; instead: parts that are replaced, and whether their text is open."""
        start, end = self.span(node)
        if "\n" not in self.text[start:end]:
            return False  # what stands for a part has no more lines than the part
        depth, spans = self.depth(start), [(*self.span(part), open) for part, open in instead]
        if any(open and self.depth(a) == depth for a, _, open in spans):
            return True
        breaks = [at for at, inside in self._brackets[2] if inside == depth and start <= at < end]
        return any(not any(a <= at < b for a, b, _ in spans) for at in breaks)

    def of(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def indent(self, node: ast.AST) -> str:
        """White space before the statement `node`."""
        line = self.lines[node.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    def splice(self, node: ast.AST, edits: Iterable[tuple[ast.AST, str]], more: Iterable[Edit] = ()) -> str:
        """The text of `node` with the given descendants replaced, and other edits of it."""
        start, end = self.span(node)
        spans = [(*self.span(child), new) for child, new in edits]
        return replace_spans(self.text, start, end, [*spans, *more])

    def place_behind(self, call: ast.AST) -> tuple[int, int, str]:
        """(start, end, separator) of what stands behind the arguments of a call: where more of them go, and what comes before these."""
        start, end = self.span(call)
        inner = self.text[start : end - 1].rstrip()
        first, _, last = inner.rpartition("\n")
        if first and "#" in last:  # a comment ends the last argument's line
            separator = "\n" + last[: len(last) - len(last.lstrip())]
        else:
            separator = " " if inner.endswith(",") else ", " if not inner.endswith("(") else ""
        return start + len(inner), end, separator


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


def kept_lines(text: str, start: int, end: int, spans: Iterable[tuple[int, int, str, Sequence[int]]]) -> list[int]:
    """For each line of what `replace_spans` gives the line of `text`, from 1, that the first of its code came from; 0 for one that is new.

    spans: with the line that each of their own lines came from, where that is known.
    """
    out, at, number = [0], start, 1 + text.count("\n", 0, start)

    def add(piece: str, origin: Callable[[int], int]) -> None:
        for k, part in enumerate(piece.split("\n")):
            if k:
                out.append(0)
            if part.strip() and not out[-1]:
                out[-1] = origin(k)

    for a, b, new, known in [*sorted(spans, key=lambda span: span[:2]), (end, end, "", ())]:
        add(text[at:a], lambda k, first=number: first + k)
        number += text.count("\n", at, a)
        add(new, lambda k, own=number if b > a else 0, known=known: known[k] if k < len(known) else own)
        number += text.count("\n", a, b)
        at = b
    return out


def dedented(line: str, column: int) -> str:
    """A line that begins `column` further left; comments, and what is in brackets, may begin anywhere."""
    return line.lstrip() if line[:column].strip() else line[column:]


def edit_function(fn: Any, source: SourceText, edits: list[Edit]) -> None:
    """Have a jit function, whose text is `source`, be one with other text. What is said of its lines is said of those of its file."""
    fn._unsafe_update_src(replace_spans(source.text, 0, len(source.text), edits))
    record_moved(fn, source.text, edits)


def edited_copy(fn: Any, source: SourceText, edits: list[Edit]) -> Any:
    """A copy of a jit function with other text."""
    changed = copy.copy(fn)
    edit_function(changed, source, edits)
    return changed
