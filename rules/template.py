"""Templates: Gluon code with holes, parsed once by libcst.

A hole is written `{name}`, which is Python already (a set of one name), so a template needs no treatment before it is parsed.
`{...}` stands for the author's own arguments, with their order, keywords, line breaks and comments:

    gl.arange({...}, layout={layout})       tl.arange(0, BLOCK)      ->  gl.arange(0, BLOCK, layout=rows)
    gl.permute({input}, {order})            tl.trans(x)              ->  gl.permute(x, [1, 0])

An argument whose hole is filled with None is left out. This module is read by the command line's `--help`: libcst is imported
when the first template is parsed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

ARGUMENTS = "arguments"  # the hole that is written `{...}`
_MARK = "\N{CYRILLIC LETTER MULTIOCULAR O}"  # a letter of names that nobody writes: stands around holes while they are printed
_OPERAND = "operand_"  # before the name of a hole that has to be an operand
Filling = Mapping[str, str | None]
Parts = tuple[str, ...]  # text, hole, text, hole, ..., text


@dataclass(frozen=True)
class Template:
    """Of a call that takes the author's arguments: function, the text before them, and appended, what follows them."""

    text: str
    holes: frozenset[str]
    parts: Parts
    function: Parts = ()
    appended: tuple[Parts, ...] = ()

    @property
    def takes_arguments(self) -> bool:
        return ARGUMENTS in self.holes

    def filled(self, values: Filling, operand: Callable[[str], str]) -> str:
        """The text with its holes filled. operand: puts parentheses around what cannot stand before `.` or `[`."""
        left_out = frozenset(name for name in self.holes if values.get(name, "") is None)
        template = _without(self.text, left_out) if left_out else self
        return _joined(template.parts, values, operand)

    def called(self, values: Filling, operand: Callable[[str], str]) -> str:
        """The function of a template with `{...}`."""
        return _joined(self.function, values, operand)

    def more(self, values: Filling, operand: Callable[[str], str]) -> list[str]:
        """What a template with `{...}` adds behind the author's arguments."""
        return [_joined(parts, values, operand) for parts in self.appended]


def _joined(parts: Parts, values: Filling, operand: Callable[[str], str]) -> str:
    out = []
    for i, part in enumerate(parts):
        if i % 2 == 0:
            out.append(part)
            continue
        value = values[part.removeprefix(_OPERAND)]
        assert value is not None, f"bug in gluonize: nothing to fill {part} with"
        out.append(operand(value) if part.startswith(_OPERAND) else value)
    return "".join(out)


@functools.cache
def template(text: str) -> Template:
    """Parse a template. Raises: ValueError for what is no Python expression, or has `{...}` elsewhere than first in a call."""
    return _without(text, frozenset())


@functools.cache
def _without(text: str, left_out: frozenset[str]) -> Template:
    import libcst as cst

    try:
        body = cst.parse_expression(text)
    except cst.ParserSyntaxError as error:
        raise ValueError(f"the template `{text}` is no Python expression: {error.message}") from error

    def hole(node: cst.CSTNode) -> str | None:
        if not isinstance(node, cst.Set) or len(node.elements) != 1:
            return None
        value = node.elements[0].value
        return value.value if isinstance(value, cst.Name) else ARGUMENTS if isinstance(value, cst.Ellipsis) else None

    class Marked(cst.CSTTransformer):
        """Holes as marks, arguments that are left out removed, commas made anew."""

        def leave_Set(self, original_node, updated_node):
            name = hole(original_node)
            return updated_node if name is None else cst.Name(f"{_MARK}{name}{_MARK}")

        def leave_Arg(self, original_node, updated_node):
            if hole(original_node.value) in left_out:
                return cst.RemoveFromParent()
            return updated_node.with_changes(comma=cst.MaybeSentinel.DEFAULT)

        def leave_Attribute(self, original_node, updated_node):
            return updated_node.with_changes(value=self._tight(original_node.value, updated_node.value))

        def leave_Subscript(self, original_node, updated_node):
            return updated_node.with_changes(value=self._tight(original_node.value, updated_node.value))

        def leave_BinaryOperation(self, original_node, updated_node):
            sides = {side: getattr(original_node, side) for side in ("left", "right")}
            return updated_node.with_changes(
                **{side: self._tight(node, getattr(updated_node, side)) for side, node in sides.items()}
            )

        def leave_UnaryOperation(self, original_node, updated_node):
            return updated_node.with_changes(expression=self._tight(original_node.expression, updated_node.expression))

        def leave_Comparison(self, original_node, updated_node):
            return updated_node.with_changes(left=self._tight(original_node.left, updated_node.left))

        def leave_ComparisonTarget(self, original_node, updated_node):
            return updated_node.with_changes(comparator=self._tight(original_node.comparator, updated_node.comparator))

        def _tight(self, original, updated):
            name = hole(original)
            return updated if name is None else cst.Name(f"{_MARK}{_OPERAND}{name}{_MARK}")

    empty = cst.Module([])

    def parts_of(node: cst.CSTNode) -> Parts:
        return tuple(empty.code_for_node(node).split(_MARK))

    marked = cst.ensure_type(body.visit(Marked()), cst.BaseExpression)
    parts = parts_of(marked)
    holes = frozenset(part.removeprefix(_OPERAND) for part in parts[1::2])
    if ARGUMENTS not in holes:
        return Template(text, holes, parts)
    if not isinstance(marked, cst.Call) or not marked.args or parts_of(marked.args[0])[1:2] != (ARGUMENTS,):
        raise ValueError(f"the template `{text}` has {{...}} elsewhere than first in its call")
    appended = tuple(parts_of(argument) for argument in marked.args[1:])
    return Template(text, holes, parts, parts_of(marked.func), appended)
