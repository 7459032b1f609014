"""What slots of shared and tensor memory hold: the tensors last written to each part of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gluonize.lift.values.parts import tiles, unsliced
from gluonize.lift.values.tensors import Box, Graph, Node, View

LANES = 1 << 30  # scales lie in all rows


class Unreadable(Exception):
    """A slot is read as it was not written; the text says how."""


@dataclass(frozen=True)
class Columns:
    """How a view counts the columns of tensor memory: elements of a type, so many bytes apart."""

    element: str
    bytes: int


@dataclass(frozen=True)
class Blocks:
    """Scales in tensor memory, which are read as they were written: whole, in the bytes of each row from `start` on."""

    element: str
    shape: tuple[int, ...]
    start: int
    bytes: int


@dataclass
class Memory:
    """What slots hold: boxes with the values last written to them; and where slots lie, by the number of their allocation."""

    graph: Graph
    pieces: dict[tuple, list[tuple[Box, object, Node]]] = field(default_factory=dict)
    spans: dict[int, dict[tuple, tuple]] = field(default_factory=dict)

    def write(self, view: View, value: Node) -> None:
        spans = self.spans.setdefault(view.alloc.number, {})
        low, high = view.span
        for key, (start, end) in spans.items():
            if key != view.key and start < high and low < end:
                self.pieces[key] = []  # the same bytes as other slots
        spans[view.key] = view.span
        kept = []
        for box, tag, old in self.pieces.get(view.key, []):
            for rest in _left(box, tag, view):
                kept.append((rest, tag, self._cut(old, box, rest)))
        self.pieces[view.key] = [*kept, (view.box, view.tag, value)]

    def read(self, view: View) -> Node:
        """Raises: Unreadable."""
        held = self.pieces.get(view.key, [])
        for box, tag, value in held:
            if tag == view.tag and all(a <= c and d <= b for (a, b), (c, d) in zip(box, view.box)):
                return self._cut(value, box, view.box)
        parts = [(box, value) for box, tag, value in held if tag == view.tag and _meet(box, view.box)]
        if parts and (joined := self._joined(parts, view)) is not None:
            return joined
        raise Unreadable(
            f"{view.alloc.name or 'a buffer'} is read where nothing, or something of another type, was written"
        )

    def _cut(self, value: Node, box: Box, wanted: Box) -> Node:
        return self.graph.part(value, tuple((c - a, d - a) for (a, _), (c, d) in zip(box, wanted)))

    def _joined(self, parts: list[tuple[Box, Node]], view: View) -> Node | None:
        """Parts that lie beside each other in one dimension, as one value."""
        for axis in range(len(view.box)):
            same = all(
                box[d][0] <= view.box[d][0] and view.box[d][1] <= box[d][1]
                for box, _ in parts
                for d in range(len(view.box))
                if d != axis
            )
            if not same:
                continue
            at, found = view.box[axis][0], []
            for box, value in sorted(parts, key=lambda p: p[0][axis]):
                if box[axis][0] > at:
                    return None
                end = min(box[axis][1], view.box[axis][1])
                wanted = tuple((at, end) if d == axis else view.box[d] for d in range(len(box)))
                found.append(self._cut(value, box, wanted))
                at = end
            if at == view.box[axis][1]:
                shape = tuple(high - low for low, high in view.box)
                if (whole := self._same(found, view.box, axis)) is not None:
                    return whole
                return self.graph.node(
                    "join", found, replace(found[0].type, shape=shape), (axis,), place=found[0].place
                )
        return None

    def _same(self, found: list[Node], box: Box, axis: int) -> Node | None:
        """The tensor whose parts were treated alike and are all there, in order."""
        wholes = [unsliced(self.graph, x) for x in found]
        if any(w is None for w in wholes) or len({id(w[0]) for w in wholes if w}) != 1:
            return None
        boxes = [w[1] for w in wholes if w]
        whole = wholes[0][0]  # type: ignore[index]
        ordered = all(a[axis][1] == b[axis][0] for a, b in zip(boxes, boxes[1:]))
        return whole if ordered and tiles(boxes, whole.type.shape or ()) == axis else None


def _left(box: Box, tag: object, view: View) -> list[Box]:
    """What of a piece is still there when `view` has been written, in boxes of the piece."""
    if tag == view.tag:
        return _without(box, view.box)
    mine, other = _bytes(box, tag), _bytes(view.box, view.tag)
    if mine is None or other is None:
        return []  # other bytes from now on
    if not _meet(mine, other):
        return [box]
    if not isinstance(tag, Columns):
        return []
    size = tag.bytes
    rests = [(*rest[:-1], (-(-rest[-1][0] // size), rest[-1][1] // size)) for rest in _without(mine, other)]
    return [rest for rest in rests if rest[-1][0] < rest[-1][1]]


def _bytes(box: Box, tag: object) -> Box | None:
    """The rows and bytes of tensor memory in which a box lies; None where that is not known."""
    if isinstance(tag, Columns):
        return (*box[:-1], (box[-1][0] * tag.bytes, box[-1][1] * tag.bytes))
    if isinstance(tag, Blocks):
        return ((0, LANES), (tag.start, tag.start + tag.bytes))
    return None


def _meet(a: Box, b: Box) -> bool:
    return all(x < q and p < y for (x, y), (p, q) in zip(a, b))


def _without(box: Box, taken: Box) -> list[Box]:
    """What is left of `box`, in boxes."""
    if len(box) != len(taken) or not _meet(box, taken):
        return [box]
    left, rest = [], list(box)
    for d, ((a, b), (c, e)) in enumerate(zip(box, taken)):
        if a < c:
            left.append((*rest[:d], (a, c), *rest[d + 1 :]))
        if e < b:
            left.append((*rest[:d], (e, b), *rest[d + 1 :]))
        rest[d] = (max(a, c), min(b, e))
    return left
