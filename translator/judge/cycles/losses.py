"""Where the time of a loop goes: the idle time of the matrix pipe, or the waves' time, by cause and by instruction."""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from gluonize.judge.cycles.code.stream import MATRIX
from gluonize.judge.cycles.walk import NOTHING, Event, Wave


@dataclass(frozen=True)
class Loss:
    """`clk` of one iteration lost at one instruction (`line`, an index in the program) for one cause."""

    line: int
    cause: str
    clk: float


def matrix_losses(waves: Sequence[Wave], simds: int) -> tuple[Loss, ...]:
    """Clocks per iteration in which matrix pipes are idle, by what the wave did that uses the pipe next; mean over SIMDs.

    A gap between matrix instructions belongs to the wave that ends it: to what it waited for meanwhile, or to the issue of
    what it executed. Largest first.
    """
    found: dict[tuple[int, str], float] = defaultdict(float)
    used = 0
    for simd in range(simds):
        own = [w for w in waves if w.simd == simd]
        if own and any(x.kind == MATRIX for x in own[0].stream):
            used += 1
            _gaps(own, found)
    return _sorted({key: clk / used for key, clk in found.items()})


def wave_losses(waves: Sequence[Wave]) -> tuple[Loss, ...]:
    """Clocks per iteration and wave by cause and instruction, issue included; mean over waves. Largest first."""
    found: dict[tuple[int, str], float] = defaultdict(float)
    for wave in waves:
        for event in (e for iteration in wave.events for e in iteration):
            line = wave.stream[event.at].line
            found[line, event.cause] += event.issued - event.start
            found[line, NOTHING] += event.end - event.issued
    iterations = sum(len(w.events) for w in waves) or 1
    return _sorted({key: clk / iterations for key, clk in found.items()})


def by_cause(losses: Sequence[Loss]) -> dict[str, float]:
    """Sums by cause, largest first."""
    sums: dict[str, float] = defaultdict(float)
    for loss in losses:
        sums[loss.cause] += loss.clk
    return dict(sorted(sums.items(), key=lambda x: (-x[1], x[0])))


def _sorted(found: dict[tuple[int, str], float]) -> tuple[Loss, ...]:
    losses = [Loss(line, cause, clk) for (line, cause), clk in found.items() if clk > 1e-9]
    return tuple(sorted(losses, key=lambda x: (-x.clk, x.line, x.cause)))


def _gaps(waves: list[Wave], found: dict[tuple[int, str], float]) -> None:
    """Add the idle gaps of one SIMD's pipe over the traced iterations of its first wave, per iteration.

    What the waves did before and after is taken to be what they do in these iterations.
    """
    first = min(waves, key=lambda w: w.order)
    begin, end = first.events[0][0].start, first.events[-1][-1].end
    streams = {w.order: _around(w, end - begin) for w in waves}
    owners = {w.order: w for w in waves}
    matrix = sorted(
        (event.issued, event.issued + wave.stream[event.at].clk, wave.order)
        for wave in waves
        for event in streams[wave.order]
        if wave.stream[event.at].kind == MATRIX
    )
    free = begin
    for issued, until, order in matrix:
        if until > begin and issued > free < end:
            _attribute(streams[order], owners[order], free, min(issued, end), found, len(first.events))
        free = max(free, until)


def _around(wave: Wave, span: float) -> list[Event]:
    """The traced events, the same a `span` earlier, and the same a span later."""
    own = [e for iteration in wave.events for e in iteration]
    return [
        Event(e.at, e.start + shift, e.issued + shift, e.end + shift, e.cause)
        for shift in (-span, 0.0, span)
        for e in own
    ]


def _attribute(events: list[Event], wave: Wave, begin: float, end: float, found: dict, iterations: int) -> None:
    """The interval, by what the wave did in it; what lies before its trace is left to its last instruction."""
    first = bisect.bisect_right(events, begin, key=lambda e: e.end)
    for event in itertools.takewhile(lambda e: e.start < end, itertools.islice(events, first, None)):
        line = wave.stream[event.at].line
        waited = min(event.issued, end) - max(event.start, begin)
        if waited > 0:
            found[line, event.cause] += waited / iterations
        issuing = min(event.end, end) - max(event.issued, begin)
        if issuing > 0:
            found[line, NOTHING] += issuing / iterations
