"""One turn handed round between threads, so that a run of many is reproducible: partitions of a program, or programs of a launch.

Only the thread that holds the turn runs; it gives the turn away where it waits. The turn goes round in a fixed order. When every live
one waits and nothing has happened since all of them began to, nothing can change any more.
"""

from __future__ import annotations

import threading


class Abandoned(BaseException):
    """Unwinds a coroutine of which another one failed."""


def abandoned(error: BaseException | None) -> bool:
    """Whether a coroutine ended only because another one failed."""
    return isinstance(error, Abandoned)


class Scheduler:
    """Hands one turn round between `count` coroutines. gates: the lock of each, closed but when it has been handed the turn: handing
    it on wakes one thread, however many wait."""

    def __init__(self, count: int, schedule: str):
        self.order = list(range(count))[:: -1 if schedule == "backward" else 1]
        self.alternating = schedule == "alternating"
        self.gates = [threading.Lock() for _ in range(count)]
        for coroutine in self.order[1:]:
            self.gates[coroutine].acquire()
        self.waiting: dict[int, str] = {}
        self.done: set[int] = set()
        self.error: BaseException | None = None
        self.progress = 0
        self.seen: dict[int, int] = {}

    def start(self, me: int) -> None:
        self._await(me)

    def _await(self, me: int) -> None:
        self.gates[me].acquire()
        if self.error is not None:
            raise Abandoned

    def _next(self, me: int) -> int | None:
        position = self.order.index(me)
        for other in self.order[position + 1 :] + self.order[:position]:
            if other not in self.done:
                return other
        return None

    def wait(self, me: int, what: str) -> bool:
        """Let the others run; false when nobody has done anything since all of them began to wait."""
        self.waiting[me] = what
        live = (i for i in self.order if i not in self.done)
        if self.seen.get(me) == self.progress and all(
            i in self.waiting and self.seen.get(i) == self.progress for i in live
        ):
            return False
        self.seen[me] = self.progress
        return self._handed_on(me)

    def pause(self, me: int) -> None:
        """After an arrival: where the schedule alternates, another partition goes on."""
        if self.alternating:
            self.hand_on(me)

    def hand_on(self, me: int) -> None:
        """Give the turn to the next one, who need not do anything for this one to go on."""
        self._handed_on(me)

    def _handed_on(self, me: int) -> bool:
        """Whether there was another one to run meanwhile."""
        if self.error is not None:
            raise Abandoned
        following = self._next(me)
        if following is not None:
            self.gates[following].release()
            self._await(me)
        return following is not None

    def moved(self, me: int) -> None:
        """Something happened that another partition may wait for."""
        self.progress += 1
        self.waiting.pop(me, None)

    def finish(self, me: int, error: BaseException | None) -> None:
        """The end of a coroutine that has the turn, or that was abandoned: by then all the others were."""
        self.done.add(me)
        self.waiting.pop(me, None)
        self.progress += 1
        if self.error is not None:
            return
        if error is not None and not isinstance(error, Abandoned):
            self.error = error
            for other in self.order:
                if other not in self.done:
                    self.gates[other].release()
        elif (following := self._next(me)) is not None:
            self.gates[following].release()
