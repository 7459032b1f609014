"""Source and translation in step, as HTML: one grid row per pair of lines, every line linked to its origin."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Mapping
from html import escape

from gluonize.product.report.review.correspondence import Correspondence
from gluonize.product.report.review.reasons import REASONS, UNCHANGED
from gluonize.product.report.review.rows import REMOVED, Fold, Row
from gluonize.product.report.review.rows import folded as fold_rows
from gluonize.product.report.review.rows import rows_of
from gluonize.rules.gluon import MODULES, Effect, named

# Python source as HTML, line by line: keywords, strings, comments, numbers; names that the page explains become links.

_LANGUAGE = frozenset(("tl", "triton", *MODULES)) | named(Effect.WAITS, "tdm")


def highlighted(text: str, links: Mapping[str, str] | None = None) -> list[str]:
    """One HTML fragment per line of `text`; `links` maps a name to an anchor on the page."""
    lines = text.splitlines()
    marks: list[list[tuple[int, int, str]]] = [[] for _ in lines]
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if kind := _kind(token, links or {}):
                for number in range(token.start[0], token.end[0] + 1):
                    if number > len(lines):
                        break
                    first = token.start[1] if number == token.start[0] else 0
                    last = token.end[1] if number == token.end[0] else len(lines[number - 1])
                    marks[number - 1].append((first, last, kind))
    except (tokenize.TokenError, IndentationError):
        pass  # what cannot be read as tokens is shown plain from there on
    return [_line(line, found, links or {}) for line, found in zip(lines, marks)]


def _kind(token: tokenize.TokenInfo, links: Mapping[str, str]) -> str:
    if token.type == tokenize.COMMENT:
        return "comment"
    if token.type == tokenize.STRING:
        return "string"
    if token.type == tokenize.NUMBER:
        return "number"
    if token.type != tokenize.NAME:
        return ""
    if keyword.iskeyword(token.string):
        return "keyword"
    if token.string in links:
        return "link"
    return "module" if token.string in _LANGUAGE else ""


def _line(line: str, marks: list[tuple[int, int, str]], links: Mapping[str, str]) -> str:
    out, at = [], 0
    for first, last, kind in marks:
        out.append(escape(line[at:first]))
        words = escape(line[first:last])
        if kind == "link":
            out.append(f'<a href="#{escape(links[line[first:last]])}">{words}</a>')
        else:
            out.append(f'<i class="{kind}">{words}</i>')
        at = last
    return "".join(out) + escape(line[at:])


def code_section(
    c: Correspondence, source_name: str, result_name: str, links: Mapping[str, str], *, folded: bool
) -> str:
    """Legend and panes. links: names in the translation that have an anchor on the page."""
    left = highlighted("\n".join(c.source.lines))
    right = highlighted("\n".join(c.result.lines), links)
    body = []
    before = ""
    for item in fold_rows(rows_of(c), 3):
        if isinstance(item, Fold):
            rows = "".join(_row(r, left, right, "") for r in item.rows)
            opened = "" if folded else " open"
            body.append(f'<details class="fold"{opened}><summary>{escape(item.text)}</summary>{rows}</details>')
            before = ""
            continue
        body.append(_row(item, left, right, before))
        before = item.reason if item.links == () else ""
    head = (
        f'<div class="row head"><span></span><span style="text-align:left">{escape(source_name)}</span><span></span>'
        f'<span></span><span style="text-align:left">{escape(result_name)}</span></div>'
    )
    return f'{_legend(c, folded)}<div class="panes">{head}{"".join(body)}</div>'


def _legend(c: Correspondence, folded: bool) -> str:
    counts = c.counts()
    buttons = "".join(
        f'<button class="{r}" data-why="{r}" aria-pressed="false" title="{escape(REASONS[r])}">{r} {counts[r]}</button>'
        for r in REASONS
        if r in counts and r not in UNCHANGED
    )
    checked = " checked" if folded else ""
    return (
        f'<p class="lead">{c.kept()}. Rest on a line to see where it came '
        f"from, click to keep it.</p>"
        f'<div class="legend">{buttons}<label><input type="checkbox" id="fold"{checked}> fold unchanged lines</label></div>'
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
