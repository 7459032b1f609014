"""Products of all parts of a tile along k, one added to the other, as the product of the tile.

    acc = dot(a[:, 0:32], b[0:32, :], acc)
    acc = dot(a[:, 32:64], b[32:64, :], acc)     ->     acc = dot(a, b, acc)

How a tile is cut is the machine's: what a target multiplies at once is another part of it.
"""

from __future__ import annotations

from dataclasses import replace

from gluonize.lift.values.tensors import Graph, Node


def whole_product(
    graph: Graph, first: Node, second: Node, acc: Node | None, attrs: tuple, around: tuple
) -> tuple[Node, Node, Node | None] | None:
    """The operands and the accumulator of one product that is `first` times `second` and the products before it; None where
    those are not of the other parts of two tensors. attrs: of the product, but whether it has an accumulator; around: where it is made.
    """
    while _is_part(first) or _is_part(second):
        if acc is None or acc.op != "dot" or acc.attrs[1:] != attrs or acc.context != around:
            return None
        left, right = acc.args[:2]
        assert isinstance(left, Node) and isinstance(right, Node), "bug in gluonize: a product of numbers"
        joined = _joined(graph, left, first, -1), _joined(graph, right, second, -2)
        if joined[0] is None or joined[1] is None:
            return None
        first, second = joined  # type: ignore[assignment]
        acc = acc.args[-1] if acc.attrs[0] else None  # type: ignore[assignment]
        if not _is_part(first) and not _is_part(second):
            return first, second, acc
    return None


def _is_part(node: Node) -> bool:
    inner = node.args[0] if node.op == "tt.trans" else node
    return isinstance(inner, Node) and inner.op == "part"


def _joined(graph: Graph, before: Node, after: Node, axis: int) -> Node | None:
    """Two parts of a tensor that lie beside each other along an axis, as one; None where they do not."""
    if before.op == after.op == "tt.trans" and before.attrs == after.attrs == ((1, 0),):
        inner = _joined(graph, before.args[0], after.args[0], -3 - axis)  # type: ignore[arg-type]
        if inner is None:
            return None
        kind = replace(before.type, shape=(inner.type.shape or ())[::-1])
        return graph.node("tt.trans", (inner,), kind, before.attrs, before.name, before.place)
    if before.op != "part" or after.op != "part" or before.args[0] is not after.args[0]:
        return None
    (one,), (two,) = before.attrs, after.attrs
    axis %= len(one)
    if one[axis][1] != two[axis][0] or any(x != y for d, (x, y) in enumerate(zip(one, two)) if d != axis):
        return None
    box = tuple((x[0], y[1]) if d == axis else x for d, (x, y) in enumerate(zip(one, two)))
    return graph.part(before.args[0], box)  # type: ignore[arg-type]
