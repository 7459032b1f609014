"""Peeled iterations put back into their loop: stores behind a loop that are its next iteration make it longer by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gluonize.lift.values.scalars import Expr, apply, const, substitute
from gluonize.lift.values.tensors import Graph, Node
from gluonize.lift.values.tree import LoopText, StoreText, Text


def rolled(graph: Graph, tree: list[Text]) -> list[Text]:
    """The tree with peeled iterations in their loops."""
    out: list[Text] = []
    at = 0
    while at < len(tree):
        text = tree[at]
        at += 1
        if isinstance(text, LoopText):
            text = replace(text, body=rolled(graph, text.body))
            while (next_ := _absorbed(graph, text, tree[at:])) is not None:
                text = next_
                at += len(text.body)
        elif not isinstance(text, StoreText):
            text = replace(text, body=rolled(graph, text.body))
        out.append(text)
    return out


def _absorbed(graph: Graph, loop: LoopText, after: list[Text]) -> LoopText | None:
    """The loop with one more iteration, where what follows is just that; None where it is not."""
    if not all(isinstance(text, StoreText) for text in loop.body) or len(after) < len(loop.body):
        return None
    memo: dict[int, Node] = {}
    for mine, other in zip(loop.body, after):
        assert isinstance(mine, StoreText)
        if not isinstance(other, StoreText) or (mine.kind, mine.attrs) != (other.kind, other.attrs):
            return None
        for x, y in zip(mine.operands, other.operands):
            if put(graph, x, {loop.variable: loop.trips}, memo) is not y:
                return None
    return replace(loop, trips=apply("add", loop.trips, const(1)))


def put(graph: Graph, x: Node | Expr | None, by: Mapping[Expr, Expr], memo: dict[int, Node]):
    """`x` with variables replaced, as an expression of the same graph."""
    if isinstance(x, Expr):
        return substitute(x, by)
    if x is None or x.op in ("argument", "fold", "held"):
        return x
    if id(x) not in memo:
        args = [put(graph, a, by, memo) for a in x.args]
        memo[id(x)] = graph.node(x.op, args, x.type, x.attrs, x.name, x.place)
    return memo[id(x)]
