"""Allocations of shared and tensor memory, and views of them.

An element of an allocation is never written, valid, or in flight. Memory that a kernel names under several types (`RawAllocation`) has bytes
for elements; the views of it know their type.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gluonize.judge.machine.dtypes import decode, encode, held, stored
from gluonize.judge.machine.hazards import Hazard
from gluonize.trace.model.attributes import Attribute
from gluonize.trace.model.locations import Place

NEVER, VALID, FLYING = 0, 1, 2


@dataclass(frozen=True)
class Placed:
    """Where an allocation lies: `slots` from byte `begin`, one every `slot_bytes`, of which `used` hold data or padding between data.

    also: where further pieces of a partitioned one begin, each as large as the first.
    """

    begin: int
    slots: int
    slot_bytes: int
    used: int
    also: tuple[int, ...] = ()

    @property
    def begins(self) -> tuple[int, ...]:
        return (self.begin, *self.also)

    @property
    def size(self) -> int:
        """Bytes from the first to the last one of a piece."""
        return (self.slots - 1) * self.slot_bytes + self.used

    def overlaps(self, begin: int, end: int) -> bool:
        return any(first < end and begin < first + self.size for first in self.begins)


class Allocation:
    """One `ttg.local_alloc`. `read_epoch` is the barrier interval of each element's last relaxed read, -1 for none; `reading` counts the
    copies under way that read it; `lane_bytes`: of tensor memory, the bytes of each lane; `aliases` are those that name the same bytes (aliases.py).
    """

    def __init__(
        self,
        name: str,
        element: str,
        shape: tuple[int, ...],
        place: Place,
        placed: Placed | None = None,
        layout: Attribute = Attribute(),
    ):
        count = int(np.prod(shape))
        self.name, self.element, self.shape, self.place, self.placed = name, element, shape, place, placed
        self.data = np.full(count, np.nan if held(element).kind == "f" else 0, held(element))
        self.state = np.zeros(count, np.uint8)
        self.read_epoch = np.full(count, -1, np.int64)
        self.reading = np.zeros(count, np.int16)
        self.layout, self.aliases = layout, None
        self.lane_bytes = 0
        self.spread = False  # whether several CTAs of a cluster have the same part of it

    def is_same(self, other: "Allocation | None") -> bool:
        """Whether both name the same bytes."""
        return self is other or other is not None and self.aliases is not None and self.aliases is other.aliases

    def where(self, index: int) -> str:
        """`a_smem[1, 3, 0]` for a flat index."""
        position = ", ".join(str(int(i)) for i in np.unravel_index(index, self.shape))
        return f"{self.name}[{position}]"


class RawAllocation(Allocation):
    """Bytes, before anything is written NaN whatever the type; `layout` is that of the type it was allocated as."""

    def __init__(self, name: str, count: int, place: Place, layout: Attribute = Attribute()):
        super().__init__(name, "i8", (count,), place, None, layout)
        self.data = np.full(count, 0xFF, np.uint8)


@dataclass(frozen=True)
class MemDesc:
    """A view: `index` holds the flat element of `allocation` behind each element of the view.

    Of raw memory `element` is the type of the view, and the last dimension of `index` runs over the bytes of one element. `outside` says why
    nothing may touch it, "" of a view that is in its allocation.
    """

    allocation: Allocation
    index: np.ndarray
    element: str = ""
    outside: str = ""

    def check_inside(self) -> None:
        """Raises: Hazard."""
        if self.outside:
            raise Hazard("lds-index", self.outside)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.index.shape[:-1] if self.element else self.index.shape

    def at(self, index: np.ndarray) -> "MemDesc":
        """Another view of the same type."""
        return replace(self, index=index)

    def reshaped(self, shape: tuple[int, ...]) -> "MemDesc":
        return self.at(self.index.reshape((*shape, *self._bytes)))

    def transposed(self, order: tuple[int, ...]) -> "MemDesc":
        return self.at(np.transpose(self.index, (*order, len(order)) if self.element else order))

    @property
    def _bytes(self) -> tuple[int, ...]:
        return self.index.shape[-1:] if self.element else ()

    def values(self) -> np.ndarray:
        """What the elements hold."""
        found = self.allocation.data[self.index]
        if not self.element:
            return found
        return np.asarray(decode(found.view(stored(self.element))[..., 0], self.element))

    def put(self, values) -> None:
        """Give the elements values."""
        if self.element:
            bits = np.asarray(encode(np.broadcast_to(values, self.shape), self.element))
            bits = np.ascontiguousarray(bits.astype(stored(self.element), copy=False))
            values = bits.view(np.uint8).reshape(self.index.shape)
        self.allocation.data[self.index] = values

    def extents(self) -> list[tuple[int, int]]:
        """First byte and end of each piece that the view covers, whole slots; nothing where the place is not known."""
        placed = self.allocation.placed
        if placed is None or not self.index.size:
            return []
        if placed.slots > 1 and self.index.ndim < len(self.allocation.shape):
            slot = int(self.index.flat[0]) // (self.allocation.data.size // placed.slots)
            skipped = slot * placed.slot_bytes
            return [(begin + skipped, begin + skipped + placed.used) for begin in placed.begins]
        return [(begin, begin + placed.size) for begin in placed.begins]
