"""Memory under several types, byte by byte: views of tensor memory, and of shared memory where kernels for NVIDIA GPUs reinterpret it."""

from __future__ import annotations

import numpy as np

from gluonize.judge.machine.dtypes import stored
from gluonize.judge.machine.hazards import Hazard
from gluonize.judge.machine.memory.aliases import byte_offsets
from gluonize.judge.machine.memory.tensor_memory import LANES, placement
from gluonize.judge.machine.memory.views import MemDesc, RawAllocation
from gluonize.trace.model.attributes import Attribute
from gluonize.trace.model.locations import Place
from gluonize.trace.model.types import Type

COLUMN = 4  # bytes of a lane, the least that is allocated


def _with_bytes(first: np.ndarray, element: str) -> np.ndarray:
    """The bytes of elements that begin at `first`, in a new last dimension."""
    return first[..., None] + np.arange(stored(element).itemsize)


def allocate_bytes(kind: Type, layout: Attribute, name: str, place: Place) -> MemDesc:
    """Shared memory. Raises: NotRunnable for a layout that is not known."""
    starts, slot, stride = byte_offsets(layout, kind.element, kind.shape)
    allocation = RawAllocation(name, stride * (starts.size // slot), place, layout)
    return MemDesc(allocation, _with_bytes(starts.reshape(kind.shape), kind.element), kind.element)


def reinterpret_bytes(view: MemDesc, kind: Type, layout: Attribute) -> MemDesc:
    """Another type that begins at the first byte of `view`. Raises: Hazard where there are too few bytes."""
    a = view.allocation
    starts, _, _ = byte_offsets(layout, kind.element, kind.shape)
    index = _with_bytes(starts.reshape(kind.shape) + int(view.index.min()), kind.element)
    _check(view, index, kind)
    return MemDesc(a, index, kind.element)


def _check(view: MemDesc, index: np.ndarray, kind: Type) -> None:
    a = view.allocation
    if int(index.max()) >= a.data.size:
        raise Hazard("lds-index", f"takes {kind.size} x {kind.element} from {a.name}, which has {a.data.size} bytes")


def _tiles(kind: Type, layout: Attribute, row: int, lane: int, column: int) -> np.ndarray:
    """First bytes of the elements of tiles one beside the other, in memory with `row` bytes per lane."""
    tile = placement(layout, kind.element, kind.shape[-2:])
    slots = kind.size // (kind.shape[-1] * kind.shape[-2])
    width = -(-tile.width // COLUMN) * COLUMN
    places = [tile.index(row, lane, column + slot * width) for slot in range(slots)]
    return np.stack(places).reshape(kind.shape)


def allocate_tensor_memory(kind: Type, layout: Attribute, name: str, place: Place, clusters: int) -> MemDesc:
    """Raises: NotRunnable for a layout that is none of tensor memory."""
    tile = placement(layout, kind.element, kind.shape[-2:])
    slots = kind.size // (kind.shape[-1] * kind.shape[-2])
    row = slots * -(-tile.width // COLUMN) * COLUMN
    allocation = RawAllocation(name, row * LANES * clusters, place, layout)
    allocation.lane_bytes = row
    return MemDesc(allocation, _with_bytes(_tiles(kind, layout, row, 0, 0), kind.element), kind.element)


def reinterpret_tensor_memory(view: MemDesc, kind: Type, layout: Attribute) -> MemDesc:
    """Another type that begins at the first lane and column of `view`. Raises: Hazard where there are too few columns."""
    a = view.allocation
    lane, column = divmod(int(view.index.min()), a.lane_bytes)
    index = _with_bytes(_tiles(kind, layout, a.lane_bytes, lane, column), kind.element)
    if int((index % a.lane_bytes).min()) < column:
        raise Hazard(
            "lds-index", f"takes {kind.size} x {kind.element} from {a.name}, which has {a.lane_bytes} bytes per lane"
        )
    _check(view, index, kind)
    return MemDesc(a, index, kind.element)
