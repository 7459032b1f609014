"""The text of a call with its function and arguments translated in place."""

from __future__ import annotations

import ast
from collections.abc import Container

from rules.rows import Row
from rules.template import template as parsed
from translator.rewrite.emission import Emit, Splice
from translator.facts.callees import Callee, bind
from translator.rewrite.import_lines import TRITON_LANGUAGE
from translator.rewrite.splice import operand
from translator.rewrite.unit import Record


def function_text(emit: Emit, record: Record, node: ast.Call, callee: Callee) -> str:
    """The Gluon spelling of the called function: that of its row, or the author's where that is a name of the same function."""
    template = callee.row.template if callee.row is not None else None
    if template is None or not template.takes_arguments:
        return emit(node.func)
    text = template.called({}, operand)
    if isinstance(node.func, ast.Name) and text in (f"gl.{callee.name}", f"tl.{callee.name}"):
        return emit(node.func)
    return imported(record, text)


def imported(record: Record, text: str) -> str:
    """`text`, which a template has made, with what it needs from `triton.language`."""
    if text.startswith("tl."):
        record.imports.add(TRITON_LANGUAGE)
    return text


def by_template(record: Record, row: Row, values: dict[str, str | None], template: str = "") -> str:
    """The row's template, or another one that it has, with its holes filled."""
    return imported(record, parsed(template or row.becomes).filled(values, operand))


def generic(emit: Emit, splice: Splice, node: ast.Call, children: dict[ast.AST, str]) -> str:
    """The call with its function and arguments translated in place; `children` overrides arguments."""
    edits = {node.func: emit(node.func)}
    for argument in [*node.args, *(k.value for k in node.keywords)]:
        inner = argument.value if isinstance(argument, ast.Starred) else argument
        edits[inner] = children[inner] if inner in children else emit(inner)
    return splice(node, edits)


def with_function(rw, node: ast.Call, callee: Callee, children: dict[ast.AST, str]) -> str:
    """The call as its row has it, with the author's arguments; `children` overrides arguments."""
    template = callee.row.template if callee.row is not None else None
    if template is not None and callee.row.kind == "elementwise" and not template.takes_arguments:
        values = {name: children.get(a) or rw.emit(a) for name, a in bind(rw.facts, node, callee).items()}
        return by_template(rw.record, callee.row, dict.fromkeys(template.holes) | values)
    if callee.owner is not None:
        owner = operand(children.get(callee.owner) or rw.emit(callee.owner))
        name = node.func.attr
        if owner == rw.facts.source.of(callee.owner):
            edits: dict[ast.AST, str] = {}
        else:
            start = rw.facts.source.span(callee.owner)
            between = rw.facts.source.text[start[1] : rw.facts.source.span(node.func)[1]]
            edits = {node.func: f"{owner}.{name}" if "#" not in between else f"{owner}{between}"}
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            edits[argument] = children.get(argument) or rw.emit(argument)
        return rw.splice(node, edits)
    edits = {node.func: function_text(rw.emit, rw.record, node, callee)}
    for argument in [*node.args, *(k.value for k in node.keywords)]:
        inner = argument.value if isinstance(argument, ast.Starred) else argument
        edits[inner] = children.get(inner) or _items(rw.emit, rw.splice, inner, children) or rw.emit(inner)
    return rw.splice(node, edits)


def with_layout(row: Row, call: str, given: Container[str], layout: str) -> str:
    """A call with what its row appends to the author's arguments: what it adds where it is not given, and the layout."""
    for name, value in row.added.items():
        call = append_argument(call, f"{name}={value}") if name not in given else call
    for argument in row.template.more({"layout": layout}, operand):
        call = append_argument(call, argument)
    return call


def _items(emit: Emit, splice: Splice, node: ast.expr, children: dict[ast.AST, str]) -> str | None:
    """A written-out tuple of which elements are in `children`."""
    if not isinstance(node, (ast.Tuple, ast.List)) or not any(e in children for e in node.elts):
        return None
    return splice(node, {e: children.get(e) or emit(e) for e in node.elts})


def append_argument(call: str, argument: str) -> str:
    """Add one argument before the closing parenthesis, after a trailing comma if there is one."""
    body = call.rstrip()
    assert body.endswith(")"), f"bug in gluonize: {call}"
    inner = body[:-1].rstrip()
    if "\n" in inner:
        last = inner.splitlines()[-1]
        if "#" in last:  # a comment ends the last argument's line
            indent = last[: len(last) - len(last.lstrip())]
            return f"{body[:-1].rstrip()}\n{indent}{argument})"
    separator = " " if inner.endswith(",") else ", " if not inner.endswith("(") else ""
    return f"{inner}{separator}{argument})"
