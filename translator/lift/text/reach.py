"""What the tree of a lifted kernel is made of: the nodes, sums and integers that its stores need."""

from __future__ import annotations

from collections.abc import Sequence

from gluonize.lift.values.scalars import Expr
from gluonize.lift.values.tensors import Node
from gluonize.lift.values.tree import BranchText, StoreText, Text


def inputs(node: Node) -> list[Node]:
    found = [x for x in node.args if isinstance(x, Node)]
    if node.op == "held":
        found += node.attrs[0].parts
    if node.op == "fold":
        found += [*node.attrs[0].products, *([node.attrs[0].base] if node.attrs[0].base is not None else [])]
    return found


def under(node: Node) -> list[Node]:
    """The node and all that it is made of, each once."""
    out, seen, stack = [], set(), [node]
    while stack:
        at = stack.pop()
        if id(at) not in seen:
            seen.add(id(at))
            out.append(at)
            stack += inputs(at)[::-1]
    return out


def roots(tree: Sequence[Text]) -> list[Node]:
    out: list[Node] = []
    for text in tree:
        out += [x for x in text.operands if isinstance(x, Node)] if isinstance(text, StoreText) else roots(text.body)
    return out


def folds_of(tree: Sequence[Text]) -> list[Node]:
    """Sums that the stores of this level need."""
    stores = [text for text in tree if isinstance(text, StoreText)]
    return list({id(n): n for root in roots(stores) for n in under(root) if n.op == "fold"}.values())


def exprs_of(node: Node) -> list[Expr]:
    out = []
    for n in under(node):
        out += [x for x in n.args if not isinstance(x, Node)]
        if n.op == "fold":
            out += [n.attrs[0].trips, n.attrs[0].low]
    return out


def exprs_under(tree: Sequence[Text]) -> list[Expr]:
    out: list[Expr] = []
    for text in tree:
        if isinstance(text, StoreText):
            out += [e for x in text.operands if x is not None for e in (exprs_of(x) if isinstance(x, Node) else [x])]
        else:
            out += exprs_under(text.body)
            out += [text.condition] if isinstance(text, BranchText) else [text.trips, text.low]
    return out
