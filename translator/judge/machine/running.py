"""A program of the grid while it runs, as control flow sees it: the services of the engine that run blocks and count."""

from __future__ import annotations

from typing import Any, Protocol

from gluonize.judge.machine.coroutines import Scheduler
from gluonize.judge.machine.coverage import Ran
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.memory.lds import SharedMemory
from gluonize.judge.machine.turns import Turns
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Block, Op, Region


class Running(Protocol):
    """What `engine.Program` is to the handlers of `control.py` and `partitions.py`. machine: its `schedule` is the order of partitions."""

    machine: Any
    module: Module
    memory: Memory
    lds: SharedMemory
    ran: Ran
    turns: Turns | None
    frames: int
    warps: int

    def run_block(self, block: Block, env: dict) -> tuple[str, list]: ...
    def run_region(self, region: Region, env: dict) -> tuple[str, list]: ...
    def check_steps(self, op: Op) -> None: ...
    def partition(self, warps: int) -> Running: ...
    def absorb(self, side: Any) -> None: ...
    def take_turns(self, scheduler: Scheduler | None, me: int) -> None: ...
