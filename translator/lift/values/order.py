"""Reads and writes of global memory that must stay in their order: a lifted kernel reads where a value is needed, not where it was read.

That gives the same values unless the place is written in between. Different arguments are taken to be different memory, as
pipelining takes them (`gluonize.facts.obligations`).
"""

from __future__ import annotations

from collections.abc import Iterable

from gluonize.lift.values.recurrences import Carrying
from gluonize.lift.values.tensors import Node

LOADS = ("tt.load", "descriptor_load", "descriptor_gather")
Bases = frozenset[str]


class Reordered(Exception):
    """A read would come on the other side of a write; the text says of which argument."""


class MemoryOrder:
    """The loads of one run, and when what they read was last written."""

    def __init__(self):
        self._stores = 0
        self._last: dict[str, int] = {}  # by argument: how many stores there were with the last one to it
        self._last_anywhere = 0  # of those to pointers that come from no argument
        self._issued: dict[Node, int] = {}  # how many stores were before a load
        self._seen: set[Node] = set()  # what earlier stores are made of
        self._writers: dict[str, set[int]] = {}  # by argument: the partitions that have stored to it

    def loaded(self, load: Node, partition: int) -> Node:
        """Remember when `load` is made. Raises: Reordered where the same place was read before it was written, too, and for what
        another partition has written: the partitions' own orders are kept, not that between them."""
        if load in self._issued and self._written_since(load):
            raise Reordered(f"{_said(load)} is read again after it was written")
        if any(self._writers.get(base, set()) - {partition} for base in bases_of(load.args[0])):
            raise Reordered(f"{_said(load)} is read by one partition after another one has written it")
        self._issued.setdefault(load, self._stores)
        return load

    def stored(self, to: Node, values: Iterable[object], partition: int) -> None:
        """A store through `to`, of what `values` are made of. Raises: Reordered where one of its loads was before another store."""
        for load in self._new_loads((to, *values)):
            if self._written_since(load):
                raise Reordered(f"{_said(load)} is written between the read of a value and its use")
        self._stores += 1
        bases = bases_of(to)
        for base in bases:
            self._last[base] = self._stores
            self._writers.setdefault(base, set()).add(partition)
        if not bases:
            self._last_anywhere = self._stores

    def _written_since(self, load: Node) -> bool:
        bases = bases_of(load.args[0])
        last = max((self._last.get(base, 0) for base in bases), default=self._stores)
        return max(last, self._last_anywhere) > self._issued[load]

    def _new_loads(self, values: Iterable[object]) -> list[Node]:
        found, stack = [], list(values)
        while stack:
            node = stack.pop()
            if not isinstance(node, Node) or node in self._seen:
                continue
            self._seen.add(node)
            if node in self._issued:
                found.append(node)
            stack += node.args
            if node.op == "loop" and isinstance(held := node.attrs[0], Carrying):
                stack += [*held.first.values(), *(x for body in held.bodies for x in body.values())]
        return found


def bases_of(pointer: object) -> Bases:
    """The arguments that a pointer, a tensor of them or a descriptor is made of; none for one that comes from memory."""
    if not isinstance(pointer, Node):
        return frozenset()
    if pointer.op == "argument":
        return frozenset({pointer.name})
    if pointer.op == "make_descriptor":
        return bases_of(pointer.args[0])
    inner = [x for x in pointer.args if isinstance(x, Node) and x.type.kind == "ptr"]
    found = [bases_of(x) for x in inner]
    return frozenset().union(*found) if found and all(found) and pointer.op not in LOADS else frozenset()


def _said(load: Node) -> str:
    return ", ".join(sorted(bases_of(load.args[0]))) or "what a pointer from memory leads to"
