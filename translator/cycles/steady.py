"""The steady state of a loop that all waves of a compute unit walk."""

from __future__ import annotations

from dataclasses import dataclass

from rules.timing import Timing
from translator.cycles.walk import MOST_ITERATIONS, Deadlock, Walk, Wave

FEWEST_ITERATIONS = 8  # also of a loop that is so long that MOST_OPERATIONS would allow fewer
MOST_OPERATIONS = 80_000
STEADY = 0.002  # iterations that differ by less than this part, in the mean of a third of them, are steady enough
_TRACED = 3  # the last of the most iterations, which are walked anyway


@dataclass(frozen=True)
class Steady:
    """A loop in its steady state. cycles: of one iteration of a wave, in the mean. period: traced iterations per wave.

    waves: with their events of the traced iterations, if any. repeats: whether iterations come back exactly after `period`.
    """

    cycles: float
    period: int
    waves: tuple[Wave, ...]
    repeats: bool


def walk_loop(waves: list[Wave], timing: Timing, simds: int, traced: bool = True) -> Steady:
    """Iterate until iterations repeat or hardly differ, at most MOST_ITERATIONS times, tracing as many as repeat where they are to be `traced`.

    Raises: Deadlock.
    """
    walk = Walk(waves, timing, simds)
    affordable = MOST_OPERATIONS // sum(len(w.stream) for w in waves)
    most = max(FEWEST_ITERATIONS, min(affordable, MOST_ITERATIONS))
    iterations = period = 0
    first_traced = most - _TRACED
    while not period and iterations < most and not _settled(waves, iterations):
        walk.tracing = traced and iterations >= first_traced
        iterations += 1
        walk.advance(iterations)
        if any(len(w.starts) <= iterations for w in waves):
            raise Deadlock
        period = next((p for p in (1, 2, 3) if all(_repeats(w.starts[: iterations + 1], p) for w in waves)), 0)
    repeats, period = bool(period), period or 1
    if traced:
        walk.tracing = True
        # An iteration that is under way is not traced whole: the next ones are, and one more so that each has its end.
        walk.advance(min(iterations, first_traced) + 2 * period + 1)
        for wave in waves:
            del wave.events[period:]
    first = iterations - iterations // 3 if not repeats else iterations - period
    spans = [(w.starts[iterations] - w.starts[first]) / (iterations - first) for w in waves]
    return Steady(sum(spans) / len(spans), period, tuple(waves), repeats)


def _settled(waves: list[Wave], iterations: int) -> bool:
    """Whether the last third of the iterations took as long as the third before, but for STEADY."""
    third = iterations // 3
    if iterations < 2 * FEWEST_ITERATIONS or iterations % 3:
        return False
    ends = [sum(w.starts[n * third] for w in waves) for n in (1, 2, 3)]
    before, after = ends[1] - ends[0], ends[2] - ends[1]
    return abs(after - before) < STEADY * before


def _repeats(starts: list[float], period: int) -> bool:
    """Whether the last `period` iterations took exactly as long as those before, and those before them."""
    if len(starts) < 3 * period + 2:
        return False
    spans = [starts[-1 - n * period] - starts[-1 - (n + 1) * period] for n in range(3)]
    return spans[0] == spans[1] == spans[2]


def walk_once(waves: list[Wave], timing: Timing, simds: int) -> float:
    """Clocks until the last wave is through its stream once. Raises: Deadlock."""
    walk = Walk(waves, timing, simds, loop=False)
    walk.advance(1)
    if any(len(w.starts) < 2 for w in waves):
        raise Deadlock
    return max(w.starts[1] for w in waves)
