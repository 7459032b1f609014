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
    """Hands one turn round between `count` coroutines."""

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
            raise Abandoned

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
        if self.alternating:
            self.hand_on(me)

    def hand_on(self, me: int) -> None:
        """Give the turn to the next one, who need not do anything for this one to go on."""
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
            if error is not None and not isinstance(error, Abandoned):
                self.error = self.error or error
            following = self._next(me)
            if following is not None:
                self.turn = following
            self.condition.notify_all()
