"""Where the elements of a tile lie in the tensor memory of sm_100: 128 lanes of 4-byte columns per CTA.

Formulas: `tensorMemoryToLinearLayout` and `tensorMemoryScalesToLinearLayout` of Triton 3.9.0
(lib/Dialect/TritonGPU/IR/LinearLayoutConversions.cpp).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gluonize.judge.machine.dtypes import stored
from gluonize.judge.machine.hazards import NotRunnable
from gluonize.trace.model.attributes import TENSOR_MEMORY, TENSOR_MEMORY_SCALES, Attribute

LANES = 128

# A bit of a lane or a column: (dimension, what it adds to the index there), None for a bit that no index has.
Bit = tuple[int, int] | None


@dataclass(frozen=True)
class Placement:
    """Per element of a tile its lane (of all CTAs of a cluster) and its byte within the lane; `width`: bytes of a lane that the tile takes."""

    lanes: np.ndarray
    columns: np.ndarray
    width: int

    def index(self, row: int, lane: int = 0, column: int = 0) -> np.ndarray:
        """First bytes in memory with `row` bytes per lane, for a tile that begins at `lane` and byte `column`."""
        return (self.lanes + lane) * row + self.columns + column


class _Bits:
    """Bits of lanes and columns, handed out to the dimensions of a tile from the lowest one up."""

    def __init__(self):
        self.next = [1, 1]
        self.lane: list[Bit] = []
        self.column: list[Bit] = []

    def give(self, where: list[Bit], dim: int, count: int) -> None:
        """The next bits of dimension `dim` up to a factor of `count`."""
        for _ in range(max(count, 1).bit_length() - 1):
            where.append((dim, self.next[dim]))
            self.next[dim] *= 2

    @staticmethod
    def skip(where: list[Bit], count: int) -> None:
        where += [None] * (max(count, 1).bit_length() - 1)


def placement(layout: Attribute, element: str, shape: tuple[int, ...]) -> Placement:
    """Of a two-dimensional tile. Raises: NotRunnable for a layout that is none of tensor memory."""
    bases = layout.get("CGALayout", ())
    own = list(shape)
    for basis in bases:
        for dim, step in enumerate(basis):
            own[dim] //= 2 if step else 1
    if layout.kind == TENSOR_MEMORY:
        bits = _accumulator(layout, own)
    elif layout.kind == TENSOR_MEMORY_SCALES:
        bits = _scales(layout, own)
    else:
        raise NotRunnable("ttng.tmem_alloc", f"of layout #{layout.kind}")
    bits.next = list(own)
    bits.lane += [None] * (LANES.bit_length() - 1 - len(bits.lane))
    for basis in bases:
        dim = next((d for d, step in enumerate(basis) if step), None)
        bits.skip(bits.lane, 2) if dim is None else bits.give(bits.lane, dim, 2)
    index = np.indices(shape)
    size = stored(element).itemsize
    lanes, columns = (_placed(where, index) for where in (bits.lane, bits.column))
    return Placement(lanes, columns * size, (1 << len(bits.column)) * size)


def _accumulator(layout: Attribute, shape: list[int]) -> _Bits:
    block_m, stride = layout.get("blockM"), layout.get("colStride", 1)
    block_n = min(layout.get("blockN"), shape[1])
    both, bits = layout.get("twoCTAs", False), _Bits()
    bits.skip(bits.column, stride)
    bits.skip(bits.column, 2 if layout.get("fp4Padded") else 1)
    if block_m == 64 and not both:  # 16 of each 32 lanes; the others hold a second block, if there is one
        bits.give(bits.lane, 0, 16)
        bits.give(bits.column, 1, block_n)
        if shape[0] > block_m:
            bits.lane.append((0, 64))
        elif shape[1] > block_n:
            bits.give(bits.lane, 1, 2)
        else:
            bits.lane.append(None)
        bits.give(bits.lane, 0, 4)
        bits.next[0] = min(shape[0], 128) if shape[0] > block_m else 64
    elif block_m == 64:  # each of the two CTAs has half of the columns in the upper lanes
        bits.give(bits.lane, 0, 64)
        bits.give(bits.column, 1, block_n // 2)
        bits.give(bits.lane, 1, 2)
    else:
        bits.give(bits.lane, 0, block_m)
        bits.give(bits.column, 1, block_n)
    bits.give(bits.column, 0, shape[0] // bits.next[0])
    bits.give(bits.column, 1, shape[1] // bits.next[1])
    return bits


def _scales(layout: Attribute, shape: list[int]) -> _Bits:
    """Blocks of 32 rows by 4 bytes; copies of them in the other lanes are left out."""
    bits = _Bits()
    bits.give(bits.lane, 0, 32)
    bits.give(bits.column, 1, 4)
    bits.give(bits.column, 0, 2)
    reps_mn, reps_k = -(-shape[0] // 64), -(-shape[1] // 4)
    if reps_mn > 1:
        bits.give(bits.column, 0, 2)
        reps_mn //= 2
    repeated = ((1, reps_k), (0, reps_mn)) if layout.get("blockRepOrder") == "kThenMn" else ((0, reps_mn), (1, reps_k))
    for dim, count in repeated:
        bits.give(bits.column, dim, count)
    for where in (bits.lane, bits.column):
        where[:] = [bit if bit is not None and bit[1] < shape[bit[0]] else None for bit in where]
    return bits


def _placed(where: list[Bit], index: np.ndarray) -> np.ndarray:
    out = np.zeros(index[0].shape, np.int64)
    for position, bit in enumerate(where):
        if bit is not None:
            out |= ((index[bit[0]] & bit[1]) != 0).astype(np.int64) << position
    return out
