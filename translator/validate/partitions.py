"""`ttg.warp_specialize`: the default region and the partitions run as coroutines on one shared memory.

Each partition is a thread, but only the one that holds the turn runs; it gives the turn away where it waits for an mbarrier. The
turn goes round in a fixed order, so a run is reproducible; `SCHEDULES` orders are tried by the validation: each partition as far as it gets,
first to last and last to first, and a change at every arrival. When every live
partition waits and nothing can change, the program is deadlocked and the report says who waits for what.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from translator.validate.hazards import Hazard, NotRunnable
from translator.validate.ordering import Partitions
from translator.ttgir.module import Op

if TYPE_CHECKING:
    from translator.validate.engine import Program

SCHEDULES = ("forward", "backward", "alternating")


class _Abandoned(BaseException):
    """Unwinds a partition whose sibling failed."""


def abandoned(error: BaseException | None) -> bool:
    """Whether a coroutine ended only because another one failed."""
    return isinstance(error, _Abandoned)


class Scheduler:
    """Hands one turn round between `count` partitions."""

    def __init__(self, count: int, schedule: str):
        self.condition = threading.Condition()
        self.order = list(range(count))[:: -1 if schedule == "backward" else 1]
        self.alternating = schedule == "alternating"
        self.turn = self.order[0]
        self.waiting: dict[int, str] = {}
        self.done: set[int] = set()
        self.error: BaseException | None = None
        self.progress = 0
        self.seen: dict[int, int] = {}

    def start(self, me: int) -> None:
        with self.condition:
            self._await(me)

    def _await(self, me: int) -> None:
        self.condition.wait_for(lambda: self.turn == me or self.error is not None)
        if self.error is not None:
            raise _Abandoned

    def _next(self, me: int) -> int | None:
        position = self.order.index(me)
        for other in self.order[position + 1 :] + self.order[:position]:
            if other not in self.done:
                return other
        return None

    def wait(self, me: int, what: str) -> bool:
        """Let the others run; false when nobody has done anything since all of them began to wait."""
        with self.condition:
            self.waiting[me] = what
            live = [i for i in self.order if i not in self.done]
            if self.seen.get(me) == self.progress and all(
                i in self.waiting and self.seen.get(i) == self.progress for i in live
            ):
                return False
            self.seen[me] = self.progress
            following = self._next(me)
            if following is None:
                return False
            self.turn = following
            self.condition.notify_all()
            self._await(me)
            return True

    def pause(self, me: int) -> None:
        """After an arrival: where the schedule alternates, another partition goes on."""
        if not self.alternating:
            return
        with self.condition:
            following = self._next(me)
            if following is not None:
                self.turn = following
                self.condition.notify_all()
                self._await(me)

    def moved(self, me: int) -> None:
        """Something happened that another partition may wait for."""
        self.progress += 1
        self.waiting.pop(me, None)

    def finish(self, me: int, error: BaseException | None) -> None:
        with self.condition:
            self.done.add(me)
            self.waiting.pop(me, None)
            self.progress += 1
            if error is not None and not isinstance(error, _Abandoned):
                self.error = self.error or error
            following = self._next(me)
            if following is not None:
                self.turn = following
            self.condition.notify_all()


def run_partitions(program: "Program", op: Op, env: dict):
    """Run all regions to their ends; -> the values that the default region yields. Raises: Hazard, NotRunnable."""
    captures = [env[v] for v in op.captures]
    regions = [r for r in op.regions if r.head.startswith(("default", "partition"))]
    scheduler = Scheduler(len(regions), program.machine.schedule)
    order = Partitions(len(regions))
    results: list = [None] * len(regions)
    sides = [program if i == 0 else program.partition(r.warps or program.warps) for i, r in enumerate(regions)]

    def body(me: int) -> None:
        error: BaseException | None = None
        side, region = sides[me], regions[me]
        try:
            scheduler.start(me)
            side.take_turns(scheduler, me)
            side.lds.partitions, side.lds.me = order, me
            inner = env if me == 0 else {name: value for (name, _), value in zip(region.blocks[0].arguments, captures)}
            with np.errstate(all="ignore"):
                results[me] = side.run_region(region, inner)[1]
        except (Hazard, NotRunnable, _Abandoned) as raised:
            error = raised
        except BaseException as raised:  # handed to the thread that called, which raises it
            error = raised
        finally:
            scheduler.finish(me, error)

    threads = [threading.Thread(target=body, args=(i,), daemon=True) for i in range(len(regions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    program.take_turns(None, 0)
    program.lds.partitions = None
    if scheduler.error is not None:
        raise scheduler.error
    return results[0] or ()
