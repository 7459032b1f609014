"""Programs that wait for each other: all programs of a launch as coroutines, one of which has the turn.

A program gives the turn away where it spins (an iteration of a `while` that changed nothing) and, by some schedules, before atomic
operations and volatile loads. When every live program spins and nobody changes memory, they are deadlocked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gluonize.judge.machine.coroutines import Scheduler, abandoned
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.shared_access import inside, is_shared
from gluonize.trace.model.module import Module

FORWARD, BACKWARD, ALTERNATING, DRAWN = "forward", "backward", "alternating", "drawn"
TURNS = (FORWARD, BACKWARD, ALTERNATING, DRAWN)
MOST = 128  # programs at once
SEED = 11


@dataclass
class _Shared:
    """What the programs of one run have in common. changes: of memory when the scheduler last heard of it."""

    scheduler: Scheduler
    memory: Memory
    schedule: str
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(SEED))
    changes: int = 0


class Turns:
    """The turn of one program. number: its place in the grid."""

    def __init__(self, shared: _Shared, me: int, number: int):
        self.shared, self.me, self.number = shared, me, number

    def begin(self) -> None:
        self.shared.scheduler.start(self.me)
        self.shared.memory.program = self.number

    def wait(self, what: str) -> bool:
        """Let the others run; false when nobody can do anything any more."""
        shared = self.shared
        if shared.memory.changes != shared.changes:
            shared.changes = shared.memory.changes
            shared.scheduler.progress += 1
        gone_on = shared.scheduler.wait(self.me, what)
        shared.memory.program = self.number
        return gone_on

    def gone_on(self) -> None:
        """This program no longer spins."""
        self.shared.scheduler.waiting.pop(self.me, None)

    def let_others(self) -> None:
        """Let the others run in a loop that counts, or has just read something new: it may end by itself."""
        self.gone_on()
        self.shared.scheduler.hand_on(self.me)
        self.shared.memory.program = self.number

    def switch(self) -> None:
        """Before an access that others may see: by some schedules another program goes on."""
        shared = self.shared
        if shared.schedule == ALTERNATING or shared.schedule == DRAWN and shared.rng.integers(2):
            shared.scheduler.pause(self.me)
            shared.memory.program = self.number


def spins(module: Module) -> bool:
    """Whether a loop of a module looks at memory that others change."""
    return any(
        op.name == "tt.atomic_poll" or op.name == "scf.while" and any(map(is_shared, inside(op)))
        for op in module.walk()
    )


def run_in_turns(memory: Memory, programs: list[int], schedule: str, run: Callable[[int, Turns], None]) -> None:
    """Call `run(program, turns)` for every program, each in a thread of its own of which one runs at a time.

    Raises: what the first program that fails raises.
    """
    scheduler = Scheduler(len(programs), BACKWARD if schedule == BACKWARD else ALTERNATING)
    scheduler.alternating = schedule in (ALTERNATING, DRAWN)
    shared = _Shared(scheduler, memory, schedule)

    def body(me: int, number: int) -> None:
        error: BaseException | None = None
        turns = Turns(shared, me, number)
        try:
            turns.begin()
            with np.errstate(all="ignore"):
                run(number, turns)
        except BaseException as raised:  # handed to the thread that called, which raises it
            error = raised
        finally:
            scheduler.finish(me, None if abandoned(error) else error)

    threads = [threading.Thread(target=body, args=pair, daemon=True) for pair in enumerate(programs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if scheduler.error is not None:
        raise scheduler.error
