"""Arguments that overlap: views of one storage, a little apart, as in-place calls on parts of a tensor have them.

    x at element 0 of a storage, out 16 elements before it: what is stored through one is what the other has read, or will read.

Whether such a call means anything is for the source to say: where a program reads what it stored through the other view, or what
another program stores, it depends on the order of things, and the inputs are left out with that as the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gluonize.judge.inputs.inputs import LARGEST, Inputs, Tensor, with_tensors
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.module import Module

PAIRS = 2  # of arguments that are made to overlap
MOST = 4  # variants of one launch
ALIGNED = 16  # bytes that a pointer may be promised to be divisible by


@dataclass(frozen=True)
class Touched:
    """Elements of one tensor's storage that the source read and wrote, counted from its pointer: two masks and their first place."""

    first: int
    read: np.ndarray
    written: np.ndarray

    def meets(self, other: Touched, distance: int) -> bool:
        """Whether what one writes the other reads, or writes too, where `other` begins `distance` elements behind this one."""
        low, high = self.first, other.first + distance
        start, end = max(low, high), min(low + self.read.size, high + other.read.size)
        if start >= end:
            return False
        mine, its = slice(start - low, end - low), slice(start - high, end - high)
        return bool(
            (self.written[mine] & (other.read[its] | other.written[its]) | self.read[mine] & other.written[its]).any()
        )


def touched(inputs: Inputs, memory: Memory) -> dict[str, Touched]:
    """By name of the tensor, what a run of the source with these inputs did; memory: as it left it, with reads recorded."""
    out = {}
    for views, buffer in zip(inputs.storages(), memory.buffers):
        written = buffer.per_element(buffer.changed)
        count = min(buffer.seen.size, written.size)
        for view in views:
            out[view.name] = Touched(-view.offset, buffer.seen[:count], written[:count])
    return out


def overlapping(
    spec: LaunchSpec, inputs: Inputs, used: Mapping[str, Touched], judged: Sequence[str]
) -> Iterator[Inputs]:
    """Pairs of tensors, one of which the source writes, as views at several distances, of which each overlaps what it uses.

    One program runs: what several do to the same elements hardly ever has one meaning. judged: the variants that both sides
    have run so far; of a distance to either side one is enough.
    """
    tensors = [
        tensor for tensor in inputs.tensors() if tensor.name in used and tensor.data.size and tensor.pages is None
    ]
    written = {tensor.name for tensor in tensors if used[tensor.name].written.any()}
    pairs = [
        (one, other)
        for number, other in reversed(list(enumerate(tensors)))  # outputs stand last in most signatures
        for place, one in enumerate(tensors)
        if other.name in written and place != number and one.element == other.element
        if one.name not in written or place < number
    ]
    if inputs.shares or sum(tensor.data.size for tensor in tensors) > LARGEST:
        return
    made = 0
    for one, other in pairs[:PAIRS]:
        for distance in distances(spec, one, other):
            for signed in (-distance, distance):
                if made < MOST and used[one.name].meets(used[other.name], signed):
                    views = as_views(inputs, one, other, signed)
                    made += 1
                    yield views
                    if views.variant in judged:
                        break


def fetches_ahead(source: Module) -> bool:
    """Whether a source asks for tiles before it stores others: where they share memory what it reads is nobody's promise."""
    return source.has("ttng.async_tma_copy_global_to_local", "ttng.async_tma_gather", "ttg.async_copy_global_to_local")


def distances(spec: LaunchSpec, one: Tensor, other: Tensor) -> list[int]:
    """How many elements apart the views may begin: one element, a row and half of a tensor, as far as promised alignments let it."""
    # A tensor in a tuple or behind a descriptor is taken to be aligned.
    plain = {name for name, kind in spec.signature.items() if str(kind).startswith("*")}
    aligned = any(t.name not in plain or "D" in str(spec.attrs.get(t.name, "")) for t in (one, other))
    unit = max(ALIGNED // one.data.itemsize, 1) if aligned else 1
    tiles = [value for value in spec.constexprs.values() if type(value) is int and 1 < value < other.data.size]
    row = other.strides[0] if len(other.shape) > 1 else max(tiles, default=0)
    wanted = (unit, abs(row) // unit * unit, one.data.size // 2 // unit * unit)
    return [size for size in dict.fromkeys(wanted) if size]


def as_views(inputs: Inputs, one: Tensor, other: Tensor, distance: int) -> Inputs:
    """The inputs with `other` as a view of the storage of `one`, so many elements behind it; what only `other` reaches holds its data."""
    before = max(one.offset, other.offset - distance)
    behind = max(one.data.size - one.offset, other.data.size - other.offset + distance)
    data = np.zeros(before + behind, one.data.dtype)
    for tensor, place in ((other, before + distance), (one, before)):
        start = place - tensor.offset
        data[start : start + tensor.data.size] = tensor.data
    views = {
        id(one): replace(one, data=data, offset=before, unheld=0),
        id(other): replace(other, data=data, offset=before + distance, unheld=0),
    }
    side = f"{abs(distance)} element{'s' if abs(distance) > 1 else ''} {'behind' if distance > 0 else 'before'}"
    variant = f"{other.name} {side} {one.name} in one storage"
    return replace(with_tensors(inputs, views), variant=variant, shares=True, grid=(1,))


__all__ = ["Touched", "overlapping", "touched"]
