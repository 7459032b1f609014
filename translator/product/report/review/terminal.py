"""A review side by side in a terminal: source left, translation right, between them why a line differs."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from gluonize.product.report.review.correspondence import Correspondence
from gluonize.product.report.review.reasons import REASONS, REPEATED, UNCHANGED
from gluonize.product.report.review.rows import REMOVED, Fold, Row, changed_parts, folded, rows_of

STYLES = {
    "same": "",
    "spelling": "",
    "layout": "cyan",
    "staging": "magenta",
    "pipeline": "yellow",
    "rewrite": "green",
    "guard": "blue",
    "header": "bright_black",
    "host": "",
    REPEATED: "bright_black",
    REMOVED: "red",
}


def side_by_side(
    c: Correspondence, source_name: str, result_name: str, *, context: int = 3, width: int = 120
) -> RenderableType:
    """The whole review: legend, then one table."""
    table = Table(box=None, pad_edge=False, expand=False, show_header=True, header_style="bold", padding=(0, 1, 0, 0))
    pane = max(30, (width - 30) // 2)
    table.add_column("", justify="right", style="bright_black", no_wrap=True)
    table.add_column(source_name, width=pane, overflow="fold")
    table.add_column("why", width=13, no_wrap=True)
    table.add_column("", justify="right", style="bright_black", no_wrap=True)
    table.add_column(result_name, width=pane, overflow="fold")
    before = None
    for item in folded(rows_of(c), context):
        if isinstance(item, Fold):
            table.add_row(
                "", Text(f"· · · {item.text}", style="bright_black"), "", "", Text("· · ·", style="bright_black")
            )
            before = None
            continue
        table.add_row(*_cells(item, c, before))
        before = item
    return Group(_summary(c), Text(""), table)


def print_summaries(console: Console, kernels: Mapping[str, Correspondence]) -> None:
    """A line for each kernel: how much of it is as in the source, and why the rest is not."""
    width = max(map(len, kernels))
    for name, own in kernels.items():
        console.print(Text(f"{name.ljust(width)}  ").append_text(_summary(own)), soft_wrap=True)


def _summary(c: Correspondence) -> Text:
    """`36 of 82 lines are the source's own; layout 34, staging 8, ...`."""
    counts = c.counts()
    others = [(r, counts[r]) for r in REASONS if r in counts and r not in UNCHANGED]
    text = Text(f"{c.kept()}; " if others else c.kept())
    for i, (reason, n) in enumerate(others):
        text.append(f"{reason} {n}", style=STYLES[reason])
        text.append(", " if i + 1 < len(others) else "")
    return text


def _cells(row: Row, c: Correspondence, before: Row | None) -> list[str | Text]:
    left = c.source.lines[row.left - 1] if row.left is not None else ""
    right = c.result.lines[row.right - 1] if row.right is not None else ""
    style = STYLES.get(row.reason, "")
    why = row.reason if row.reason and row.reason not in UNCHANGED else ""
    repeated = before is not None and before.reason == row.reason and before.links == row.links == ()
    why_text = Text("" if repeated else why, style=style)
    if row.left is None and row.links:
        why_text.append(f" ‹{row.links[0]}", style="bright_black")
    return [
        str(row.left or ""),
        Text(left, style=STYLES[REMOVED] if row.right is None else "" if row.reason in UNCHANGED else "dim"),
        why_text,
        str(row.right or ""),
        _right(left, right, row, style),
    ]


def _right(left: str, right: str, row: Row, style: str) -> Text:
    if row.left is None or row.reason in UNCHANGED:
        return Text(right, style=style)
    text = Text()
    for piece, changed in changed_parts(left, right):
        text.append(piece, style=f"bold {style}" if changed and piece.strip() else "")
    return text


def print_side_by_side(console: Console, c: Correspondence, source_name: str, result_name: str, context: int) -> None:
    console.print(side_by_side(c, source_name, result_name, context=context, width=console.width), soft_wrap=False)
