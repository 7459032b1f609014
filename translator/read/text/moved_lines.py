"""Lines of the source file for functions whose text was changed before they were traced.

A copy of a function with other text keeps the place of the original in its file. What is said of a line of the copy is
said of the line of the file that it came from; inserted lines come from the line that they replace.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_ATTRIBUTE = "_gluonize_lines"


def file_line(fn: Any, line: int) -> int:
    """The line of the file for `line` (from 1) of the function's text."""
    lines = getattr(fn, _ATTRIBUTE, ())
    own = lines[min(line, len(lines)) - 1] if lines else line
    return fn.def_file_line_number + own - 1


def record_moved(fn: Any, text: str, edits: Iterable[tuple[int, int, str]]) -> None:
    """Remember where the lines of `fn` are in `text`, which it had before `edits` replaced spans of it."""
    before = getattr(fn, _ATTRIBUTE, ()) or range(1, text.count("\n") + 2)
    lines: list[int] = []
    at, number = 0, 1
    for start, end, new in sorted(edits):
        kept = text.count("\n", at, start)
        lines += before[number - 1 : number - 1 + kept]
        number += kept
        lines += [before[number - 1]] * new.count("\n")
        number += text.count("\n", start, end)
        at = end
    lines += before[number - 1 :]
    setattr(fn, _ATTRIBUTE, tuple(lines))
