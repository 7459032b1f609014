"""Constexpr parameters that a translation adds to a function."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from translator.source.source_text import Edit, SourceText


def with_parameters(source: SourceText, args: ast.arguments, added: Mapping[str, str]) -> Edit:
    """The edit that adds parameters with their defaults after the author's own, so that launches keep working."""
    parameters = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    ends = [source.span(n)[1] for n in [*parameters, *args.defaults, *args.kw_defaults] if n is not None]
    end = max(ends, default=source.text.index("(") + 1)
    texts = [f"{name}: gl.constexpr = {default}" for name, default in added.items()]
    rest, _, more = source.text[end:].partition("\n")
    comma, rest = rest[:1], rest[1:].strip()
    if comma == "," and more and (not rest or rest.startswith("#")):
        # One parameter or more per line, with a trailing comma.
        at = source.text.index("\n", end)
        line = source.text[source.text.rfind("\n", 0, end) + 1 : end]
        indent = line[: len(line) - len(line.lstrip())]
        return at, at, "".join(f"\n{indent}{text}," for text in texts)
    return end, end, (", " if ends else "") + ", ".join(texts)
