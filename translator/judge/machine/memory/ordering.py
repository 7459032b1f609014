"""Which accesses to shared memory are ordered: between warp-specialized partitions, and between the halves of a warp pipeline.

Partitions: each has a vector clock; what it does before an arrival at an mbarrier comes before what another does after waiting for
the phase that the arrival completes. Two accesses to an element, one of them a write, from two partitions must be ordered.

What works beside a partition on its orders (copies of the TMA unit, the tensor core) is an agent with a clock of its own: it comes after all
that the partition had done when it gave the order, and the partition comes after it once it has waited for it.

Warp pipeline: half of the warps runs one stage behind the other half, with a barrier between stages. So when one half is in stage t,
the other has finished only stage t - 2: a value stored in stage s can be read from stage s + 2 on, a slot read in stage s filled from
stage s + 2 on, and a copy that a wait before stage s covers has landed for both halves from stage s + 1 on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gluonize.judge.machine.hazards import Hazard, Report
from gluonize.judge.machine.memory.views import Allocation
from gluonize.trace.model.locations import UNKNOWN, Place

NONE = -(1 << 40)  # before every clock and stage
AGENTS = ("bulk copy", "tensor core operation", "product of a warp group")
BULK, TENSOR, PRODUCT = range(len(AGENTS))


@dataclass
class _Record:
    """Per element of one allocation: the partition of the last write and its clock, and per partition the clock of its last read."""

    writer: np.ndarray
    written: np.ndarray
    read: dict[int, np.ndarray] = field(default_factory=dict)
    places: dict[tuple[int, str], Place] = field(default_factory=dict)


class Partitions:
    """Vector clocks of `count` partitions and, if `agents`, of what works beside each. `place` is that of the op that runs now.

    `fenced` is what of each one's stores is visible to the agents.
    """

    def __init__(self, count: int, agents: bool = False):
        self.count = count
        size = count * (1 + len(AGENTS) * agents)
        self.clocks = np.zeros((size, size), np.int64)
        np.fill_diagonal(self.clocks, 1)
        self.fenced = np.zeros(size, np.int64)
        self.records: dict[Allocation, _Record] = {}
        self.place = UNKNOWN

    def agent(self, me: int, kind: int) -> int:
        """The agent of `AGENTS` that partition `me` gives an order now."""
        agent = self.count * (1 + kind) + me
        self.acquired(agent, self.released(me))
        return agent

    def fork(self) -> None:
        """All partitions begin where the first one is."""
        clock = self.released(0)
        for me in range(1, self.count):
            self.acquired(me, clock)

    def join(self) -> None:
        """The first one goes on where all have ended."""
        for me in range(1, self.count):
            self.acquired(0, self.released(me))

    def fence(self, me: int) -> None:
        """All stores that `me` knows of become visible to agents."""
        np.maximum(self.fenced, self.released(me), out=self.fenced)

    def check_fence(self, me: int, view, report: Report) -> None:
        """Reports what an agent of `me` reads and another partition stored, without a fence since; its own stores the compiler fences."""
        if view.allocation.lane_bytes:  # tensor memory, which has one way in
            return
        record = self._record(view.allocation)
        writer = record.writer[view.index]
        late = (writer >= 0) & (writer < self.count) & (writer != me)
        late &= record.written[view.index] > self.fenced[writer]
        if late.any():
            other = int(writer[late][0])
            what = f"reads {view.allocation.name}, which partition {other} stored at line {record.places[other, 'written'].line}"
            report(Hazard("missing-fence", f"{what}; no fence has made the stores visible to asynchronous operations"))

    def released(self, me: int) -> np.ndarray:
        """What `me` publishes by an arrival now."""
        clock = self.clocks[me].copy()
        self.clocks[me, me] += 1
        return clock

    def acquired(self, me: int, clock: np.ndarray) -> None:
        np.maximum(self.clocks[me], clock, out=self.clocks[me])

    def _record(self, allocation: Allocation) -> _Record:
        if allocation not in self.records:
            count = allocation.data.size
            self.records[allocation] = _Record(np.full(count, -1, np.int16), np.zeros(count, np.int64))
        return self.records[allocation]

    def read(self, me: int, view, report: Report) -> None:
        """Reports that another partition wrote what is read and nothing orders the two."""
        record = self._record(view.allocation)
        self._check_writer(me, view, record, "reads", report)
        if me not in record.read:
            record.read[me] = np.zeros(view.allocation.data.size, np.int64)
        record.read[me][view.index] = self.clocks[me, me]
        record.places[me, "read"] = self.place

    def write(self, me: int, view, report: Report) -> None:
        """Reports that another partition wrote or read what is overwritten and nothing orders the two."""
        record = self._record(view.allocation)
        self._check_writer(me, view, record, "overwrites", report)
        for other, clocks in record.read.items():
            if other != me and (clocks[view.index] > self.clocks[me, other]).any():
                report(self._race(me, view, "overwrites", other, "reads", record.places[other, "read"]))
        record.writer[view.index] = me
        record.written[view.index] = self.clocks[me, me]
        record.places[me, "written"] = self.place

    def _check_writer(self, me: int, view, record: _Record, verb: str, report: Report) -> None:
        writer = record.writer[view.index]
        foreign = (writer >= 0) & (writer != me)
        if not foreign.any():
            return
        late = foreign & (record.written[view.index] > self.clocks[me][writer])
        if late.any():
            other = int(writer[late][0])
            report(self._race(me, view, verb, other, "writes", record.places[other, "written"]))

    def _race(self, me: int, view, verb: str, other: int, what: str, place: Place) -> Hazard:
        name = view.allocation.name
        if other < self.count or other % self.count != me % self.count:
            who = f"partition {other % self.count}" + (
                f"'s {AGENTS[other // self.count - 1]}" if other >= self.count else ""
            )
            return Hazard(
                "lds-race", f"{verb} {name}, which {who} {what} at line {place.line}; no barrier orders the two"
            )
        who = f"the {AGENTS[other // self.count - 1]} of line {place.line}"
        kind = {"reads": "lds-overwrite-source", "writes": "lds-overwrite-in-flight"}[what]
        kind = "lds-in-flight" if verb == "reads" else kind
        return Hazard(kind, f"{verb} {name}, which {who} {what}; nothing has waited for that")


class Stages:
    """The stage that the leading half of the warps is in, and what happened to each allocation in which stage."""

    def __init__(self):
        self.now = NONE
        self.records: dict[tuple[Allocation, str], np.ndarray] = {}

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
        key = (view.allocation, what)
        if key not in self.records:
            self.records[key] = np.full(view.allocation.data.size, NONE)
        self.records[key][view.index] = self.now if stage is None else stage

    def _latest(self, view, what: str) -> int:
        record = self.records.get((view.allocation, what))
        return NONE if record is None or not view.index.size else int(record[view.index].max())

    def read(self, view, report: Report) -> None:
        """Reports that the other half may not have written yet what is read."""
        name = view.allocation.name
        if self._latest(view, "landed") >= self.now:
            what = f"reads {name} in the stage behind the wait; the other half of the warps has not waited yet"
            report(Hazard("pipeline-stage", what))
        if self._latest(view, "stored") > self.now - 2:
            what = f"reads what was stored to {name} less than two stages before; half of the warps is a stage behind"
            report(Hazard("pipeline-stage", what))
        self.note(view, "read")

    def write(self, view, report: Report) -> None:
        """Reports that the other half may still read what is overwritten."""
        if self._latest(view, "read") > self.now - 2:
            name = view.allocation.name
            what = f"fills elements of {name} that were read less than two stages before; half of the warps is a stage behind"
            report(Hazard("pipeline-stage", what))
