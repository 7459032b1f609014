"""A review as plain text: a unified diff whose hunks say why, and a summary for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterable

from gluonize.product.report.review.correspondence import Correspondence
from gluonize.product.report.review.reasons import REASONS, UNCHANGED
from gluonize.product.report.review.rows import REMOVED, Row, rows_of

# GitHub refuses longer comments (65536 characters); some room for what is written around it.
GITHUB_LIMIT = 60_000


def unified(c: Correspondence, source_name: str, result_name: str, context: int = 3) -> str:
    """A unified diff; each hunk's heading names the function and the reasons for its changes, most lines first."""
    rows = rows_of(c)
    out = [f"--- {source_name}", f"+++ {result_name}"]
    for hunk in _hunks(rows, c, context):
        lefts = [r.left for r in hunk if r.left is not None]
        rights = [r.right for r in hunk if r.right is not None]
        out.append(f"@@ -{_span(lefts)} +{_span(rights)} @@ {_heading(hunk)}".rstrip())
        out += _body(hunk, c)
    return "\n".join(out) + "\n" if len(out) > 2 else ""


def _span(numbers: list[int]) -> str:
    return f"{numbers[0]},{len(numbers)}" if numbers else "0,0"


def _is_change(row: Row, c: Correspondence) -> bool:
    if row.left is None or row.right is None:
        return True
    return c.source.lines[row.left - 1] != c.result.lines[row.right - 1]


def _hunks(rows: list[Row], c: Correspondence, context: int) -> Iterable[list[Row]]:
    changed = [i for i, r in enumerate(rows) if _is_change(r, c)]
    hunk: list[Row] = []
    end = -1
    for i in changed:
        start = max(0, i - context)
        if hunk and start > end:
            yield hunk
            hunk = []
        begin = max(start, end) if hunk else start
        hunk += rows[begin : i + 1 + context]
        end = min(len(rows), i + 1 + context)
    if hunk:
        yield hunk


def _heading(hunk: list[Row]) -> str:
    counts: dict[str, int] = {}
    for row in hunk:
        if row.reason and row.reason not in UNCHANGED and row.reason != REMOVED:
            counts[row.reason] = counts.get(row.reason, 0) + 1
    owner = next((r.function for r in hunk if r.function), "")
    reasons = ", ".join(sorted(counts, key=lambda r: (-counts[r], list(REASONS).index(r))))
    return ": ".join(x for x in (owner, reasons) if x)


def _body(hunk: list[Row], c: Correspondence) -> list[str]:
    out: list[str] = []
    removed: list[str] = []
    added: list[str] = []

    def flush() -> None:
        out.extend(removed)
        out.extend(added)
        removed.clear()
        added.clear()

    for row in hunk:
        if not _is_change(row, c):
            flush()
            out.append(f" {c.source.lines[row.left - 1]}")  # type: ignore[operator]
            continue
        if row.left is not None:
            removed.append(f"-{c.source.lines[row.left - 1]}")
        if row.right is not None:
            added.append(f"+{c.result.lines[row.right - 1]}")
    flush()
    return out


def github(c: Correspondence, source_name: str, result_name: str, target: str, parity_rows: list[list[str]]) -> str:
    """A summary for a comment on a pull request: what changed and why, parity where it is known, the diff collapsed.

    parity_rows: a heading and one row per launch, or empty.
    """
    counts = c.counts()
    out = [f"### `{source_name}` → `{result_name}`{f' ({target})' if target else ''}", ""]
    out += [f"{c.kept()}. The others:", ""]
    out += _table([["why", "lines", ""], *([r, str(n), REASONS[r]] for r, n in _by_reason(counts))])
    if parity_rows:
        out += ["", "Against Triton's own compile of the source (translation / Triton):", "", *_table(parity_rows)]
    assumed = [line.text.strip("# ") for line in c.lines if line.reason == "header" and "assumes" in line.text]
    if assumed:
        out += ["", "Relies on:", "", *(f"- {text.removeprefix('assumes ')}" for text in dict.fromkeys(assumed))]
    diff = unified(c, source_name, result_name)
    room = GITHUB_LIMIT - len("\n".join(out))
    if len(diff) > room:
        diff = diff[: diff.rfind("\n", 0, room)] + "\n... cut here: longer than a comment may be\n"
    fence = "````" if "```" in diff else "```"
    out += ["", "<details><summary>The diff</summary>", "", f"{fence}diff", diff.rstrip("\n"), fence, "", "</details>"]
    return "\n".join(out) + "\n"


def _by_reason(counts: dict[str, int]) -> list[tuple[str, int]]:
    return [(r, counts[r]) for r in REASONS if r in counts and r not in UNCHANGED]


def _table(rows: list[list[str]]) -> list[str]:
    head, *body = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *body]
    return [f"| {' | '.join(line)} |" for line in lines]
