"""Shared memory under several types, shapes or layouts (`ttg.memdesc_reinterpret`).

Allocations that share bytes form a group. One of them at a time is current: its elements hold what the bytes hold. Turning to another one
writes the elements of the current one to the bytes, with their states, and reads the other's from there. The byte of an element follows
from its layout: the offset within a slot, swizzled, with the padding before it.
"""

from __future__ import annotations

import numpy as np

from gluonize.judge.machine.dtypes import decode, encode, stored
from gluonize.judge.machine.hazards import Hazard, NotRunnable
from gluonize.judge.machine.memory.views import FLYING, NEVER, VALID, Allocation, MemDesc, Placed
from gluonize.trace.model.attributes import NVMMA, Attribute

# Where the elements of a tile lie in shared memory as the TMA unit and the tensor cores of NVIDIA GPUs share it.
#
# A tile is cut into panels as wide as the swizzle; in a panel, rows follow each other and vectors of 16 bytes are exchanged within each row.
# Formula: `nvmmaSharedToLinearLayout` of Triton 3.9.0 (lib/Dialect/TritonGPU/IR/LinearLayoutConversions.cpp).

VECTOR = 16  # bytes
BOX = 256  # elements that the box of a copy has at most along a dimension
ROWS = 8  # of a swizzled matrix


def nvmma_offsets(layout: Attribute, shape: tuple[int, ...]) -> np.ndarray:
    """Per element of a two-dimensional tile, in elements, where it lies."""
    swizzle, bits = layout.get("swizzlingByteWidth"), layout.get("elementBitWidth")
    rows, columns = np.indices(shape)
    if layout.get("transposed"):
        rows, columns, shape = columns, rows, shape[::-1]
    width = min(8 * swizzle // bits if swizzle else BOX, shape[1])
    height = min(BOX, shape[0])
    column = columns % width
    if swizzle:
        vector = 8 * VECTOR // bits
        phases = swizzle // VECTOR
        phase = rows % ROWS // (ROWS // phases) % phases
        column = (column // vector ^ phase) * vector + column % vector
    inside = rows % height * width + column
    boxes = rows // height + columns // width * (shape[0] // height)
    return inside + boxes * height * width


REINTERPRET = "ttg.memdesc_reinterpret"


def padded(offset, layout: Attribute):
    """Elements that lie before element `offset` of a slot, padding included."""
    return offset + sum(offset // interval * amount for interval, amount in layout.padding)


def slot_offsets(layout: Attribute, shape: tuple[int, ...]) -> np.ndarray:
    """Per element of a slot, in elements, where it lies. Raises: NotRunnable for a layout that is not known here."""
    if layout.kind == NVMMA:
        return nvmma_offsets(layout, shape)
    bases = layout.get("offset")
    if bases is not None:
        out = np.empty(shape, np.int64)
        for offset in range(out.size):
            place = np.zeros(len(shape), np.int64)
            for bit, base in enumerate(bases):
                if offset >> bit & 1:
                    place ^= base
            out[tuple(place)] = offset
        return padded(out, layout)
    order = layout.get("order")
    if order is None or layout.kind not in ("ttg.swizzled_shared", "ttg.padded_shared"):
        raise NotRunnable(REINTERPRET, f"of memory with layout #{layout.kind}")
    index = list(np.indices(shape))
    if layout.kind == "ttg.swizzled_shared" and len(order) > 1:
        vec, per_phase, phases = (layout.get(name) for name in ("vec", "perPhase", "maxPhase"))
        minor, phase = index[order[0]], index[order[1]] // per_phase % phases
        index[order[0]] = (minor // vec ^ phase) * vec + minor % vec
    out, stride = np.zeros(shape, np.int64), 1
    for axis in order:
        out += index[axis] * stride
        stride *= shape[axis]
    return padded(out, layout)


def _rank(layout: Attribute) -> int:
    """Dimensions that the layout places; those before them are slots."""
    if layout.kind == NVMMA:
        return 2
    bases = layout.get("offset")
    return len(bases[0]) if bases else len(layout.get("order", ()))


def byte_offsets(layout: Attribute, element: str, shape: tuple[int, ...]) -> tuple[np.ndarray, int, int]:
    """-> (first byte of each element, flat; elements of a slot; bytes from slot to slot)."""
    size = stored(element).itemsize
    slot = slot_offsets(layout, shape[len(shape) - _rank(layout) :]).reshape(-1)
    stride = int(padded(slot.size, layout)) * size
    slots = int(np.prod(shape)) // slot.size
    return (np.arange(slots)[:, None] * stride + slot * size).reshape(-1), slot.size, stride


class Aliases:
    """The bytes of one `ttg.local_alloc` and the allocations that name them."""

    def __init__(self, first: Allocation):
        self.first = self.current = first
        starts, slot, stride = byte_offsets(first.layout, first.element, first.shape)
        self.starts = {first: (starts, slot, stride)}
        count = stride * (starts.size // slot)
        self.raw = np.zeros(count, np.uint8)
        self.state = np.full(count, NEVER, np.uint8)
        self.read_epoch = np.full(count, -1, np.int64)
        self.reading = np.zeros(count, np.int16)
        self.known: dict[tuple, Allocation] = {}

    def _bytes(self, a: Allocation) -> np.ndarray:
        """Per element the bytes that it takes."""
        return self.starts[a][0][:, None] + np.arange(stored(a.element).itemsize)

    def turn_to(self, a: Allocation) -> None:
        """`a` becomes current."""
        old, where = self.current, self._bytes(self.current)
        self.raw[where] = np.asarray(encode(old.data, old.element)).view(np.uint8).reshape(where.shape)
        for name in ("state", "read_epoch", "reading"):
            getattr(self, name)[where] = getattr(old, name)[:, None]
        where = self._bytes(a)
        a.data[:] = decode(np.ascontiguousarray(self.raw[where]).view(stored(a.element)).reshape(-1), a.element)
        state = self.state[where]
        a.state[:] = np.where((state == FLYING).any(1), FLYING, np.where((state == NEVER).any(1), NEVER, VALID))
        a.read_epoch[:] = self.read_epoch[where].max(1)
        a.reading[:] = self.reading[where].max(1)
        self.current = a


def reinterpret(view: MemDesc, element: str, shape: tuple[int, ...], layout: Attribute, place) -> MemDesc:
    """What `view` names as another type. Raises: NotRunnable for a part of a slot, Hazard where there are too few bytes."""
    a = view.allocation
    group = a.aliases = a.aliases or Aliases(a)
    starts, slot, stride = group.starts[a]
    flat = np.sort(view.index.reshape(-1))
    if flat[0] % slot or flat.size % slot or flat[-1] - flat[0] != flat.size - 1:
        raise NotRunnable(REINTERPRET, "of a part of a slot")
    begin = int(starts[flat[0] : flat[0] + slot].min())
    key = (begin, element, shape, layout)
    if key not in group.known:
        own, count, step = byte_offsets(layout, element, shape)
        if begin + int(own.max()) + stored(element).itemsize > group.raw.size:
            raise Hazard("lds-index", f"takes {own.size} x {element} from {a.name}, which has {group.raw.size} bytes")
        placed = group.first.placed
        if placed is not None:
            placed = Placed(
                placed.begin + begin, 1, step * (own.size // count), int(own.max()) + stored(element).itemsize
            )
        other = Allocation(a.name, element, shape, place, placed, layout)
        other.aliases = group
        group.starts[other] = (own + begin, count, step)
        group.known[key] = other
    other = group.known[key]
    return MemDesc(other, np.arange(other.data.size, dtype=np.int64).reshape(shape))
