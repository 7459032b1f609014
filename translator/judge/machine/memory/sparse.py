"""Storage of gibibytes of which only what is touched is there: pages, in the order in which something first touched them."""

from __future__ import annotations

import numpy as np

from gluonize.judge.machine.hazards import NotRunnable

SHIFT = 9  # log2 of the bytes of a page; rows of a tile that lie far apart have a page each
PAGE = 1 << SHIFT
MOST = 1 << 16  # pages of one storage
SPREAD = np.uint64(
    0x9E3779B97F4A7C15
)  # 2^64 over the golden ratio: the pattern begins elsewhere in every page, powers of two apart too


class Pages:
    """A storage of `extent` bytes that repeats the items of `pattern` (in stored form), from another one on in every page.

    Every memory that is made for one set of inputs has the same pages in the same places, whichever touched them first. What
    is held is a row of pages; a place is a byte of it, an offset a byte of the storage.
    """

    def __init__(self, extent: int, pattern: np.ndarray):
        self.extent, self.pattern = extent, np.ascontiguousarray(pattern).reshape(-1)
        self.numbers = np.zeros(0, np.int64)
        self.order = np.zeros(0, np.int64)  # places of the pages in the order of their numbers

    def __len__(self) -> int:
        """Pages that are held."""
        return len(self.numbers)

    def places(self, offsets: np.ndarray) -> np.ndarray:
        """Where bytes at these offsets are held; from now on, if they were not. Raises: NotRunnable where there are too many."""
        wanted = offsets >> SHIFT
        found = self._found(wanted)
        if (new := found < 0).any():
            self._hold(np.unique(wanted[new]))
            found = self._found(wanted)
        return (found << SHIFT) + (offsets & (PAGE - 1))

    def offsets(self, places: np.ndarray) -> np.ndarray:
        return (self.numbers[places >> SHIFT] << SHIFT) + (places & (PAGE - 1))

    def contents(self, first: int = 0) -> np.ndarray:
        """What the pages from the `first` held one on hold before anything is stored, as bytes."""
        items = PAGE // self.pattern.itemsize
        begin = (self.numbers[first:, None].astype(np.uint64) * SPREAD >> np.uint64(33)).astype(np.int64)
        index = (begin + np.arange(items)) % self.pattern.size
        return self.pattern[index].reshape(-1).view(np.uint8)

    def _found(self, wanted: np.ndarray) -> np.ndarray:
        """Per page number which held page it is, -1 for none."""
        if not len(self):
            return np.full(wanted.shape, -1, np.int64)
        at = self.order[np.minimum(np.searchsorted(self.numbers, wanted, sorter=self.order), len(self) - 1)]
        return np.where(self.numbers[at] == wanted, at, -1)

    def _hold(self, new: np.ndarray) -> None:
        if len(self) + new.size > MOST:
            raise NotRunnable("memory", f"more than {MOST * PAGE >> 20} MiB of a large storage are used")
        self.numbers = np.concatenate([self.numbers, new])
        self.order = np.argsort(self.numbers)


__all__ = ["PAGE", "Pages"]
