"""Races of a source: accesses of two programs to one place, one of which changes it, with nothing between them that orders them.

Programs run one after another here, so that a race changes no result; on a GPU any of the two may come first. Only the first race in each
buffer is kept. What programs tell each other by atomic operations is not understood: who uses this leaves such kernels out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gluonize.judge.machine.dtypes import stored
from gluonize.judge.machine.memory.guarded import Buffer
from gluonize.trace.model.locations import Place


@dataclass(frozen=True)
class Race:
    """What programs `first` and `second` do to the item with number `item` of a buffer at these places; kinds: `loads` and `stores`."""

    buffer: str
    item: int
    first: int
    first_does: str
    first_at: Place
    second: int
    second_does: str
    second_at: Place

    def __str__(self) -> str:
        what = f"{self.buffer}[{self.item}]"
        if self.first == self.second:
            return f"threads of program {self.first} store different values to {what} in line {self.second_at.line}"
        one = f"program {self.first} {self.first_does} {what} in line {self.first_at.line}"
        return f"{one}, and program {self.second} {self.second_does} it in line {self.second_at.line}"


@dataclass
class _Last:
    """For each item 1 + the number of a program, and where in `places` it was; 0 for none."""

    program: np.ndarray
    place: np.ndarray


@dataclass
class Races:
    """An observer of a `Memory`: what each program has loaded and stored so far. running: -> the number of the program that runs, and the place of its operation."""

    running: Callable[[], tuple[int, Place]]
    found: dict[str, Race] = field(default_factory=dict)
    _places: list[Place] = field(default_factory=list)
    _numbers: dict[Place, int] = field(default_factory=dict)
    _loads: dict[str, _Last] = field(default_factory=dict)
    _stores: dict[str, _Last] = field(default_factory=dict)

    def load(self, buffer: Buffer, offset: np.ndarray, size: int) -> None:
        if buffer.pages is not None:  # storage of gibibytes
            return
        program, place = self.running()
        items = _items(buffer, offset, size)
        self._meet(buffer, items, self._stores, "stores", program, "loads", place)
        before = self._records(self._loads, buffer)
        new = items[before.program[items] == 0]  # the first program that loads it: those after it come later than that
        before.program[new], before.place[new] = program + 1, self._number(place)

    def store(self, buffer: Buffer, offset: np.ndarray, size: int, changed: np.ndarray, torn: np.ndarray) -> None:
        if buffer.pages is not None:
            return
        program, place = self.running()
        items = _items(buffer, offset[changed], size)
        self._meet(buffer, items, self._loads, "loads", program, "stores", place)
        self._meet(buffer, items, self._stores, "stores", program, "stores", place)
        if torn.any():
            item = int(_items(buffer, offset[torn], size)[0])
            self._keep(Race(buffer.name, item, program, "stores", place, program, "stores", place))
        after = self._records(self._stores, buffer)
        items = _items(buffer, offset, size)
        after.program[items], after.place[items] = program + 1, self._number(place)

    def _meet(
        self, buffer: Buffer, items: np.ndarray, records: dict[str, _Last], did: str, program: int, does: str, place: Place
    ) -> None:  # fmt: skip
        before = records.get(buffer.name)
        if before is None or not items.size or buffer.name in self.found:
            return
        other = before.program[items]
        met = np.flatnonzero((other != 0) & (other != program + 1))
        if met.size:
            item = int(items[met[0]])
            at = self._places[before.place[item]]
            self._keep(Race(buffer.name, item, int(before.program[item]) - 1, did, at, program, does, place))

    def _keep(self, race: Race) -> None:
        self.found.setdefault(race.buffer, race)

    def _records(self, records: dict[str, _Last], buffer: Buffer) -> _Last:
        if buffer.name not in records:
            count = -(-len(buffer.data) // stored(buffer.element).itemsize)
            records[buffer.name] = _Last(np.zeros(count, np.int32), np.zeros(count, np.int32))
        return records[buffer.name]

    def _number(self, place: Place) -> int:
        if place not in self._numbers:
            self._numbers[place] = len(self._places)
            self._places.append(place)
        return self._numbers[place]


def _items(buffer: Buffer, offset: np.ndarray, size: int) -> np.ndarray:
    """The items that accesses of `size` bytes at byte offsets reach."""
    item = stored(buffer.element).itemsize
    steps = np.arange(0, max(size, item), item)
    return (offset[:, None] + steps).reshape(-1) // item
