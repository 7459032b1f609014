"""Statements that share a line get one each before a function is traced, so that others can stand before and behind them.

before: for i in range(n): a = tl.load(p + i); acc += a
after:  for i in range(n):
            a = tl.load(p + i)
            acc += a
"""

from __future__ import annotations

import ast

from gluonize.read.text.source_text import Edit, SourceText, edit_function
from gluonize.triton_api.jit_functions import JITFunction


def take_apart(fn: JITFunction) -> None:
    """Give the statements of one function lines of their own, in place."""
    source, function = SourceText(fn.src), ast.parse(fn.src).body[0]
    edits = _edits(source, function.body, _step(source, ""))  # type: ignore[attr-defined]
    if edits:
        edit_function(fn, source, edits)


def _edits(source: SourceText, block: list[ast.stmt], indent: str) -> list[Edit]:
    """indent: of the statements of `block`, where they stand behind its header."""
    edits: list[Edit] = []
    for s in block:
        start = source.span(s)[0]
        if source.text[source.starts[s.lineno - 1] : start].strip():
            edits.append((_end_before(source.text, start), start, f"\n{indent}"))
        else:
            indent = source.indent(s)
        for name in ("body", "orelse"):
            edits += _edits(source, getattr(s, name, []), _step(source, indent))
    return edits


def _end_before(text: str, start: int) -> int:
    """Where what stands before the statement at `start` on its line ends, without the semicolon between them."""
    before = text[:start].rstrip(" \t")
    return len(before.removesuffix(";").rstrip(" \t"))


def _step(source: SourceText, indent: str) -> str:
    """The indentation of what is in a statement behind `indent`."""
    tabs = any(line.startswith("\t") for line in source.lines)
    return indent + ("\t" if tabs else "    ")


__all__ = ["take_apart"]
