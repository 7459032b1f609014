"""Python source as HTML, line by line: keywords, strings, comments, numbers; names that the page explains become links."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Mapping
from html import escape

from rules.gluon import MODULES, Effect, named

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
