"""One iteration of every wave as a lane of spans, and lanes as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gluonize.judge.cycles.code.assembly import Line
from gluonize.judge.cycles.code.stream import LATENCY, LDS, MATRIX, MEMORY, TILE, VECTOR
from gluonize.judge.cycles.walk import (
    LDS_DATA, LDS_QUEUE, MEETING, MEMORY_DATA, MEMORY_QUEUE, PIPE, PORT, RESULT, Wave,
)  # fmt: skip

_WORK = {MATRIX: "matrix", VECTOR: "vector", LDS: "LDS", MEMORY: "memory", LATENCY: "memory", TILE: "memory"}
# What a span is -> its letter in the text.
LETTERS = {
    "matrix": "M",
    "vector": "v",
    "LDS": "r",
    "memory": "g",
    "other": "-",
    PIPE: "m",
    PORT: "p",
    LDS_QUEUE: "q",
    MEMORY_QUEUE: "Q",
    LDS_DATA: "l",
    MEMORY_DATA: "L",
    MEETING: "b",
    RESULT: "d",
}
COLUMNS = 96
TICK = 16  # columns between two numbers of the axis


@dataclass(frozen=True)
class Span:
    """From `start` to `end` clk of the iteration; what: kind of work, or the cause of a wait."""

    start: float
    end: float
    what: str
    place: str


@dataclass(frozen=True)
class Lane:
    """What one wave does in one iteration; clocks from the first wave's start of it."""

    wave: int
    simd: int
    spans: tuple[Span, ...]

    def placed(self, place: Callable[[str], str]) -> Lane:
        """The lane with other names of places."""
        return replace(self, spans=tuple(replace(span, place=place(span.place)) for span in self.spans))


def lanes_of(waves: Sequence[Wave], lines: Sequence[Line]) -> tuple[Lane, ...]:
    """The first traced iteration of each wave; neighbours of the same kind and source line are one span."""
    zero = min((w.events[0][0].start for w in waves if w.events), default=0.0)
    lanes = []
    for wave in waves:
        spans: list[Span] = []
        for event in wave.events[0] if wave.events else ():
            operation = wave.stream[event.at]
            place = lines[operation.line].statement
            _append(spans, event.start - zero, event.issued - zero, event.cause, place)
            _append(spans, event.issued - zero, event.end - zero, _WORK.get(operation.kind, "other"), place)
        lanes.append(Lane(wave.order, wave.simd, tuple(spans)))
    return tuple(lanes)


def _append(spans: list[Span], start: float, end: float, what: str, place: str) -> None:
    if end <= start:
        return
    last = spans[-1] if spans else None
    if last is not None and last.what == what and last.place == place and last.end == start:
        spans[-1] = Span(last.start, end, what, place)
    else:
        spans.append(Span(start, end, what, place))


def as_text(lanes: Sequence[Lane], columns: int = COLUMNS) -> list[str]:
    """An axis in clocks, then a row per wave: each column has the letter of what takes most of its time. A wait for a matrix pipe that works is `m`."""
    if not lanes:
        return []
    end = max(s.end for lane in lanes for s in lane.spans)
    width = end / columns
    ticks = range(0, columns, TICK)
    rows = ["clk     " + "".join(f"{n * width:<{TICK}.0f}" for n in ticks)]
    for lane in lanes:
        shares: list[dict[str, float]] = [{} for _ in range(columns)]
        for span in lane.spans:
            first, last = int(span.start // width), min(columns - 1, int(span.end // width))
            for n in range(first, last + 1):
                part = min(span.end, (n + 1) * width) - max(span.start, n * width)
                letter = LETTERS[span.what]
                shares[n][letter] = shares[n].get(letter, 0.0) + part
        row = "".join(max(sorted(x), key=lambda k: x[k]) if x else " " for x in shares)
        rows.append(f"wave {lane.wave:2d} {row}")
    return rows
