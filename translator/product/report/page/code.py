"""Source and translation in step, as HTML: one grid row per pair of lines, every line linked to its origin."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from html import escape

from pygments.lexers.python import PythonLexer
from pygments.token import Token, _TokenType

from gluonize.product.report.page.on_demand import on_demand
from gluonize.product.report.review.correspondence import Correspondence
from gluonize.product.report.review.reasons import REASONS, UNCHANGED
from gluonize.product.report.review.rows import REMOVED, Fold, Row
from gluonize.product.report.review.rows import folded as fold_rows
from gluonize.product.report.review.rows import rows_of
from gluonize.rules.gluon import MODULES, Effect, named

# Python source as HTML, line by line: names that the page explains become links.
_LANGUAGE = frozenset(("tl", "triton", *MODULES)) | named(Effect.WAITS, "tdm")
_KINDS = {
    Token.Keyword: "keyword",
    Token.Operator.Word: "keyword",
    Token.Literal.String: "string",
    Token.Literal.Number: "number",
    Token.Comment: "comment",
}


def highlighted(text: str, links: Mapping[str, str] | None = None) -> list[str]:
    """One HTML fragment per line of `text`; `links` maps a name to an anchor on the page."""
    lines = [""]
    for kind, words in PythonLexer(stripnl=False, ensurenl=False).get_tokens(text):
        for number, part in enumerate(words.split("\n")):
            if number:
                lines.append("")
            lines[-1] += _marked(kind, part, links or {})
    return lines[: len(text.splitlines())]


def _marked(kind: _TokenType, words: str, links: Mapping[str, str]) -> str:
    if kind in Token.Name and words in links:
        return f'<a href="#{escape(links[words])}">{escape(words)}</a>'
    name = "module" if words in _LANGUAGE else next((name for known, name in _KINDS.items() if kind in known), "")
    return f'<i class="{name}">{escape(words)}</i>' if name and words.strip() else escape(words)


def code_section(c: Correspondence, source_name: str, result_name: str, links: Mapping[str, str]) -> str:
    """Legend and panes. links: names in the translation that have an anchor on the page.

    Unchanged lines are folded, and functions beside which nothing of the source stands are packed: layout tables, checks, further
    versions of a kernel.
    """
    left = highlighted("\n".join(c.source.lines))
    right = highlighted("\n".join(c.result.lines), links)
    body = []
    for alone, group in itertools.groupby(rows_of(c), key=_standing_alone(c)):
        rows = _rows(list(group), left, right)
        body.append(on_demand(escape(_said(c, alone)), rows, kind="fold") if alone else rows)
    head = (
        f'<div class="row head"><span></span><span style="text-align:left">{escape(source_name)}</span><span></span>'
        f'<span></span><span style="text-align:left">{escape(result_name)}</span></div>'
    )
    return f'{_legend(c)}<div class="panes">{head}{"".join(body)}</div>'


def _standing_alone(c: Correspondence) -> Callable[[Row], str]:
    """For a row the name of its function where no line of the source stands beside that, else ""."""
    beside = {line.function for line in c.lines if line.number in c.beside}
    return lambda row: "" if row.function in beside else row.function


def _said(c: Correspondence, function: str) -> str:
    """`matmul_kernel_layouts: 90 lines (layout 85, guard 3)`."""
    reasons = [line.reason for line in c.lines if line.function == function and line.reason]
    counts = {r: reasons.count(r) for r in REASONS if r in reasons}
    parts = ", ".join(f"{r} {n}" for r, n in sorted(counts.items(), key=lambda x: -x[1]))
    return f"{function}: {len(reasons)} lines ({parts})"


def _rows(rows: list[Row], left: list[str], right: list[str]) -> str:
    """Rows with unchanged ones folded."""
    out = []
    before = ""
    for item in fold_rows(rows, 3):
        if isinstance(item, Fold):
            inner = "".join(_row(r, left, right, "") for r in item.rows)
            out.append(f'<details class="fold"><summary>{escape(item.text)}</summary>{inner}</details>')
            before = ""
            continue
        out.append(_row(item, left, right, before))
        before = item.reason if item.links == () else ""
    return "".join(out)


def _legend(c: Correspondence) -> str:
    counts = c.counts()
    buttons = "".join(
        f'<button class="{r}" data-why="{r}" aria-pressed="false" title="{escape(REASONS[r])}">{r} {counts[r]}</button>'
        for r in REASONS
        if r in counts and r not in UNCHANGED
    )
    return (
        f'<p class="lead">{c.kept()}. Rest on a line to see where it came '
        f"from, click to keep it.</p>"
        f'<div class="legend">{buttons}<label><input type="checkbox" id="fold" checked> fold unchanged lines</label></div>'
    )


def _row(row: Row, left: list[str], right: list[str], before: str) -> str:
    why = row.reason if row.reason and row.reason not in UNCHANGED else ""
    cells = []
    if row.left is not None:
        cells.append(f'<span>{row.left}</span><code class="left" data-source="{row.left}">{left[row.left - 1]}</code>')
    else:
        cells.append('<span></span><code class="left"></code>')
    said = escape(why) if why and why != before else ""
    if row.left is None and row.links:
        said += f" <small>of {row.links[0]}</small>"
    cells.append(f'<span class="why">{said}</span>')
    if row.right is not None:
        origin = " ".join(map(str, row.links))
        cells.append(
            f'<span>{row.right}</span><code class="right" data-result="{row.right}" data-from="{origin}">'
            f"{right[row.right - 1]}</code>"
        )
    else:
        cells.append('<span></span><code class="right"></code>')
    classes = " ".join(x for x in ("row", why, "gone" if row.reason == REMOVED else "") if x)
    return f'<div class="{classes}" data-why="{why or "same"}">{"".join(cells)}</div>'
