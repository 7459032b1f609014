"""Which accesses to shared memory are ordered: between warp-specialized partitions, and between the halves of a warp pipeline.

Partitions: each has a vector clock; what it does before an arrival at an mbarrier comes before what another does after waiting for
the phase that the arrival completes. Two accesses to an element, one of them a write, from two partitions must be ordered.

Warp pipeline: half of the warps runs one stage behind the other half, with a barrier between stages. So when one half is in stage t,
the other has finished only stage t - 2: a value stored in stage s can be read from stage s + 2 on, a slot read in stage s filled from
stage s + 2 on, and a copy that a wait before stage s covers has landed for both halves from stage s + 1 on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from translator.validate.hazards import Hazard
from translator.ttgir.locations import UNKNOWN, Place

NONE = -(1 << 40)  # before every clock and stage


@dataclass
class _Record:
    """Per element of one allocation: the partition of the last write and its clock, and per partition the clock of its last read."""

    writer: np.ndarray
    written: np.ndarray
    read: dict[int, np.ndarray] = field(default_factory=dict)
    places: dict[tuple[int, str], Place] = field(default_factory=dict)


class Partitions:
    """Vector clocks of the `count` partitions of one `warp_specialize`. `place` is that of the op that runs now."""

    def __init__(self, count: int):
        self.clocks = np.zeros((count, count), np.int64)
        np.fill_diagonal(self.clocks, 1)
        self.records: dict[int, _Record] = {}
        self.place = UNKNOWN

    def released(self, me: int) -> np.ndarray:
        """What `me` publishes by an arrival now."""
        clock = self.clocks[me].copy()
        self.clocks[me, me] += 1
        return clock

    def acquired(self, me: int, clock: np.ndarray) -> None:
        np.maximum(self.clocks[me], clock, out=self.clocks[me])

    def _record(self, allocation) -> _Record:
        key = id(allocation)
        if key not in self.records:
            count = allocation.data.size
            self.records[key] = _Record(np.full(count, -1, np.int16), np.zeros(count, np.int64))
        return self.records[key]

    def read(self, me: int, view) -> None:
        """Raises: Hazard when another partition wrote what is read and nothing orders the two."""
        record = self._record(view.allocation)
        self._check_writer(me, view, record, "reads")
        record.read.setdefault(me, np.zeros(view.allocation.data.size, np.int64))[view.index] = self.clocks[me, me]
        record.places[me, "read"] = self.place

    def write(self, me: int, view) -> None:
        """Raises: Hazard when another partition wrote or read what is overwritten and nothing orders the two."""
        record = self._record(view.allocation)
        self._check_writer(me, view, record, "overwrites")
        for other, clocks in record.read.items():
            if other != me and (clocks[view.index] > self.clocks[me, other]).any():
                self._race(view, "overwrites", other, "reads", record.places[other, "read"])
        record.writer[view.index] = me
        record.written[view.index] = self.clocks[me, me]
        record.places[me, "written"] = self.place

    def _check_writer(self, me: int, view, record: _Record, verb: str) -> None:
        writer = record.writer[view.index]
        foreign = (writer >= 0) & (writer != me)
        if not foreign.any():
            return
        late = foreign & (record.written[view.index] > self.clocks[me][writer])
        if late.any():
            other = int(writer[late][0])
            self._race(view, verb, other, "writes", record.places[other, "written"])

    def _race(self, view, verb: str, other: int, what: str, place: Place) -> None:
        name = view.allocation.name
        raise Hazard(
            "lds-race", f"{verb} {name}, which partition {other} {what} at line {place.line}; no barrier orders the two"
        )


class Stages:
    """The stage that the leading half of the warps is in, and what happened to each allocation in which stage."""

    def __init__(self):
        self.now = NONE
        self.records: dict[tuple[int, str], np.ndarray] = {}

    @property
    def inside(self) -> bool:
        return self.now != NONE

    def enter(self) -> None:
        """A pipelined loop begins: both halves are together."""
        self.records.clear()
        self.now = 0

    def leave(self) -> None:
        self.records.clear()
        self.now = NONE

    def note(self, view, what: str, stage: int | None = None) -> None:
        key = (id(view.allocation), what)
        if key not in self.records:
            self.records[key] = np.full(view.allocation.data.size, NONE)
        self.records[key][view.index] = self.now if stage is None else stage

    def _latest(self, view, what: str) -> int:
        record = self.records.get((id(view.allocation), what))
        return NONE if record is None or not view.index.size else int(record[view.index].max())

    def read(self, view) -> None:
        """Raises: Hazard when the other half may not have written yet what is read."""
        name = view.allocation.name
        if self._latest(view, "landed") >= self.now:
            raise Hazard(
                "pipeline-stage",
                f"reads {name} in the stage behind the wait; the other half of the warps has not waited yet",
            )
        if self._latest(view, "stored") > self.now - 2:
            raise Hazard(
                "pipeline-stage",
                f"reads what was stored to {name} less than two stages before; half of the warps is a stage behind",
            )
        self.note(view, "read")

    def write(self, view) -> None:
        """Raises: Hazard when the other half may still read what is overwritten."""
        if self._latest(view, "read") > self.now - 2:
            name = view.allocation.name
            raise Hazard(
                "pipeline-stage",
                f"fills elements of {name} that were read less than two stages before; half of the warps is a stage behind",
            )
