"""Scales that a lane reads side by side, where the product may take groups along K in another order.

Before:                                                  After:
    sa = sa_smem.index(slot).load(sa_operand)                sa = sa_smem.index(slot).load(sa_by_lane)
    acc = mfma_scaled(a, sa, "e2m1", b, ...)                 acc = mfma_scaled(in_turn(a, ...), in_turn(sa, ...), "e2m1", in_turn(b, ...), ...)

The lanes that share a row in a scaled matrix instruction have a group of K each, one scale for it. What a lane has for one instruction
after the other is therefore as many bytes apart as there are such lanes, and is read byte by byte. Here each of them has groups that
follow one another, whose scales are read as a word; operands are read in the same order. Layouts alone say so: the instruction gets
the registers that were read, under other names. What is summed up is the same, the order in which it is rounded is not.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gluonize.decide.layouts.inferred import infer
from gluonize.facts.products.scaled import SIDES, ScaledProduct, first_rows
from gluonize.gluon.written import Written, call, literal
from gluonize.trace.model.layouts import Layout, Linear
from gluonize.write.state.relations import Wants
from gluonize.write.state.unit import Synthesized
from gluonize.write.state.writing import added, Asking, Writing

Side = tuple[Written, Written]  # an operand and its scales


@dataclass(frozen=True)
class KOrder:
    """lanes: that share a row in one instruction; groups: along K in a tile, each with a scale."""

    lanes: int
    groups: int


def order_of(writing: Writing, made: ScaledProduct) -> KOrder | None:
    """The order that was chosen; None for that of the source, and where no lane has scales for several instructions in it."""
    if not writing.decided.choices.asks("scale-reads", "words"):
        return None
    every = [node for node in (*made.operands, *made.scales) if node is not None]
    if any(writing.facts.tensor(node).rank != 2 for node in every):
        return None
    found = (
        _order(layout, writing.facts.tensor(node).shape[1])
        for node, layout in zip(made.scales, made.scale_layouts)
        if node is not None and isinstance(layout, Linear)
    )
    return next(found, None)


def _order(layout: Linear, groups: int) -> KOrder | None:
    """The order for scales in `layout`, in which the lowest bits of a group's number are those of the lane."""
    along = [basis[1] for basis in layout.lane if basis[1] and not basis[0]]
    lanes = 1 << len(along)
    if sorted(along) != [1 << i for i in range(len(along))] or any(basis[1] for basis in layout.warp):
        return None
    return KOrder(lanes, groups) if 1 < lanes < groups else None


def read(writing: Writing, made: ScaledProduct, which: int) -> Side:
    """An operand and its scales as a whole; "None" for scales that there are not."""
    texts = writing.texts(wants(writing, made, which))
    return texts[made.operands[which]], texts.get(made.scales[which], literal(None))


def wants(asking: Asking, made: ScaledProduct, which: int) -> Wants:
    """In which layouts an operand and its scales, if it has any, are read as a whole."""
    own = [node for node in (made.operands[which], made.scales[which]) if node is not None]
    return {n: layout_of_read(asking, made, which, n, asking.facts.tensor(n).shape) for n in own}


def layout_of_read(
    writing: Writing, made: ScaledProduct, which: int, node: ast.expr, shape: tuple[int, ...]
) -> Layout | None:
    """The layout in which an operand or its scales are read; shape: of the tile, or of what is read of it."""
    of_scales = node is made.scales[which]
    layout = scale_layout(writing, made, which, shape[0]) if of_scales else made.layouts[which]
    order = order_of(writing, made)
    if order is None or layout is None:
        return layout
    found = _by_lane(writing, order, layout, shape, _axis(which, of_scales))
    writing.names.suggest(found, f"{_stem(node, which)}_by_lane", 0, made.node.lineno)
    return found


def _stem(node: ast.expr, which: int) -> str:
    return node.id.lower() if isinstance(node, ast.Name) else SIDES[which]


def scale_layout(writing: Writing, made: ScaledProduct, which: int, rows: int) -> Layout | None:
    """The layout in which the instruction takes the scales of one side, or the first rows of them."""
    node, layout = made.scales[which], made.scale_layouts[which]
    if node is None or rows == writing.facts.tensor(node).shape[0]:
        return layout
    return first_rows(layout, rows)


def in_turn(writing: Writing, made: ScaledProduct, which: int, side: Side, rows: int) -> Side:
    """An operand and its scales, read in `layout_of_read`, as the matrix instruction takes them; rows: of the result, that they are for."""
    order = order_of(writing, made)
    if order is None:
        return side
    writing.record.choose("scales are read in words: groups along K are multiplied in another order")
    function = added(writing.facts, writing.record, Synthesized("in_turn", _IN_TURN))
    layouts = made.layouts[which], scale_layout(writing, made, which, rows)
    values = []
    for node, value, layout, of_scales in zip((made.operands[which], made.scales[which]), side, layouts, (False, True)):
        if node is not None:
            writing.names.suggest(layout, f"{_stem(node, which)}_operand", 1, made.node.lineno)
            numbers = map(str, (order.lanes, order.groups, _axis(which, of_scales)))
            value = call(function, value, *numbers, writing.names.spell(layout))
        values.append(value)
    return values[0], values[1]


def _axis(which: int, of_scales: bool) -> int:
    """The dimension along K."""
    return 0 if which == 1 and not of_scales else 1


def _by_lane(writing: Writing, order: KOrder, layout: Layout, shape: tuple[int, ...], axis: int) -> Layout:
    """`layout` of what an instruction takes, as that of the same registers in the order in which they are read."""
    sizes = order.groups // order.lanes, order.lanes, shape[axis] // order.groups
    apart = (*sizes, shape[1]) if axis == 0 else (shape[0], *sizes)
    turned = (1, 0, 2, 3) if axis == 0 else (0, 2, 1, 3)

    def asked(op: str, size: tuple[int, ...], of: Layout, detail: tuple[int, ...]) -> Layout:
        return infer(writing.facts.kernel.target, writing.facts.kernel.num_warps, op, size, of, detail)

    parts = asked("permute", apart, asked("reshape", shape, layout, apart), turned)
    return asked("reshape", tuple(apart[i] for i in turned), parts, shape)


_IN_TURN = '''@gluon.jit
def in_turn(x, lanes: gl.constexpr, groups: gl.constexpr, axis: gl.constexpr, layout: gl.constexpr):
    """A tile of which each lane has `groups // lanes` groups along K that follow one another, with the first of every lane in front,
    the second ones behind them, and so on, as matrix instructions take them. Nothing moves."""
    size: gl.constexpr = x.shape[axis] // groups
    if axis == 0:
        parts = x.reshape(lanes, groups // lanes, size, x.shape[1]).permute(1, 0, 2, 3)
    else:
        parts = x.reshape(x.shape[0], lanes, groups // lanes, size).permute(0, 2, 1, 3)
    return gl.convert_layout(parts.reshape(x.shape[0], x.shape[1]), layout, assert_trivial=True)
'''

__all__ = ["Side", "in_turn", "layout_of_read", "read", "scale_layout"]
