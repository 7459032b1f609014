"""The text of a call with its function and arguments translated in place."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from translator.rewrite.callees import Callee
from translator.rewrite.splice import operand

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter


def function_text(rw: "FunctionRewriter", node: ast.Call, callee: Callee) -> str:
    """The Gluon spelling of the called function."""
    if callee.row is not None and callee.row.gluon and callee.owner is None:
        return callee.row.gluon
    return rw.emit(node.func)


def generic(rw: "FunctionRewriter", node: ast.Call, children: dict[ast.AST, str]) -> str:
    """The call with its function and arguments translated in place; `children` overrides arguments."""
    edits = {node.func: rw.emit(node.func)}
    for argument in [*node.args, *(k.value for k in node.keywords)]:
        inner = argument.value if isinstance(argument, ast.Starred) else argument
        edits[inner] = children[inner] if inner in children else rw.emit(inner)
    return rw.splice(node, edits)


def with_function(rw, node: ast.Call, callee: Callee, children: dict[ast.AST, str]) -> str:
    """The call with the Gluon spelling of its function; `children` overrides arguments."""
    if callee.owner is not None:
        owner = operand(children.get(callee.owner) or rw.emit(callee.owner))
        name = node.func.attr
        if owner == rw.source.of(callee.owner):
            edits: dict[ast.AST, str] = {}
        else:
            start = rw.source.span(callee.owner)
            between = rw.source.text[start[1] : rw.source.span(node.func)[1]]
            edits = {node.func: f"{owner}.{name}" if "#" not in between else f"{owner}{between}"}
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            edits[argument] = children.get(argument) or rw.emit(argument)
        return rw.splice(node, edits)
    edits = {node.func: function_text(rw, node, callee)}
    for argument in [*node.args, *(k.value for k in node.keywords)]:
        inner = argument.value if isinstance(argument, ast.Starred) else argument
        edits[inner] = children.get(inner) or _items(rw, inner, children) or rw.emit(inner)
    return rw.splice(node, edits)


def _items(rw, node: ast.expr, children: dict[ast.AST, str]) -> str | None:
    """A written-out tuple of which elements are in `children`."""
    if not isinstance(node, (ast.Tuple, ast.List)) or not any(e in children for e in node.elts):
        return None
    return rw.splice(node, {e: children.get(e) or rw.emit(e) for e in node.elts})


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
