"""Pixels of images (im2col) as rows of a tile, read through pointers: where each lies is arithmetic on its number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gluonize.lift.machine.machine import Run
from gluonize.lift.values.scalars import NAMES, Scalar, combine, number
from gluonize.lift.values.tensors import Node
from gluonize.trace.model.locations import Place
from gluonize.trace.model.types import Type


@dataclass(frozen=True)
class Images:
    """The parts of a descriptor of images, per dimension: lower, upper and steps of the spatial ones alone."""

    base: Node
    shape: tuple[Scalar, ...]
    strides: tuple[Scalar, ...]
    lower: tuple[Scalar, ...]
    upper: tuple[Scalar, ...]
    steps: tuple[Scalar, ...]

    @classmethod
    def of(cls, node: Node) -> Images:
        base, *rest = node.args
        rank = (len(rest) + 6) // 5  # two lists of all dimensions, three of the spatial ones
        bounds = [0, rank, 2 * rank, 3 * rank - 2, 4 * rank - 4, 5 * rank - 6]
        return cls(base, *(tuple(rest[a:b]) for a, b in zip(bounds, bounds[1:])))  # type: ignore[arg-type]


def pixels(run: Run, place: Place, node: Node, start: Sequence[Scalar], offsets: Sequence[Scalar]) -> tuple[Node, Node]:
    """Pointers to the tile of pixels by channels that begins at `start`, each pixel moved by `offsets`, and which of them lie inside.

    The descriptor walks the spatial dimensions like a number counts, the last one fastest: from where it starts, then from the lower
    corner on, to the upper one.
    """
    images, tensors = Images.of(node), Tensors(run, place, (node.type.shape or (0, 0))[0])
    count = tensors.range()
    places: list[Node] = []
    for d in reversed(range(len(images.lower))):
        walked, count = _walk(tensors, images, d, start[d + 1], count)
        places.insert(0, tensors.add(walked, offsets[d], f"pixel_{'zyx'[d - len(images.lower)]}"))
    places.insert(0, tensors.add(count, start[0], "image"))
    inside = None
    for at, extent in zip(places, images.shape):
        here = tensors.both(tensors.compare("sge", at, number(0)), tensors.compare("slt", at, extent))
        inside = here if inside is None else tensors.both(inside, here)
    assert inside is not None
    distance = None
    for at, stride in zip(places, images.strides):
        step = tensors.binary("arith.muli", tensors.wide(at), stride)
        distance = step if distance is None else tensors.binary("arith.addi", distance, step)
    assert distance is not None
    return _with_channels(tensors, images, (node.type.shape or (0, 0))[1], start[-1], distance, inside)


def _walk(tensors: Tensors, images: Images, d: int, start: Scalar, count: Node) -> tuple[Node, Node]:
    """Where the spatial dimension `d` is after `count` steps, and how often it has begun again."""
    lower, step = images.lower[d], images.steps[d]
    last = combine("add", combine("sub", images.shape[d + 1], number(1)), images.upper[d])

    def held(first: Scalar) -> Scalar:
        """How many places there are from `first` to the last one; the first is one of them wherever it is."""
        room = combine("max", combine("sub", last, first), number(0))
        return combine("add", combine("div", room, step), number(1))

    begun, around = held(start), held(lower)
    NAMES.setdefault(begun.expr, "begun")
    NAMES.setdefault(around.expr, f"around_{'zyx'[d - len(images.lower)]}")
    further = tensors.binary("arith.subi", count, begun)
    is_first = tensors.compare("slt", count, begun)
    first = tensors.add(tensors.binary("arith.muli", count, step), start)
    column = tensors.binary("arith.remsi", further, around)
    later = tensors.add(tensors.binary("arith.muli", column, step), lower)
    again = tensors.add(tensors.binary("arith.divsi", further, around), number(1))
    return tensors.choose(is_first, first, later), tensors.choose(is_first, tensors.spread(number(0)), again)


def _with_channels(
    tensors: Tensors, images: Images, width: int, first: Scalar, distance: Node, inside: Node
) -> tuple[Node, Node]:
    lanes = replace(tensors, length=width)
    channel = lanes.add(lanes.range(), first, "channel")
    held = lanes.both(lanes.compare("sge", channel, number(0)), lanes.compare("slt", channel, images.shape[-1]))
    across = lanes.binary("arith.muli", lanes.wide(channel), images.strides[-1])
    shape = (tensors.length, width)
    pointer = images.base.type
    column = replace(pointer, shape=(tensors.length, 1))
    rows = tensors.node(
        "tt.addptr", (tensors.node("tt.splat", (images.base,), column), tensors.column(distance)), column
    )
    whole = replace(pointer, shape=shape)
    pointers = tensors.node(
        "tt.addptr",
        (tensors.node("tt.broadcast", (rows,), whole), tensors.filled(lanes.row(across), shape)),
        whole,
    )
    masks = (tensors.filled(tensors.column(inside), shape), tensors.filled(lanes.row(held), shape))
    return pointers, tensors.node("arith.andi", masks, Type("int", "i1", shape))


@dataclass(frozen=True)
class Tensors:
    """Writes arithmetic on one-dimensional tensors of `length` 32-bit integers."""

    run: Run
    place: Place
    length: int

    def node(self, op: str, args: Sequence[Node | Scalar], kind: Type, attrs: tuple = ()) -> Node:
        return self.run.graph.node(op, args, kind, attrs, "", self.place, self.run.around)

    def range(self) -> Node:
        return self.node("tt.make_range", (), Type("int", "i32", (self.length,)), (0, self.length))

    def spread(self, value: Scalar, element: str = "i32") -> Node:
        return self.node("tt.splat", (value,), Type("int", element, (self.length,)))

    def add(self, x: Node, value: Scalar, name: str = "") -> Node:
        """name: of the sum, for people."""
        made = x
        if not value.expr.is_const or value.value:
            made = self.node("arith.addi", (self.spread(value), x), x.type)
        made.name = made.name or name
        return made

    def binary(self, op: str, x: Node, y: Node | Scalar) -> Node:
        right = y if isinstance(y, Node) else self.spread(y, x.type.element)
        return self.node(op, (x, right), x.type)

    def compare(self, how: str, x: Node, y: Scalar) -> Node:
        return self.node("arith.cmpi", (x, self.spread(y)), Type("int", "i1", (self.length,)), (how,))

    def both(self, x: Node, y: Node) -> Node:
        return self.node("arith.andi", (x, y), x.type)

    def choose(self, condition: Node, x: Node, y: Node) -> Node:
        return self.node("arith.select", (condition, x, y), x.type)

    def wide(self, x: Node) -> Node:
        return self.node("arith.extsi", (x,), replace(x.type, element="i64"))

    def column(self, x: Node) -> Node:
        return self.node("tt.expand_dims", (x,), replace(x.type, shape=(self.length, 1)), (1,))

    def row(self, x: Node) -> Node:
        return self.node("tt.expand_dims", (x,), replace(x.type, shape=(1, self.length)), (0,))

    def filled(self, x: Node, shape: tuple[int, ...]) -> Node:
        return self.node("tt.broadcast", (x,), replace(x.type, shape=shape))
