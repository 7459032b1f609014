"""Layouts that values only pass through on their way to other ones: a text for many sizes does without them.

    gl.convert_layout(gl.convert_layout(x, a), b)                           ->  gl.convert_layout(x, b)
    gl.convert_layout(gl.permute(gl.convert_layout(x, a), [1, 0]), b)       ->  gl.convert_layout(gl.permute(x, [1, 0]), b)
    gl.convert_layout(gl.convert_layout(x, a).T, b)                         ->  gl.convert_layout(x.T, b)
    gl.convert_layout(gl.reshape(gl.convert_layout(x, a), (N, 1)), b)       ->  gl.convert_layout(gl.reshape(x, (N, 1)), b)
    gl.convert_layout(gl.convert_layout(x, a) * gl.convert_layout(y, a), b) ->  gl.convert_layout(x, b) * gl.convert_layout(y, b)

Where arithmetic lies between two conversions is a choice that falls otherwise for other sizes, and each way is another set of layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace

import libcst as cst
from gluonize.general.converted_texts import is_conversion
from gluonize.gluon.trees.function import INDENT, code, formatted, statements
from gluonize.gluon.trees.walk import called, children, inside, mapped, names, walk
from gluonize.trace.model.layouts import DotOperand, Layout, Linear
from gluonize.write.state.emitted import EmittedKernel, LaidOut

Change = Callable[[cst.CSTNode], cst.CSTNode | None]
_OF_ANY_LAYOUT = ("permute", "reshape")  # the layout of the result follows from that of the operand, whatever it is
_ELEMENTWISE = (cst.BinaryOperation, cst.UnaryOperation, cst.Subscript)


def without_detours(emitted: EmittedKernel) -> EmittedKernel:
    """A translation whose values go straight to the layouts in which they are used."""
    laid_out = emitted.kernel.laid_out
    if laid_out is None:
        return emitted
    straight = _with_statements_changed(laid_out, _straight)
    instead = _instead(straight)
    if instead:
        renamed = straight.function.exchanging(instead)
        straight = _with_statements_changed(replace(straight, function=renamed), _without_idle(instead.values()))
    if straight is laid_out:
        return emitted
    used = set(straight.function.variables)
    used_layouts = [layout for name, layout in straight.constants if name in used]
    parents = {layout.parent for layout in used_layouts if isinstance(layout, DotOperand)}
    kept = tuple((name, layout) for name, layout in straight.constants if name in used or layout in parents)
    return replace(emitted, kernel=replace(emitted.kernel, laid_out=replace(straight, constants=kept)))


def _with_statements_changed(laid_out: LaidOut, change: Change) -> LaidOut:
    """A function with its simple statements changed, and those written anew that are."""
    function = laid_out.function

    def at(columns: int) -> Change:
        def changed(node: cst.CSTNode) -> cst.CSTNode | None:
            if isinstance(node, cst.IndentedBlock):
                return inside(node, at(columns + len(INDENT)))
            if not isinstance(node, cst.SimpleStatementLine):
                return None
            new = mapped(node, change)
            return node if new is node else statements(formatted(code(new), columns))[0]

        return changed

    node = mapped(function.node, at(function.indent - len(INDENT)))
    return laid_out if node is function.node else replace(laid_out, function=function.with_node(node))


def _straight(node: cst.CSTNode) -> cst.CSTNode | None:
    """A conversion of what was converted before, or of what was and then permuted or reshaped."""
    if not is_conversion(node):
        return None
    value, layout = (arg.value for arg in node.args)  # type: ignore[attr-defined]
    while True:
        if is_conversion(value):
            value = value.args[0].value
        elif called(value) in _OF_ANY_LAYOUT and is_conversion(value.args[0].value):
            first = value.args[0]
            value = value.with_changes(args=[first.with_changes(value=first.value.args[0].value), *value.args[1:]])
        elif isinstance(value, cst.Attribute) and value.attr.value == "T" and is_conversion(value.value):
            value = value.with_changes(value=_primary(value.value.args[0].value))
        else:
            break
    value = mapped(value, _straight)
    old = node.args[0]  # type: ignore[attr-defined]
    return node if value is old.value else node.with_changes(args=[old.with_changes(value=value), node.args[1]])  # type: ignore[attr-defined]


def _primary(value: cst.BaseExpression) -> cst.BaseExpression:
    """An expression of which an attribute may be taken: in parentheses where it needs them."""
    if value.lpar or isinstance(value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)):
        return value
    return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _instead(laid_out: LaidOut) -> dict[str, str]:
    """What stands for each layout that values are converted to for arithmetic alone, and from there to one other layout."""
    layouts = dict(laid_out.constants)
    counts: dict[str, int] = {}
    for node in walk(laid_out.function.node.body):
        if isinstance(node, cst.Name) and node.value in layouts:
            counts[node.value] = counts.get(node.value, 0) + 1
    ends: dict[str, list[str]] = {}
    for name, end in _ends(laid_out.function.node.body, layouts, ""):
        ends.setdefault(name, []).append(end)
    out = {
        name: found[0]
        for name, found in ends.items()
        if len(set(found)) == 1 and len(found) == counts[name] and _may_stand_for(layouts, found[0], name)
    }
    return {name: end for name, end in out.items() if end not in out}


def _may_stand_for(layouts: Mapping[str, Layout], one: str, other: str) -> bool:
    """Whether arithmetic may lie in a layout instead of another one: it has as many dimensions, and takes tiles of every shape."""
    if one not in layouts or one == other:
        return False
    fixed = (DotOperand, Linear)
    return not isinstance(layouts[one], fixed) and layouts[one].rank == layouts[other].rank


def _ends(node: cst.CSTNode, known: Container[str], end: str) -> Iterator[tuple[str, str]]:
    """Each layout that something in `node` is converted to, and that to which arithmetic converts it further; end: of `node` itself."""
    if is_conversion(node):
        value, layout = (arg.value for arg in node.args)  # type: ignore[attr-defined]
        yield from ((name, end) for name in sorted(names(layout)) if name in known)
        yield from _ends(value, known, layout.value if isinstance(layout, cst.Name) else "")
        return
    if called(node) == "to" and isinstance(node.func, cst.Attribute):  # type: ignore[attr-defined]
        yield from _ends(node.func.value, known, end)  # type: ignore[attr-defined]
        return
    for child in children(node):
        yield from _ends(child, known, end if isinstance(node, _ELEMENTWISE) else "")


def _without_idle(layouts: Container[str]) -> Change:
    """Change arithmetic whose parts are all converted to a layout, and then once more to the same."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if isinstance(node, cst.Arg) and _is_idle(node.value, layouts):
            return node.with_changes(value=mapped(node.value.args[0].value, change))  # type: ignore[attr-defined]
        if not _is_idle(node, layouts):
            return None
        value = mapped(node.args[0].value, change)  # type: ignore[attr-defined]
        return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])

    return change


def _is_idle(node: cst.CSTNode, layouts: Container[str]) -> bool:
    if not is_conversion(node):
        return False
    value, layout = (arg.value for arg in node.args)  # type: ignore[attr-defined]
    if not isinstance(layout, cst.Name) or layout.value not in layouts or not isinstance(value, cst.BinaryOperation):
        return False
    sides = (value.left, value.right)
    return all(is_conversion(side) and code(side.args[1].value) == layout.value for side in sides)  # type: ignore[attr-defined]


__all__ = ["without_detours"]
