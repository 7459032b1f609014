"""Constexpr parameters that a translation adds to a function, and defaults that its text would not give any more."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from translator.facts.function import FunctionFacts
from translator.facts.source_text import Edit, SourceText
from translator.gluon.written import Written, literal


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


def bound_default(facts: FunctionFacts, default: ast.expr) -> Written | None:
    """The value that the name of a default had when `def` ran, where the name has another one when the module has been read."""
    fn, args = facts.frame.fn, facts.tree.args
    if not isinstance(default, ast.Name) or default.id not in fn.fn.__globals__:
        return None
    positional = [*args.posonlyargs, *args.args]
    paired = [*zip(reversed(positional), reversed(args.defaults)), *zip(args.kwonlyargs, args.kw_defaults)]
    argument = next(a.arg for a, value in paired if value is default)
    bound = next(p.default for p in fn.params if p.name == argument)
    same = fn.fn.__globals__[default.id] == bound
    return literal(bound) if type(bound) in (int, float, bool, str) and not same else None
