"""Global memory that the CTAs of a cluster share: what one reads must not be what another one of the same program stores meanwhile.

Each CTA has its part of a tensor, and reads and stores that at a pace of its own:

    x = load(p, rows of this CTA); store(p, x)            in order
    x = load(p, all rows); store(p, rows of this CTA)     a peer may have stored before this one reads

What a peer has stored is not even seen behind a barrier of the cluster: that orders operations, and no fence shows one CTA's stores to
another. Of an element that several CTAs have one stores it. Atomic operations are taken to be for all.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np

from gluonize.judge.machine.hazards import Hazard, Report
from gluonize.trace.model.layouts import Bases, part_of


class Bytes(Protocol):
    """What of a buffer of memory is asked for here."""

    name: str
    base: int
    data: np.ndarray


@lru_cache(maxsize=256)
def holders(shape: tuple[int, ...], ctas: Bases) -> np.ndarray:
    """For each element of a tensor, in order, the CTAs that have it: one bit each."""
    part = part_of(shape, ctas)
    units = [extent // own for extent, own in zip(shape, part)]
    out = np.zeros(units, np.uint16)
    for cta in range(1 << len(ctas)):
        place = [0] * len(shape)
        for bit, basis in enumerate(ctas):
            if cta >> bit & 1:
                place = [a ^ b for a, b in zip(place, basis)]
        out[tuple(at % count for at, count in zip(place, units))] |= 1 << cta
    for dim, own in enumerate(part):
        out = np.repeat(out, own, dim)
    out = out.reshape(-1)
    out.flags.writeable = False
    return out


class _Record:
    """Of each granule of a buffer the CTAs that have read it and the one that has stored it, with the last interval of each; -1 for none."""

    def __init__(self, size: int, granule: int) -> None:
        count = -(-size // granule)
        self.granule = granule
        self.readers, self.writer = np.zeros(count, np.uint16), np.zeros(count, np.uint16)
        self.read, self.wrote = np.full(count, -1, np.int32), np.full(count, -1, np.int32)

    def refine(self, size: int, granule: int) -> None:
        """Make granules as fine as an access needs, and as many as a buffer of `size` has."""
        times = max(1, self.granule // granule)
        self.granule //= times
        more = -(-size // self.granule) - len(self.readers) * times
        for name, none in (("readers", 0), ("writer", 0), ("read", -1), ("wrote", -1)):
            grown = np.repeat(getattr(self, name), times)
            setattr(self, name, np.concatenate([grown, np.full(max(0, more), none, grown.dtype)]))

    def covered(self, offset: np.ndarray, size: int) -> tuple[np.ndarray, int]:
        """The granules of accesses of `size` bytes, and how many each has."""
        times = max(1, size // self.granule)
        if times == 1:
            return offset // self.granule, 1
        return (offset[:, None] // self.granule + np.arange(times)).reshape(-1), times


class PeerAccesses:
    """The accesses of one program. `held`: of the elements of the access that runs now, in order, the CTAs that have them; None: no access."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.held: np.ndarray | None = None
        self.interval = 0
        self.known = -1  # intervals before it are done in all CTAs
        self._records: dict[int, _Record] = {}

    def _record(self, buffer: Bytes, size: int) -> _Record:
        extent = len(buffer.data)
        record = self._records.get(buffer.base)
        if record is None:
            record = self._records[buffer.base] = _Record(extent, size)
        if size < record.granule or extent > len(record.readers) * record.granule:
            record.refine(extent, min(size, record.granule))
        return record

    def _ctas(self, lanes: np.ndarray | None, part, times: int) -> np.ndarray:
        held = (self.held if lanes is None else self.held[lanes])[part]
        return np.repeat(held, times) if times > 1 else held

    def load(self, buffer: Bytes, offset: np.ndarray, size: int, lanes: np.ndarray | None, part) -> None:
        """Of the `lanes` of an access, None for all, `part` reads `size` bytes at each offset. Reports what a peer has stored."""
        if self.held is None:
            return
        record = self._record(buffer, size)
        where, times = record.covered(offset, size)
        ctas = self._ctas(lanes, part, times)
        if ((record.writer[where] != 0) & (ctas & ~record.writer[where] != 0)).any():
            what = (
                f"a workgroup reads what another one of its cluster has stored to {buffer.name}, which nothing shows it"
            )
            self.report(Hazard("cluster-memory", what))
        record.readers[where[record.read[where] < self.known]] = 0
        np.bitwise_or.at(record.readers, where, ctas)
        record.read[where] = self.interval

    def store(self, buffer: Bytes, offset: np.ndarray, lanes: np.ndarray | None, part, bits: np.ndarray) -> None:
        """Of the `lanes` of an access `part` stores `bits` at each offset: of the CTAs that have an element the first one does.

        Reports what a peer may still read, or stores too.
        """
        if self.held is None:
            return
        size = bits.dtype.itemsize
        record = self._record(buffer, size)
        where, times = record.covered(offset, size)
        ctas = self._ctas(lanes, part, times)
        own = ctas & (~ctas + np.uint16(1))
        new = buffer.data[: len(buffer.data) // size * size].view(bits.dtype)[offset // size] != bits
        new = np.repeat(new, times) if times > 1 else new
        if (new & (record.read[where] >= self.known) & (record.readers[where] & ~own != 0)).any():
            what = f"a workgroup stores to {buffer.name} what another one of its cluster may not have read yet"
            self.report(Hazard("cluster-memory", what))
        unordered = (record.wrote[where] >= self.known) & (record.writer[where] != 0)
        if (new & unordered & (record.writer[where] != own)).any():
            what = f"two workgroups of a cluster store different values to an element of {buffer.name}"
            self.report(Hazard("cluster-memory", what))
        record.writer[where], record.wrote[where] = own, self.interval
