"""The text of a call with its function and arguments translated in place."""

from __future__ import annotations

import ast
import functools
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from gluonize.facts.callees import Callee, bind
from gluonize.facts.syntax import arguments_of
from gluonize.gluon.code import code_of
from gluonize.gluon.imports import TRITON_LANGUAGE
from gluonize.gluon.written import Does, Part, Written, attribute, doing, made, operand
from gluonize.rules.rows import Row
from gluonize.rules.template import template as parsed
from gluonize.write.state.unit import Record
from gluonize.write.state.writing import Writing

Texts = dict[ast.AST, Written]


@dataclass(frozen=True)
class Called:
    """A call, and what it calls."""

    node: ast.Call
    callee: Callee

    @functools.cached_property
    def given(self) -> dict[str, ast.expr]:
        """Its arguments by name."""
        return bind(self.node, self.callee)


def function_text(writing: Writing, node: ast.Call, callee: Callee) -> Written:
    """The Gluon spelling of the called function: that of its row, or the author's where that is a name of the same function."""
    template = callee.row.template if callee.row is not None else None
    if template is None or not template.takes_arguments:
        return writing.emit(node.func)
    text = "".join(template.called({}, operand))
    if isinstance(node.func, ast.Name) and callee.is_tritons and text in (f"gl.{callee.name}", f"tl.{callee.name}"):
        return writing.emit(node.func)
    does = Does.READS if callee.row.kind == "load" else Does.NOTHING
    return Written(imported(writing.record, text), ast.Attribute, does=does)


def imported(record: Record, text: str) -> str:
    """`text`, which a template has made, with what it needs from `triton.language`."""
    if text.startswith("tl."):
        record.imports.add(TRITON_LANGUAGE)
    return text


def by_template(record: Record, row: Row, values: Mapping[str, Part | None], template: str = "") -> Written:
    """The row's template, or another one that it has, with its holes filled."""
    own = parsed(template or row.becomes)
    first, *others = own.filled(values, operand)
    does = doing(value for value in values.values() if value is not None)
    return Written(code_of(imported(record, first), *others), own.form, does=does)


def generic(writing: Writing, node: ast.Call, children: Texts) -> Written:
    """The call with its function and arguments translated in place; `children` overrides arguments."""
    edits = {node.func: writing.emit(node.func)}
    for argument in arguments_of(node):
        inner = argument.value if isinstance(argument, ast.Starred) else argument
        edits[inner] = children[inner] if inner in children else writing.emit(inner)
    return writing.splice(node, edits)


def with_function(
    writing: Writing, node: ast.Call, callee: Callee, children: Texts, more: Sequence[Part] = ()
) -> Written:
    """The call as its row has it, with the author's arguments; `children` overrides arguments, `more` follows them."""
    template = callee.row.template if callee.row is not None else None
    if template is not None and callee.row.kind == "elementwise" and not template.takes_arguments:
        values = {name: children.get(a) or writing.emit(a) for name, a in bind(node, callee).items()}
        return by_template(writing.record, callee.row, dict.fromkeys(template.holes) | values)
    if callee.owner is not None:
        edits = method_of(writing, node, callee, children)
        for argument in arguments_of(node):
            edits[argument] = children.get(argument) or writing.emit(argument)
    else:
        edits = {node.func: function_text(writing, node, callee)}
        for argument in arguments_of(node):
            inner = argument.value if isinstance(argument, ast.Starred) else argument
            edits[inner] = children.get(inner) or _items(writing, inner, children) or writing.emit(inner)
    return writing.splice(node, edits, more)


def method_of(writing: Writing, node: ast.Call, callee: Callee, children: Texts) -> Texts:
    """The function of a method call, where its owner is written in another way."""
    owner, source = operand(children.get(callee.owner) or writing.emit(callee.owner)), writing.facts.source
    if owner == source.of(callee.owner):
        return {}
    between = source.text[source.span(callee.owner)[1] : source.span(node.func)[1]]
    if "#" in between:
        return {node.func: made(ast.Attribute, owner, between)}
    return {node.func: attribute(owner, node.func.attr)}


def of_row(row: Row, given: Container[str], layout: Part) -> list[Part]:
    """What a row appends to the author's arguments: what it adds where it is not given, and the layout."""
    added = [f"{name}={value}" for name, value in row.added.items() if name not in given]
    more = (made(ast.keyword, *parts) for parts in row.template.more({"layout": layout}, operand))
    return [*added, *more]


def _items(writing: Writing, node: ast.expr, children: Texts) -> Written | None:
    """A written-out tuple of which elements are in `children`."""
    if not isinstance(node, (ast.Tuple, ast.List)) or not any(e in children for e in node.elts):
        return None
    return writing.splice(node, {e: children.get(e) or writing.emit(e) for e in node.elts})
