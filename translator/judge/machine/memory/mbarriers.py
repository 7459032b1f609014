"""Hardware barriers in shared memory: a count of pending arrivals and a phase bit; on NVIDIA GPUs bytes that copies have to bring too.

A phase ends when all have arrived and, of the bytes that they expect, all are brought by copies that were started. The copies land when
somebody waits for the phase.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gluonize.judge.machine.hazards import Finding, Hazard
from gluonize.judge.machine.memory.lds import Copy
from gluonize.judge.machine.memory.views import Allocation, MemDesc
from gluonize.trace.model.locations import UNKNOWN, Place


@dataclass
class Barrier:
    """`pending` arrivals until the phase flips. Copies that signal it are `ready` then, and land when somebody waits.

    `made` is the barrier interval of the initialisation; the warps see it after the next workgroup barrier. `arrived` joins the
    clocks of all arrivals so far, `released` those of the completed phases. `bytes`: expected in this phase less those of copies.
    """

    name: str
    count: int
    pending: int
    made: int
    phase: int = 0
    copies: list[Copy] = field(default_factory=list)
    ready: list[Copy] = field(default_factory=list)
    bytes: int = 0
    place: Place = UNKNOWN  # of the last copy or expectation
    arrived: np.ndarray | None = None
    released: np.ndarray | None = None


def _in_use(barrier: Barrier) -> bool:
    return bool(barrier.pending != barrier.count or barrier.bytes or barrier.copies or barrier.ready)


class Barriers:
    """The barriers of one program, as one partition (number `me` of `scheduler`) sees them; `table` is common to all.

    published: whether the compiler sees to it that an initialisation is seen.
    """

    def __init__(self, lds, warps: int, table: dict | None = None, published: bool = False):
        self.lds = lds
        self.warps = warps
        self.table: dict[tuple[Allocation, int], Barrier] = {} if table is None else table
        self.published = published
        self.scheduler = None
        self.me = 0

    def _find(self, view: MemDesc) -> Barrier:
        view.check_inside()
        key = (view.allocation, int(view.index.reshape(-1)[0]))
        if key not in self.table:
            raise Hazard(
                "mbarrier-uninitialised", f"{view.allocation.name} is used as a barrier before it was initialised"
            )
        barrier = self.table[key]
        if barrier.made >= self.lds.siblings[0].epoch and not self.published:
            what = f"no workgroup barrier between the initialisation of {barrier.name} and its use"
            self.lds.report(Hazard("mbarrier-unpublished", what))
        return barrier

    def init(self, view: MemDesc, count: int) -> None:
        """`count` is above 0, as the compiler verifies. Raises: Hazard for a barrier that is in use."""
        for index in view.index.reshape(-1):
            old = self.table.get((view.allocation, int(index)))
            if old is not None and _in_use(old):
                what = f"{old.name} is initialised again while a phase of it is under way"
                self.lds.report(Hazard("mbarrier-reinitialised", what))
        for index in view.index.reshape(-1):
            self.table[(view.allocation, int(index))] = self._new(view, int(index), count)

    def invalidate(self, view: MemDesc) -> None:
        """The barriers are none any more. Reports those that are in use."""
        for index in view.index.reshape(-1):
            old = self.table.pop((view.allocation, int(index)), None)
            if old is not None and _in_use(old):
                what = f"{old.name} is invalidated while a phase of it is under way"
                self.lds.report(Hazard("mbarrier-invalidated", what))

    def _new(self, view: MemDesc, index: int, count: int) -> Barrier:
        return Barrier(view.allocation.where(index), count, count, self.lds.epoch)

    def attach(self, copy: Copy) -> None:
        """A copy that signals its barrier when it is done: one arrival per warp.

        Sources count on it that the copies of a partition are done in turn; a translation does not rest on that.
        """
        barrier = self._find(copy.barrier)
        if self.lds.in_program_order:
            barrier.copies += (other for group in self.lds.tensor_copies.groups for other in group if other is not copy)
        barrier.copies.append(copy)
        self._arrived(barrier, self.warps)

    def expect(self, view: MemDesc, size: int, place: Place) -> None:
        """One arrival, and `size` more bytes that copies have to bring in this phase."""
        barrier = self._find(view)
        barrier.bytes += size
        barrier.place = place
        self._arrived(barrier, 1)

    def bring(self, copy: Copy, size: int) -> None:
        """A copy that brings its barrier `size` bytes when it is done."""
        barrier = self._find(copy.barrier)
        barrier.copies.append(copy)
        barrier.bytes -= size
        barrier.place = copy.place
        self._learn(barrier, copy.clock)
        self._complete(barrier)

    def attach_all(self, view: MemDesc, copies: list[Copy], count: int) -> None:
        """`count` arrivals when all of `copies` are done."""
        barrier = self._find(view)
        barrier.copies += copies
        self._arrived(barrier, count)

    def arrive(self, view: MemDesc, count: int, by: int | None = None) -> int:
        """`by`: the agent that arrives, None for the partition itself. -> the phase before."""
        barrier = self._find(view)
        before = barrier.phase
        self._arrived(barrier, count, by)
        return before

    def missing(self, view: MemDesc) -> int:
        """Arrivals that the phase still needs."""
        return self._find(view).pending

    def _arrived(self, barrier: Barrier, count: int, by: int | None = None) -> None:
        if count > barrier.pending:
            late = f", and {barrier.bytes} bytes" if barrier.bytes and not barrier.pending else ""
            what = f"{count} arrivals at {barrier.name}, which expects {barrier.pending} more{late}"
            raise Hazard("mbarrier-underflow", what)
        barrier.pending -= count
        order = self.lds.partitions
        if order is not None:
            self._learn(barrier, order.released(self.me if by is None else by))
        self._complete(barrier)

    def _learn(self, barrier: Barrier, clock: np.ndarray | None) -> None:
        if clock is not None:
            barrier.arrived = clock if barrier.arrived is None else np.maximum(barrier.arrived, clock)

    def _complete(self, barrier: Barrier) -> None:
        """The phase ends if it can."""
        if self.scheduler:
            self.scheduler.moved(self.me)
        if barrier.pending == 0 and barrier.bytes < 0:
            what = f"copies bring {barrier.name} {-barrier.bytes} bytes more than the phase expects"
            self.lds.report(Hazard("mbarrier-bytes", what))
            barrier.bytes = 0
        if barrier.pending == 0 and barrier.bytes == 0:
            barrier.pending = barrier.count
            barrier.phase ^= 1
            barrier.released = barrier.arrived
            barrier.ready += barrier.copies
            barrier.copies = []
        if self.scheduler:
            self.scheduler.pause(self.me)

    def wait(self, view: MemDesc, phase: int, place: Place) -> None:
        """Until the barrier's phase differs from `phase`. Raises: Hazard on deadlock."""
        barrier = self._find(view)
        if phase not in (0, 1):
            raise Hazard("mbarrier-phase", f"waits for phase {phase} of {barrier.name}; a phase is 0 or 1")
        while barrier.phase == phase & 1:
            late = f", {barrier.bytes} bytes not brought" if barrier.bytes else ""
            what = f"phase {phase & 1} of {barrier.name} ({barrier.pending} of {barrier.count} arrivals missing{late})"
            if self.scheduler is None or not self.scheduler.wait(self.me, f"{what} at line {place.line}"):
                raise Hazard("deadlock", f"waits for {what}, which nobody completes{self._others()}")
        if self.scheduler:
            self.scheduler.moved(self.me)
        for copy in barrier.ready:
            self.lds.land(copy)
        barrier.ready = []
        if self.lds.partitions is not None and barrier.released is not None:
            self.lds.partitions.acquired(self.me, barrier.released)
        self.lds.barrier()

    def close(self, program: tuple[int, ...]) -> list[Finding]:
        """The program ends: bytes that were brought and never expected."""
        out = []
        for barrier in self.table.values():
            if barrier.bytes < 0:
                p, what = barrier.place, f"{barrier.name} is brought {-barrier.bytes} bytes that nothing expects"
                out.append(Finding("mbarrier-bytes", what, "", p.file, p.line, p.column, program))
        return out

    def _others(self) -> str:
        if self.scheduler is None:
            return ""
        waiting = [
            f"partition {i} waits for {what}" for i, what in sorted(self.scheduler.waiting.items()) if i != self.me
        ]
        return "; " + ", ".join(waiting) if waiting else ""
