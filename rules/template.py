"""Templates: Gluon code with holes, parsed once by libcst.

A hole is written `{name}`, which is Python already (a set of one name), so a template needs no treatment before it is parsed.
`{...}` stands for the author's own arguments, with their order, keywords, line breaks and comments:

    gl.arange({...}, layout={layout})       tl.arange(0, BLOCK)      ->  gl.arange(0, BLOCK, layout=rows)
    gl.permute({input}, {order})            tl.trans(x)              ->  gl.permute(x, [1, 0])

An argument whose hole is filled with None is left out. This module is read by the command line's `--help`: libcst is imported
when the first template is parsed.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gluonize.rules.hole_names import ARGUMENTS, OPERAND, Parts

Filling = Mapping[str, Any]  # None for an argument that is left out


@dataclass(frozen=True)
class Template:
    """form: the class of its syntax node, of an operation that of its operator. Of a call that takes the author's arguments:
    function, the text before them, and appended, what follows them."""

    text: str
    form: type[ast.AST]
    holes: frozenset[str]
    parts: Parts
    function: Parts = ()
    appended: tuple[Parts, ...] = ()

    @property
    def takes_arguments(self) -> bool:
        return ARGUMENTS in self.holes

    def filled(self, values: Filling, operand: Callable[[Any], Any]) -> tuple[Any, ...]:
        """Its parts, what fills its holes among them. operand: puts parentheses around what cannot stand before `.` or `[`."""
        left_out = frozenset(name for name in self.holes if values.get(name, "") is None)
        template = _without(self.text, left_out) if left_out else self
        return _joined(template.parts, values, operand)

    def called(self, values: Filling, operand: Callable[[Any], Any]) -> tuple[Any, ...]:
        """The function of a template with `{...}`, in parts."""
        return _joined(self.function, values, operand)

    def more(self, values: Filling, operand: Callable[[Any], Any]) -> list[tuple[Any, ...]]:
        """What a template with `{...}` adds behind the author's arguments, each in parts."""
        return [_joined(parts, values, operand) for parts in self.appended]


def _joined(parts: Parts, values: Filling, operand: Callable[[Any], Any]) -> tuple[Any, ...]:
    out = []
    for i, part in enumerate(parts):
        if i % 2 == 0:
            out.append(part)
            continue
        value = values[part.removeprefix(OPERAND)]
        assert value is not None, f"bug in gluonize: nothing to fill {part} with"
        out.append(operand(value) if part.startswith(OPERAND) else value)
    return tuple(out)


@functools.cache
def template(text: str) -> Template:
    """Parse a template. Raises: ValueError for what is no Python expression, or has `{...}` elsewhere than first in a call."""
    return _without(text, frozenset())


@functools.cache
def _without(text: str, left_out: frozenset[str]) -> Template:
    from gluonize.rules.template_holes import parts_of_template

    parts, call = parts_of_template(text, left_out)
    holes = frozenset(part.removeprefix(OPERAND) for part in parts[1::2])
    node = ast.parse(text, mode="eval").body
    form = type(node.op) if isinstance(node, (ast.BinOp, ast.UnaryOp)) else type(node)
    if ARGUMENTS not in holes:
        return Template(text, form, holes, parts)
    if call is None or not call[1] or call[1][0][1:2] != (ARGUMENTS,):
        raise ValueError(f"the template `{text}` has {{...}} elsewhere than first in its call")
    function, (_, *appended) = call
    return Template(text, form, holes, parts, function, tuple(appended))
