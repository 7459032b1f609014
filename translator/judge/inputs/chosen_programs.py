"""Which programs of a grid run, and in which order or turns: what one costs decides how many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gluonize.judge.inputs.inputs import Inputs
from gluonize.judge.machine.engine import Machine
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.turns import MOST, TURNS

STEP_COST = 8.0  # microseconds per op, and per element of global traffic: measured on one core of a 2020s server
TRAFFIC_COST = 0.05
PAGE_COST = 100.0  # per page of a large storage: what is held grows by it
FEWEST = 2  # programs that are always run
FEWEST_TOGETHER = 16  # where they run at the same time: some that wait for others that wait
IN_ORDER, LAST_FIRST = "in order", "last first"


@dataclass(frozen=True)
class Programs:
    """Programs of a grid, and how they run: in order, the last one first, or at the same time by one of `TURNS`."""

    numbers: tuple[int, ...]
    order: str

    def dealt(self, numbers: np.ndarray | None) -> Programs:
        """Those that have other numbers along the first axis of the grid: `numbers`, by the number that these have; None for the same."""
        if numbers is None:
            return self
        extent = len(numbers)
        return Programs(tuple(n - n % extent + int(numbers[n % extent]) for n in self.numbers), self.order)

    def run(self, machine: Machine, arguments: list) -> None:
        if self.order in TURNS:
            machine.run_in_turns(arguments, list(self.numbers), self.order)
        else:
            machine.run(arguments, self.numbers if self.order == IN_ORDER else self.numbers[::-1])


def cost(machine: Machine, memory: Memory) -> float:
    """Microseconds that a machine has run for, by its estimate."""
    found = machine.work * STEP_COST + memory.traffic * TRAFFIC_COST + memory.pages() * PAGE_COST
    return max(found, 1.0)


def choose_programs(count: int, affordable: int) -> list[int]:
    """Programs to run, in order: all if affordable, else first, last and an even sample with fixed jitter."""
    wanted = max(FEWEST, affordable)
    if count <= wanted:
        return list(range(count))
    rng = np.random.default_rng(count)
    edges = np.linspace(0, count, wanted - 1).astype(int)
    inner = {int(rng.integers(a, max(b, a + 1))) for a, b in zip(edges[:-1], edges[1:])}
    return sorted(inner | {0, count - 1})


def together(count: int, inputs: Inputs, budget: float, each: float) -> int:
    """How many of the first of `count` programs run at the same time: of a variant, as many as its budget allows.

    each: microseconds of one, 0 where that is not known yet.
    """
    most = min(count, MOST)
    if not inputs.variant or not each:
        return most
    return min(most, max(FEWEST_TOGETHER, int(budget / each), 1 + max(inputs.programs, default=0)))
