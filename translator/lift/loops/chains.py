"""Sums of matrix products: the products that lead to a value, and the loops that they were computed in."""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.lift.machine.machine import Around, Loop
from gluonize.lift.values.scalars import Expr, apply, const
from gluonize.lift.values.tensors import Node


@dataclass(frozen=True)
class Chain:
    """`products` in order, each added to the one before it, the first to `base`."""

    products: tuple[Node, ...]
    base: Node | None


@dataclass(frozen=True)
class Parts:
    """Which loops the products of a chain come from. count: how many there are; loop: the one loop of all of them, None where they are of several."""

    count: Expr
    loop: Loop | None


PRODUCTS = ("dot", "dot_scaled")


def chain_of(node: Node) -> Chain:
    """The products that end in `node`; a value that is no product is what a loop without iterations has left as it was."""
    if node.op not in PRODUCTS:
        zero = node.op == "arith.constant" and node.attrs[0] in ("0.000000e+00", "0.0", "0")
        return Chain((), None if zero else node)
    found = [node]
    while node.attrs[0]:
        before = node.args[-1]
        assert isinstance(before, Node)
        if before.op != node.op:
            return Chain(tuple(found[::-1]), before)
        found.append(before)
        node = before
    return Chain(tuple(found[::-1]), None)


def _loops(node: Node) -> list[Around]:
    return [a for a in node.context if a.loop is not None]


def varying(chain: Chain) -> bool:
    """Whether a loop made several of the products."""
    seen: dict[int, set[int]] = {}
    for product in chain.products:
        for a in _loops(product):
            seen.setdefault(id(a.loop), set()).add(a.iteration)
    return any(len(iterations) > 1 for iterations in seen.values())


def fold_parts(chain: Chain) -> Parts:
    """The loops whose iterations make the products, and how many they make."""
    if not chain.products:
        return Parts(const(0), None)
    depth = _common_depth(chain)
    loops: dict[int, tuple[Loop, int]] = {}
    single = 0
    for product in chain.products:
        inner = _loops(product)[depth:]
        if not inner:
            single += 1
            continue
        loop = inner[0].loop
        known = loops.get(id(loop), (loop, 0))
        loops[id(loop)] = (known[0], known[1] + 1)
    count = const(single)
    for loop, made in loops.values():
        if loop.trips is None or not loop.trips.value or made % loop.trips.value:
            count = apply("add", count, const(made))
            continue
        each = _each(chain, loop, depth, made // loop.trips.value)
        count = apply("add", count, apply("mul", loop.trips.expr, each))
    only = next(iter(loops.values()))[0] if len(loops) == 1 and not single else None
    plain = only is not None and all(len(_loops(p)) == depth + 1 for p in chain.products)
    return Parts(count, only if plain else None)


def _each(chain: Chain, loop: Loop, depth: int, made: int) -> Expr:
    """How many products one iteration of `loop` makes, told by the loops in it."""
    inner = {
        id(a[depth + 1].loop): a[depth + 1].loop
        for p in chain.products
        if len(a := _loops(p)) > depth + 1 and a[depth].loop is loop
    }
    if not inner:
        return const(made)
    first = next(iter(inner.values()))
    if first.trips is not None and first.trips.value == made:
        return first.trips.expr
    return const(made)


def _common_depth(chain: Chain) -> int:
    """How many outer loops stand still while the products are made."""
    depth = 0
    while True:
        at = {(id(a[depth].loop), a[depth].iteration) if len(a := _loops(p)) > depth else None for p in chain.products}
        if len(at) != 1 or None in at:
            return depth
        depth += 1
