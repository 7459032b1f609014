"""What one program leaves in memory for another one: no program may read it unless a mark says that it is there.

program 3     store(sums, ...); atomic_add(mark, 1, release)
program 4     while atomic_add(mark, 0, acquire) < 1: ...; load(sums)

Each program counts its releases. What it stores has the number of the next one; by an acquire a program gets to know all that was known where
the mark was released. So it is found in whatever turns programs run, if a mark is set too early or not waited for.

A release orders what the thread has stored that makes it, with those of its wave: it is one of the program where each thread makes it. What one
thread has acquired the others know of behind a barrier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gluonize.judge.machine.hazards import Hazard
from gluonize.judge.machine.memory.cluster import Bytes

_RELEASES, _ACQUIRES = ("release", "acq_rel"), ("acquire", "acq_rel")
_SIZE = 4  # bytes of an item


class HandedOver:
    """What programs know of each other's stores to one buffer. program: the number of the one that runs."""

    def __init__(self, program: Callable[[], int], name: str) -> None:
        self.program, self.name = program, name
        self._known: dict[int, dict[int, int]] = {}  # by program: releases that it knows of, by program
        self._acquired: dict[int, dict[int, int]] = {}  # by program: what one thread of it knows
        self._marks: dict[int, dict[int, int]] = {}  # by address: what was known where it was released
        self._by = self._at = np.zeros(
            0, np.int64
        )  # by item: 1 + the program that stored it, and before which of its releases

    def _clock(self, program: int) -> dict[int, int]:
        return self._known.setdefault(program, {program: 0})

    def load(self, buffer: Bytes, offset: np.ndarray, size: int, lanes: np.ndarray | None, part) -> None:
        """Raises: Hazard where something is read that another program has stored and this one does not know of, or that nobody has."""
        if buffer.name != self.name or not len(self._by):
            return
        me, where = self.program(), offset // _SIZE
        by, at = self._by[where], self._at[where]
        known = self._clock(me)
        for other in np.unique(by[by != me + 1]):
            if other == 0:
                raise Hazard("unordered", f"a program reads {self.name} where no program has stored anything")
            if known.get(int(other) - 1, 0) < at[by == other].max():
                what = f"a program reads {self.name}, and no mark says that program {other - 1} has stored it"
                raise Hazard("unordered", what)

    def store(self, buffer: Bytes, offset: np.ndarray, lanes: np.ndarray | None, part, bits: np.ndarray) -> None:
        """Keep who has stored something, and when."""
        if buffer.name != self.name:
            return
        if not len(self._by):
            self._by, self._at = np.zeros((2, len(buffer.data) // _SIZE), np.int64)
        me = self.program()
        self._by[offset // _SIZE], self._at[offset // _SIZE] = me + 1, self._clock(me)[me] + 1

    def atomic(self, addresses: np.ndarray, words: Sequence[str], by_all: bool) -> None:
        """An atomic operation on marks at `addresses`, of which `words` say what it orders. by_all: each thread makes one."""
        me = self.program()
        known = self._clock(me)
        releases, acquires = (any(word in kinds for word in words) for kinds in (_RELEASES, _ACQUIRES))
        releases = releases and by_all
        if releases:
            known[me] += 1
        for address in np.unique(addresses).tolist():
            mark = self._marks.setdefault(address, {})
            if releases:
                _learn(mark, known)
            if acquires:
                _learn(known if by_all else self._acquired.setdefault(me, {}), mark)

    def barrier(self) -> None:
        """All threads of a program get to know what one of them does."""
        _learn(self._clock(self.program()), self._acquired.pop(self.program(), {}))


def _learn(one: dict[int, int], other: dict[int, int]) -> None:
    """Have `one` know what `other` knows."""
    one |= {program: max(releases, one.get(program, 0)) for program, releases in other.items()}


__all__ = ["HandedOver"]
