"""A correspondence as rows of two panes: source on the left, translation on the right, unchanged runs folded."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gluonize.product.report.review.correspondence import Correspondence, Line
from gluonize.product.report.review.reasons import REASONS, REPEATED, UNCHANGED

REMOVED = "removed"
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True)
class Row:
    """`left`, `right`: line numbers, None for nothing on that side. links: source lines that the right line came from."""

    left: int | None
    right: int | None
    reason: str
    links: tuple[int, ...] = ()
    function: str = ""

    @property
    def unchanged(self) -> bool:
        return self.reason in UNCHANGED or (not self.reason and self.left is not None and self.right is not None)


@dataclass(frozen=True)
class Fold:
    """A run of unchanged rows that is not shown."""

    rows: tuple[Row, ...]

    @property
    def text(self) -> str:
        """`9 unchanged lines (source 14 to 22)`, `31 lines as in another version of the kernel`."""
        numbers = [r.left for r in self.rows if r.left is not None]
        if not numbers and all(r.reason in ("", REPEATED) for r in self.rows):
            return f"{len(self.rows)} lines {REASONS[REPEATED]}"
        what = f"{len(self.rows)} unchanged line{'s' if len(self.rows) > 1 else ''}"
        return f"{what} (source {numbers[0]} to {numbers[-1]})" if len(numbers) > 1 else what


def rows_of(c: Correspondence) -> list[Row]:
    """Every line of both sides once; the right ones in order, the left ones beside what became of them."""
    rows: list[Row] = []
    shown = set(c.beside.values())

    def gone(numbers: Iterable[int], owner: str) -> list[Row]:
        """Rows of source lines that have nothing beside them, those that have a row already left out."""
        left = [n for n in numbers if n not in shown]
        shown.update(left)
        return [Row(n, None, REMOVED if c.source.lines[n - 1].strip() else "", (), owner) for n in left]

    for owner, (first, last), lines in _chunks(c):
        for line in lines:
            anchor = c.beside.get(line.number)
            if anchor is not None and first <= anchor <= last:
                rows += gone(range(first, anchor), owner)
            rows.append(Row(anchor, line.number, line.reason, line.source, owner))
        rows += gone(range(first, last + 1), owner)
    rows += gone(range(1, len(c.source.lines) + 1), "")
    return _joined_blanks([row for row in rows if c.shows(row.function)])


def _chunks(c: Correspondence) -> Iterator[tuple[str, tuple[int, int], list[Line]]]:
    """Runs of lines of one function or between functions: owner's name, the source lines to show beside them, the
    lines.

    What precedes a translated function is shown beside what precedes its source, once; without a counterpart the range
    is empty.
    """
    gaps = _gaps(c)
    nothing = (1, 0)
    at = 1
    for index, f in enumerate(c.result.functions):
        origin = c.functions.get(index)
        if at < f.first:
            following = next((c.functions[i] for i in range(index, len(c.result.functions)) if i in c.functions), -1)
            yield "", gaps.pop(following, nothing), list(c.lines[at - 1 : f.first - 1])
        elif origin is not None and origin in gaps:
            yield "", gaps.pop(origin), []
        beside = nothing
        if origin is not None and index in c.shown:
            beside = c.source.functions[origin].first, c.source.functions[origin].last
        yield f.name, beside, list(c.lines[f.first - 1 : f.last])
        at = f.last + 1
    if at <= len(c.lines):
        yield "", gaps.pop(-1, nothing), list(c.lines[at - 1 :])


def _gaps(c: Correspondence) -> dict[int, tuple[int, int]]:
    """The source lines before each function, and after the last one (-1)."""
    out, at = {}, 1
    for i, f in enumerate(c.source.functions):
        out[i] = (at, f.first - 1)
        at = f.last + 1
    return out | {-1: (at, len(c.source.lines))}


def _joined_blanks(rows: list[Row]) -> list[Row]:
    """Blank lines that follow each other on both sides, side by side."""
    out: list[Row] = []
    for blank, run in itertools.groupby(rows, key=lambda row: not row.reason):
        if not blank:
            out += run
            continue
        found = list(run)
        lefts = [r.left for r in found if r.left is not None]
        rights = [r.right for r in found if r.right is not None]
        owner = found[0].function
        out += [Row(left, right, "", (), owner) for left, right in itertools.zip_longest(lefts, rights)]
    return out


def folded(rows: list[Row], context: int = 3) -> Iterator[Row | Fold]:
    """The rows, with unchanged runs folded but for `context` rows beside a change; a negative context folds nothing."""
    if context < 0:
        yield from rows
        return
    keep = [False] * len(rows)
    for i, row in enumerate(rows):
        if not row.unchanged:
            for k in range(max(0, i - context), min(len(rows), i + context + 1)):
                keep[k] = True
    i = 0
    while i < len(rows):
        if keep[i]:
            yield rows[i]
            i += 1
            continue
        end = i
        while end < len(rows) and not keep[end]:
            end += 1
        if end - i <= 2:  # a fold takes a line itself
            yield from rows[i:end]
        else:
            yield Fold(tuple(rows[i:end]))
        i = end


def changed_parts(left: str, right: str) -> list[tuple[str, bool]]:
    """The right line in pieces, each with whether the left line lacks it."""
    a, b = _TOKEN.findall(left), _TOKEN.findall(right)
    out: list[tuple[str, bool]] = []
    for tag, _, _, j1, j2 in difflib.SequenceMatcher(a=a, b=b, autojunk=False).get_opcodes():
        if j2 > j1:
            out.append(("".join(b[j1:j2]), tag != "equal"))
    return out
