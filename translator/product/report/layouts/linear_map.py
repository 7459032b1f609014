"""Linear maps of layouts, expanded: which lane and register of which warp holds which element of a tile.

A distributed layout is linear over bits: each bit of the register, lane and warp number adds (XORs) one basis vector to
the coordinates (Triton's `LinearLayout`). The bases come from Triton; everything here is plain arithmetic.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

from gluonize.trace.model.layouts import Bases, Ints


@dataclass(frozen=True)
class Holder:
    """Where a copy of one element is."""

    warp: int
    lane: int
    register: int


@dataclass(frozen=True)
class DistributedMap:
    """The bases of a distributed layout of a tile of `shape`."""

    register: Bases
    lane: Bases
    warp: Bases
    shape: Ints

    @property
    def registers(self) -> int:
        """Registers per lane, one element each."""
        return 1 << len(self.register)

    @property
    def lanes(self) -> int:
        return 1 << len(self.lane)

    @property
    def warps(self) -> int:
        return 1 << len(self.warp)

    def element(self, warp: int, lane: int, register: int) -> Ints:
        """The coordinates of what this lane holds in this register."""
        found = (0,) * len(self.shape)
        for bases, bits in ((self.register, register), (self.lane, lane), (self.warp, warp)):
            for i, basis in enumerate(bases):
                if bits >> i & 1:
                    found = tuple(a ^ b for a, b in zip(found, basis))
        return found

    @cached_property
    def holders(self) -> dict[Ints, tuple[Holder, ...]]:
        """All copies of every element, in the order of warps, lanes and registers."""
        out: dict[Ints, list[Holder]] = {}
        for warp, lane, register in itertools.product(range(self.warps), range(self.lanes), range(self.registers)):
            out.setdefault(self.element(warp, lane, register), []).append(Holder(warp, lane, register))
        return {at: tuple(found) for at, found in out.items()}

    @cached_property
    def copies(self) -> int:
        """How many lanes hold each element, or registers of one lane: 1 without broadcast."""
        elements = 1
        for extent in self.shape:
            elements *= extent
        return max(1, self.registers * self.lanes * self.warps // elements)

    @cached_property
    def vector(self) -> int:
        """Consecutive elements along the fastest dimension that one lane holds in consecutive registers."""
        n = 1
        for basis in self.register:
            if sum(basis) != n or basis[self.fastest] != n:
                break
            n *= 2
        return n

    @cached_property
    def fastest(self) -> int:
        """The dimension that the first register, else the first lane, moves along; the last one by default."""
        for basis in (*self.register[:1], *self.lane):
            moved = [d for d, x in enumerate(basis) if x]
            if moved:
                return moved[0]
        return len(self.shape) - 1


@dataclass(frozen=True)
class SharedMap:
    """Where the elements of a tile of `shape` are in LDS: XOR-linear offsets, in elements, then padding.

    offset: what each bit of the offset moves in the tile. pairs: (interval, padding) in elements: after every
    `interval` elements the addresses skip `padding`.
    """

    offset: Bases
    pairs: Bases
    shape: Ints
    bits: int

    @cached_property
    def offsets(self) -> dict[Ints, int]:
        """Coordinates -> offset in elements, padding included."""
        out = {}
        for n in range(1 << len(self.offset)):
            at = (0,) * len(self.shape)
            for i, basis in enumerate(self.offset):
                if n >> i & 1:
                    at = tuple(a ^ b for a, b in zip(at, basis))
            out[at] = self.padded(n)
        return out

    def padded(self, offset: int) -> int:
        return offset + sum(offset // interval * padding for interval, padding in self.pairs)

    def byte(self, at: Ints) -> int:
        return self.offsets[at] * self.bits // 8

    @cached_property
    def size(self) -> int:
        """Bytes of one tile, the padding between its elements included."""
        return (max(self.offsets.values()) + 1) * self.bits // 8


@dataclass(frozen=True)
class BankUse:
    """One LDS access of one wave: `phases` of lanes that are served together, and what each bank has to deliver.

    The model: a bank delivers one 32-bit word per cycle, a wave is served `banks` words at a time in lane order;
    lanes that want the same word share it. phases: bank -> the distinct words wanted of it.
    """

    banks: int
    vector_bytes: int
    phases: tuple[dict[int, tuple[int, ...]], ...]

    @property
    def cycles(self) -> int:
        return sum(max((len(words) for words in phase.values()), default=0) for phase in self.phases)

    @property
    def ideal(self) -> int:
        return len(self.phases)

    @property
    def conflicts(self) -> int:
        """Cycles lost."""
        return self.cycles - self.ideal


def bank_use(held: DistributedMap, stored: SharedMap, banks: int, register: int = 0, warp: int = 0) -> BankUse:
    """The access that moves the vector of registers starting at `register` of one warp between lanes and LDS."""
    count = access_vector(held, stored)
    nbytes = max(1, count * stored.bits // 8)
    lanes_per_phase = max(1, min(held.lanes, banks * 4 // max(4, nbytes)))
    phases = []
    for first in range(0, held.lanes, lanes_per_phase):
        wanted: dict[int, set[int]] = {}
        for lane in range(first, min(first + lanes_per_phase, held.lanes)):
            start = stored.byte(held.element(warp, lane, register))
            for word in range(start // 4, (start + nbytes - 1) // 4 + 1):
                wanted.setdefault(word % banks, set()).add(word)
        phases.append({bank: tuple(sorted(words)) for bank, words in sorted(wanted.items())})
    return BankUse(banks, nbytes, tuple(phases))


def access_vector(held: DistributedMap, stored: SharedMap) -> int:
    """Elements that one lane moves at once: consecutive registers at consecutive offsets, at most 16 bytes."""
    most = max(1, 128 // stored.bits)
    starts = [stored.offsets[held.element(0, lane, 0)] for lane in range(held.lanes)]
    count = 1
    while count < min(most, held.registers) and all(
        stored.offsets[held.element(0, lane, r)] == start + r
        for lane, start in enumerate(starts)
        for r in range(count, 2 * count)
    ):
        count *= 2
    return count
