"""Hardware barriers in shared memory (gfx1250): a count of pending arrivals and a phase bit."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from translator.validate.hazards import Hazard
from translator.validate.lds import Copy, MemDesc
from translator.ttgir.locations import Place


@dataclass
class Barrier:
    """`pending` arrivals until the phase flips. Copies that signal it are `ready` then, and land when somebody waits.

    `made` is the barrier interval of the initialisation; the warps see it after the next workgroup barrier. `arrived` joins the
    clocks of all arrivals so far, `released` those of the completed phases.
    """

    name: str
    count: int
    pending: int
    made: int
    phase: int = 0
    copies: list[Copy] = field(default_factory=list)
    ready: list[Copy] = field(default_factory=list)
    arrived: np.ndarray | None = None
    released: np.ndarray | None = None


class Barriers:
    """The barriers of one program, as one partition (number `me` of `scheduler`) sees them; `table` is common to all."""

    def __init__(self, lds, warps: int, table: dict | None = None):
        self.lds = lds
        self.warps = warps
        self.table: dict[tuple[int, int], Barrier] = {} if table is None else table
        self.scheduler = None
        self.me = 0

    def _find(self, view: MemDesc) -> Barrier:
        key = (id(view.allocation), int(view.index.reshape(-1)[0]))
        if key not in self.table:
            raise Hazard(
                "mbarrier-uninitialised", f"{view.allocation.name} is used as a barrier before it was initialised"
            )
        barrier = self.table[key]
        if barrier.made >= self.lds.siblings[0].epoch:
            raise Hazard(
                "mbarrier-unpublished", f"no workgroup barrier between the initialisation of {barrier.name} and its use"
            )
        return barrier

    def init(self, view: MemDesc, count: int) -> None:
        """`count` is above 0, as the compiler verifies. Raises: Hazard for a barrier that is in use."""
        for index in view.index.reshape(-1):
            old = self.table.get((id(view.allocation), int(index)))
            if old is not None and (old.pending != old.count or old.copies or old.ready):
                raise Hazard(
                    "mbarrier-reinitialised", f"{old.name} is initialised again while a phase of it is under way"
                )
        for index in view.index.reshape(-1):
            self.table[(id(view.allocation), int(index))] = self._new(view, int(index), count)

    def _new(self, view: MemDesc, index: int, count: int) -> Barrier:
        return Barrier(view.allocation.where(index), count, count, self.lds.epoch)

    def attach(self, copy: Copy) -> None:
        """A copy that signals its barrier when it is done: one arrival per warp."""
        barrier = self._find(copy.barrier)
        barrier.copies.append(copy)
        self._arrived(barrier, self.warps)

    def attach_all(self, view: MemDesc, copies: list[Copy], count: int) -> None:
        """`count` arrivals when all of `copies` are done."""
        barrier = self._find(view)
        barrier.copies += copies
        self._arrived(barrier, count)

    def arrive(self, view: MemDesc, count: int) -> int:
        barrier = self._find(view)
        before = barrier.phase
        self._arrived(barrier, count)
        return before

    def _arrived(self, barrier: Barrier, count: int) -> None:
        if count > barrier.pending:
            raise Hazard(
                "mbarrier-underflow", f"{count} arrivals at {barrier.name}, which expects {barrier.pending} more"
            )
        barrier.pending -= count
        order = self.lds.partitions
        if order is not None:
            clock = order.released(self.me)
            barrier.arrived = clock if barrier.arrived is None else np.maximum(barrier.arrived, clock)
        if self.scheduler:
            self.scheduler.moved(self.me)
        if barrier.pending == 0:
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
            what = f"phase {phase & 1} of {barrier.name} ({barrier.pending} of {barrier.count} arrivals missing)"
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

    def _others(self) -> str:
        if self.scheduler is None:
            return ""
        waiting = [
            f"partition {i} waits for {what}" for i, what in sorted(self.scheduler.waiting.items()) if i != self.me
        ]
        return "; " + ", ".join(waiting) if waiting else ""
