"""A program of the grid while it runs, as control flow sees it: the services of the engine that run blocks and count."""

from __future__ import annotations

from typing import Any, Protocol

from translator.ttgir.module import Module
from translator.ttgir.op import Block, Op, Region
from translator.validate.coroutines import Scheduler
from translator.validate.coverage import Ran
from translator.validate.lds import SharedMemory
from translator.validate.memory import Memory
from translator.validate.turns import Turns


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
