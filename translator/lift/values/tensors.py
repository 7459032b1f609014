"""Tensors of a kernel as expressions, and the memory that they pass through.

Equal expressions of one run are one object. A slot of shared or tensor memory holds what was last written to each part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from gluonize.lift.values.scalars import Scalar, atoms_of
from gluonize.trace.model.locations import UNKNOWN, Place
from gluonize.trace.model.types import Type

Box = tuple[tuple[int, int], ...]


@dataclass(eq=False)
class Node:
    """`op(args)`: a tensor, a pointer or a float. attrs: what else the operation says. name: the author's, "" without one.

    context: the loops that it was computed in (`gluonize.lift.machine.machine.Around`), of its first computation.
    """

    op: str
    attrs: tuple
    args: tuple["Node | Scalar", ...]
    type: Type
    name: str = ""
    place: Place = UNKNOWN
    context: tuple = ()

    def __repr__(self) -> str:
        return f"{self.op}{list(self.attrs) or ''}({', '.join(map(repr, self.args))})"


class Graph:
    """All expressions of one run."""

    def __init__(self):
        self._known: dict[tuple, Node] = {}

    def node(
        self, op: str, args: Sequence[Node | Scalar], type: Type, attrs: tuple = (), name: str = "", place: Place = UNKNOWN,
        context: tuple = (),
    ) -> Node:  # fmt: skip
        key = (op, attrs, tuple(args), type.shape, type.element, _told_in(args, context))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Node(op, attrs, tuple(args), type, name, place, context)
        elif name and not known.name:
            known.name = name
        return known

    def part(self, whole: Node, box: Box) -> Node:
        """The part of a tensor in a box; of a part of it the part of the whole."""
        if all((low, high) == (0, extent) for (low, high), extent in zip(box, whole.type.shape or ())):
            return whole
        if whole.op == "part":
            (outer,) = whole.attrs
            inner = tuple((low + start, high + start) for (low, high), (start, _) in zip(box, outer))
            return self.part(whole.args[0], inner)  # type: ignore[arg-type]
        shape = tuple(high - low for low, high in box)
        return self.node("part", (whole,), replace(whole.type, shape=shape), (box,), place=whole.place)


def _told_in(args: Sequence[Node | Scalar], context: tuple) -> tuple:
    """The iterations of the loops by which numbers among the operands are told: equal ones of others are other expressions."""
    atoms = frozenset().union(*(atoms_of(x.expr) for x in args if isinstance(x, Scalar)))
    if not atoms:
        return ()
    return tuple((a.loop.key, a.iteration) for a in context if a.loop is not None and a.loop.key in atoms)


@dataclass(eq=False)
class Alloc:
    """A piece of shared (`smem`) or tensor memory (`tmem`); place: of its allocation."""

    number: int
    kind: str
    type: Type
    name: str = ""
    place: Place = UNKNOWN


@dataclass(frozen=True)
class View:
    """A slot of an allocation, or a box of it, seen through `steps` (`("trans", order)`, `("reshape", shape)`).

    shape, element: of what is seen. tag: how the slot's bytes are read, where they were given another type. span: where the slot
    lies in the allocation, from and to, as fractions of it.
    """

    alloc: Alloc
    slot: tuple[int, ...]
    box: Box
    shape: tuple[int, ...]
    element: str
    steps: tuple[tuple, ...] = ()
    tag: object = ()
    span: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1))

    @property
    def key(self) -> tuple[int, tuple[int, ...]]:
        return (self.alloc.number, self.slot)


Value = Any  # Scalar, Node, View, or None for a token
