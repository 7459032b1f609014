"""The layouts of a launch in the words of another one: what each name of the text of that is here.

Names follow from what comes first in a text, and texts that differ in where values are converted have other names for the same: an
operand of a product has its layout from a conversion, whatever it is called. So names are matched by where they stand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import libcst as cst
from gluonize.gluon.trees.function import GluonFunction
from gluonize.gluon.trees.walk import called, children, mapped, same, walk
from gluonize.rules import gluon
from gluonize.trace.model.layouts import DotOperand, Layout, Mfma, Wmma
from gluonize.write.state.emitted import EmittedKernel, LaidOut

_CONVERSIONS = gluon.named(gluon.Effect.CONVERTS)
_SCALED = ("a", "b", "a_format", "b_format", "acc")
_PRODUCTS = {
    op.name: op.operands
    for op in gluon.OPS
    if op.effect is gluon.Effect.MULTIPLIES and op.operands == ("a", "b", "acc")
} | {"multiply_fp8": _SCALED}


def in_words_of(own: EmittedKernel, other: EmittedKernel, exact: bool = False) -> EmittedKernel | None:
    """A translation with the layouts that have names in another one, by these names; None where the two differ in more than what
    layouts are, where values are converted to these, and what is checked before a launch. exact: no layout stands for two.
    """
    mine, theirs = own.kernel.laid_out, other.kernel.laid_out
    if mine is None or theirs is None or mine.depths != theirs.depths or _helpers(own) != _helpers(other):
        return None
    if mine.function.text == theirs.function.text:
        return other if _names(mine) == _names(theirs) else None
    if not same(_without_conversions(mine.function), _without_conversions(theirs.function)):
        return None
    layouts = _layouts_by_name(mine, theirs, exact)
    if layouts is None:
        return None
    return replace(other, kernel=replace(other.kernel, laid_out=replace(theirs, constants=tuple(layouts.items()))))


def _helpers(emitted: EmittedKernel) -> list[tuple[str, str]]:
    return [(helper.name, helper.text) for helper in emitted.helpers]


def _names(laid_out: LaidOut) -> list[str]:
    return [name for name, _ in laid_out.constants]


def is_conversion(node: cst.CSTNode) -> bool:
    """Whether a node is `gl.convert_layout(value, layout)`."""
    return called(node) in _CONVERSIONS and len(node.args) == 2  # type: ignore[attr-defined]


@lru_cache(maxsize=1024)
def _without_conversions(function: GluonFunction) -> cst.CSTNode:
    """`x` for each `gl.convert_layout(x, layout)`, and the operands of a product in the order of its parameters: which is read first
    depends on where it lies."""

    def change(node: cst.CSTNode) -> cst.CSTNode | None:
        if called(node) in _PRODUCTS:
            changed = tuple(mapped(arg, change) for arg in node.args)  # type: ignore[attr-defined]
            return node.with_changes(args=_in_order(changed, _PRODUCTS[called(node)]))
        if called(node) not in _CONVERSIONS or not node.args:  # type: ignore[attr-defined]
            return None
        return mapped(node.args[0].value, change)  # type: ignore[attr-defined]

    return mapped(function.node, change)


def _in_order(args: Sequence[cst.Arg], parameters: Sequence[str]) -> tuple[cst.Arg, ...]:
    """`a, acc=c, b=b`  ->  `a, b, c`"""
    named = {arg.keyword.value: arg for arg in args if arg.keyword is not None}
    operands = [arg for arg in args if arg.keyword is None]
    operands += [cst.Arg(named.pop(name).value) for name in parameters[len(operands) :] if name in named]
    return (*operands, *named.values())


def _layouts_by_name(mine: LaidOut, theirs: LaidOut, exact: bool) -> dict[str, Layout] | None:
    """The layouts of a translation by the names of another one; None where one has no counterpart, or, if `exact`, several."""
    known, given = dict(theirs.constants), dict(mine.constants)
    told = {node.value for node in walk(_without_conversions(mine.function)) if isinstance(node, cst.Name)}
    beside: dict[str, Counter[Layout]] = {}
    for name, counterpart in _pairs(mine.function.node, theirs.function.node):
        if name in given and counterpart in known:
            beside.setdefault(name, Counter())[known[counterpart]] += 1
    out: dict[str, Layout | None] = {}
    for name, layout in given.items():
        if name in told:
            out[name] = known.get(name)
        elif name in beside:
            found = beside[name]
            one = len(found) == 1 or not exact and not isinstance(layout, DotOperand)
            out[name] = found.most_common(1)[0][0] if one else None
    for name, layout in given.items():  # products of which only operands are named
        if name not in out:
            operands = {p.parent for n, x in given.items() if isinstance(x, DotOperand) and x.parent == layout and isinstance(p := out.get(n), DotOperand)}  # fmt: skip
            out[name] = operands.pop() if len(operands) == 1 else known.get(name)
    found = {name: layout for name, layout in out.items() if layout is not None}
    # What is stored after a product may lie in its layout or not; the product itself has matrix cores in both, or in neither.
    products = {x.parent for x in given.values() if isinstance(x, DotOperand)} or set(
        filter(_has_cores, given.values())
    )
    if len(found) < len(given) or any(_has_cores(found[n]) != _has_cores(x) for n, x in given.items() if x in products):
        return None
    return {name: found[name] for name in given}


def _has_cores(layout: Layout) -> bool:
    """Whether a product in a layout has matrix cores: what has none for some sizes is another kernel there."""
    return isinstance(layout, (Mfma, Wmma))


def _pairs(mine: cst.CSTNode, theirs: cst.CSTNode) -> Iterator[tuple[str, str]]:
    """The layouts to which two texts convert a value last, where both do; the texts are the same but for conversions."""
    (mine, layout), (theirs, counterpart) = _converted(mine), _converted(theirs)
    if layout is not None and counterpart is not None:
        yield from _same_part(layout, counterpart)
    parts, others = _parts(mine), _parts(theirs)
    if len(parts) == len(others):
        for part, other in zip(parts, others):
            yield from _pairs(part, other)


def _converted(node: cst.CSTNode) -> tuple[cst.CSTNode, cst.CSTNode | None]:
    """(a value, the layout to which it is converted last)."""
    layout = None
    while is_conversion(node):
        layout = layout or node.args[1].value  # type: ignore[attr-defined]
        node = node.args[0].value  # type: ignore[attr-defined]
    return node, layout


def _same_part(layout: cst.CSTNode, other: cst.CSTNode) -> Iterator[tuple[str, str]]:
    """The names in two layouts, both of which are a name or the same slice of one."""
    if isinstance(layout, cst.Name) and isinstance(other, cst.Name):
        yield layout.value, other.value
    elif called(layout) == called(other) == gluon.Layouts.SLICE and same(layout.args[0], other.args[0]):  # type: ignore[attr-defined]
        yield from _same_part(layout.args[1].value, other.args[1].value)  # type: ignore[attr-defined]


def _parts(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    if called(node) not in _PRODUCTS:
        return children(node)
    return [arg.value for arg in _in_order(node.args, _PRODUCTS[called(node)])]  # type: ignore[attr-defined]


__all__ = ["in_words_of", "is_conversion"]
