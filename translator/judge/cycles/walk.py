"""All waves of a compute unit walk their streams in order, each instruction as soon as its wave and its unit are free.

The wave that is furthest behind goes next, of equals the one with the higher priority, then the one that waited longest. When a unit
(vector port, matrix pipe, a queue of LDS or memory) is not free then, the wave tries again when it is, so that nothing is taken ahead
of its time. A counter that is waited for and a barrier hold the wave as well.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from gluonize.rules.timing import Timing
from gluonize.judge.cycles.code.stream import (
    ARRIVE, BARRIER, COUNTERS, ISSUE, LATENCY, LDS, MATRIX, MEET, MEMORY, PRIORITY, TILE, VECTOR, WAIT, Operation,
)  # fmt: skip

# What a wave was held by.
NOTHING, PIPE, PORT, LDS_QUEUE, MEMORY_QUEUE, LDS_DATA, MEMORY_DATA, MEETING, RESULT = (
    "issue",
    "matrix pipe",
    "vector port",
    "LDS queue",
    "memory queue",
    "LDS data",
    "memory data",
    "barrier",
    "result",
)
MOST_ITERATIONS = 24
_CAUSE_OF_COUNTER = (MEMORY_DATA, MEMORY_DATA, LDS_DATA, MEMORY_DATA, MEMORY_DATA, MEMORY_DATA)


_LEADING_BARRIER = Operation(BARRIER, -1, 0)


@dataclass(frozen=True, slots=True)
class Event:
    """One operation of a wave: ready at `start`, issued at `issued`, the wave goes on at `end`; `cause` held it in between."""

    at: int
    start: float
    issued: float
    end: float
    cause: str


@dataclass(slots=True)
class Wave:
    """order: in the workgroup and beyond; simd: that it runs on; group: its workgroup on the compute unit.

    lead: barriers that it passes before its stream, and other waves of its workgroup do not.
    """

    order: int
    simd: int
    group: int
    stream: tuple[Operation, ...]
    lead: int = 0
    time: float = 0.0
    at: int = 0
    begun: bool = False
    cause: str = NOTHING
    priority: int = 0
    counters: list = field(default_factory=lambda: [deque() for _ in range(COUNTERS)])
    starts: list[float] = field(default_factory=list)
    ready: dict[int, float] = field(default_factory=dict)
    latest: float = 0.0  # of what is in `ready`
    arrived: int = 0
    met: int = 0
    events: list[list[Event]] = field(default_factory=list)


class Deadlock(Exception):
    """Waves wait for a barrier that others never reach: the streams do not belong together."""


class Walk:
    """The state of one compute unit."""

    def __init__(self, waves: list[Wave], timing: Timing, simds: int, loop: bool = True):
        self.waves, self.timing, self.loop = waves, timing, loop
        self.matrix_free = [0.0] * simds
        self.shadow_until = [0.0] * simds
        self.memory_shadow_until = self.shadow_until if timing.memory_shadow else [0.0] * simds
        self.vector_free = [0.0] * simds
        self.memory_port = [0.0] * simds
        self.lds_free = 0.0
        self.lds_queue: list[deque[float]] = [deque() for _ in range((simds + 1) // 2)]
        self.memory_free = 0.0
        self.memory_queue: deque[float] = deque()
        self.in_flight: deque[tuple[float, float]] = deque()
        self.in_flight_size = 0.0
        self.released: list[list[float]] = [[] for _ in range(1 + max(w.group for w in waves))]
        self.members = [[w for w in waves if w.group == g] for g in range(len(self.released))]
        self.blocked: list[Wave] = []
        self.tracing = False
        self.cause = NOTHING
        self.iterations = self.behind = 0  # how many are asked for, and waves that have not begun as many
        # Each gives (issued, the wave goes on), or when to try again, or None: held by others.
        self.handlers: dict[int, Callable[[Wave, Operation, float], tuple[float, float] | float | None]] = {
            ISSUE: self._issue,
            VECTOR: self._vector,
            MATRIX: self._matrix,
            LDS: self._lds,
            MEMORY: self._memory,
            WAIT: self._wait,
            BARRIER: self._barrier,
            ARRIVE: self._arrive,
            MEET: self._meet,
            PRIORITY: self._priority,
            LATENCY: self._latency,
            TILE: self._tile,
        }
        self.heap = [(w.time, 0, w.time, w.order, w) for w in waves]
        heapq.heapify(self.heap)

    def advance(self, iterations: int) -> None:
        """Until every wave has begun `iterations` iterations beyond the first (or has ended, without a loop)."""
        heap, handlers = self.heap, self.handlers
        self.iterations = iterations
        self.behind = sum(len(w.starts) <= iterations for w in self.waves)
        while heap and self.behind:
            time, _, _, _, wave = heapq.heappop(heap)
            if wave.lead:
                operation = _LEADING_BARRIER
            elif wave.at == 0 and not wave.begun and not self._begin(wave):
                continue
            else:
                operation = wave.stream[wave.at]
            self.cause = wave.cause
            found = handlers[operation.kind](wave, operation, time)
            if found.__class__ is tuple:
                self._done(wave, *found)
            elif found is None:
                self.blocked.append(wave)
            else:
                wave.cause = self.cause
                heapq.heappush(heap, (found, -wave.priority, wave.time, wave.order, wave))

    def _begin(self, wave: Wave) -> bool:
        wave.begun = True
        wave.starts.append(wave.time)
        self.behind -= len(wave.starts) == self.iterations + 1
        if self.blocked and len(wave.starts) > min(len(w.starts) for w in self.blocked) + MOST_ITERATIONS:
            raise Deadlock
        if not self.loop and len(wave.starts) > 1:
            return False
        if self.tracing:
            wave.events.append([])
        return True

    def _done(self, wave: Wave, issued: float, end: float) -> None:
        if self.tracing and wave.events:
            wave.events[-1].append(Event(wave.at, wave.time, issued, end, self.cause))
        wave.time, wave.cause = end, NOTHING
        if wave.lead:
            wave.lead -= 1
        else:
            wave.at += 1
        if wave.at == len(wave.stream):
            wave.at, wave.begun = 0, False
        heapq.heappush(self.heap, (end, -wave.priority, end, wave.order, wave))

    def _hold(self, now: float, until: float, cause: str) -> float:
        """The later of the two, with the cause of the delay kept."""
        if until > now:
            self.cause = cause
            return until
        return now

    def _issue(self, wave: Wave, operation: Operation, now: float) -> tuple[float, float]:
        return now, now + operation.issue

    def _priority(self, wave: Wave, operation: Operation, now: float) -> tuple[float, float]:
        wave.priority = operation.level
        return now, now + operation.issue

    def _results(self, wave: Wave, operation: Operation, now: float) -> float:
        if wave.latest <= now:
            return now
        ready = wave.ready
        for register in operation.reads:
            if (at := ready.get(register)) is not None and at > now:
                now = self._hold(now, at, RESULT)
        return now

    def _written(self, wave: Wave, operation: Operation, at: float) -> None:
        """Results that are there at `at`."""
        for register in operation.writes:
            wave.ready[register] = at
        if at > wave.latest:
            wave.latest = at

    def _vector(self, wave: Wave, operation: Operation, now: float) -> tuple[float, float] | float:
        simd = wave.simd
        free = now
        if (at := self.vector_free[simd]) > free:
            free, self.cause = at, PORT
        if (at := self.shadow_until[simd]) > free:
            free, self.cause = at, PIPE
        if operation.exclusive and (at := self.matrix_free[simd]) > free:
            free, self.cause = at, PIPE
        if operation.reads and wave.latest > free:
            free = self._results(wave, operation, free)
        if free > now:
            return free
        if operation.writes:
            self._written(wave, operation, now + operation.latency)
        self.vector_free[simd] = now + operation.clk
        return now, now + operation.issue

    def _matrix(self, wave: Wave, operation: Operation, now: float) -> tuple[float, float] | float:
        simd = wave.simd
        free = self._hold(now, self.matrix_free[simd], PIPE)
        if operation.exclusive:
            free = self._hold(free, self.vector_free[simd], PORT)
        if operation.reads:
            free = self._results(wave, operation, free)
        if free > now:
            return free
        self._written(wave, operation, now + operation.latency)
        self.matrix_free[simd] = now + operation.clk
        self.shadow_until[simd] = now + operation.shadow
        return now, now + operation.issue

    def _port(self, wave: Wave, now: float, queue: deque[float], room: int, cause: str) -> float:
        """When the port to LDS and memory of the wave's SIMD is free, and `queue` has room."""
        simd, free = wave.simd, now
        if (at := self.memory_port[simd]) > free:
            free, self.cause = at, PORT
        if (at := self.memory_shadow_until[simd]) > free:
            free, self.cause = at, PIPE
        while queue and queue[0] <= now:
            queue.popleft()
        if len(queue) >= room and (at := queue[len(queue) - room]) > free:
            free, self.cause = at, cause
        return free

    def _lds(self, wave: Wave, operation: Operation, now: float) -> tuple[float, float] | float:
        queue = self.lds_queue[wave.simd // 2]
        free = self._port(wave, now, queue, self.timing.lds_queue, LDS_QUEUE)
        if free > now:
            return free
        served = self.lds_free = max(now, self.lds_free) + operation.clk
        queue.append(served)
        self._count(wave, operation, served + self.timing.lds_latency)
        self.memory_port[wave.simd] = now + operation.issue
        return now, now + operation.issue

    def _memory(self, wave: Wave, operation: Operation, now: float) -> tuple[float, float] | float:
        queue = self.memory_queue
        free = self._port(wave, now, queue, self.timing.memory_queue, MEMORY_QUEUE)
        if free > now:
            return free
        start = self._moved(now, operation.clk, operation.size)
        queue.append(start)
        self._count(wave, operation, start + operation.clk + self.timing.memory_latency)
        self.memory_port[wave.simd] = now + operation.issue
        return now, now + operation.issue

    def _moved(self, now: float, clk: float, size: float) -> float:
        """When the memory unit, which is taken for `clk`, begins with `size` KiB."""
        start = max(now, self.memory_free)
        flying = self.in_flight
        while flying and (flying[0][0] <= start or self.in_flight_size + size > self.timing.in_flight):
            back, other = flying.popleft()
            self.in_flight_size -= other
            start = max(start, back)
        self.memory_free = start + clk
        flying.append((start + clk + self.timing.memory_latency, size))
        self.in_flight_size += size
        return start

    def _tile(self, wave: Wave, operation: Operation, now: float) -> tuple[float, float]:
        """The wave goes on; the tile arrives as requests of a KiB each, the last of which counts."""
        requests = max(1, round(operation.size))
        clk = operation.clk / requests
        start = [self._moved(now, clk, operation.size / requests) for _ in range(requests)][-1]
        self._count(wave, operation, start + clk + self.timing.memory_latency)
        return now, now + operation.issue

    def _latency(self, wave: Wave, operation: Operation, now: float) -> tuple[float, float]:
        self._count(wave, operation, now + (operation.clk or self.timing.memory_latency))
        return now, now + operation.issue

    def _count(self, wave: Wave, operation: Operation, back: float) -> None:
        """Accesses of one counter return in the order they were made."""
        queue = wave.counters[operation.counter]
        queue.append(max(back, queue[-1]) if queue else back)

    def _wait(self, wave: Wave, operation: Operation, now: float) -> tuple[float, float]:
        for counter, allowed in operation.waits:
            queue = wave.counters[counter]
            while len(queue) > allowed:
                now = self._hold(now, queue.popleft(), _CAUSE_OF_COUNTER[counter])
        return now, now + operation.issue

    def _barrier(self, wave: Wave, operation: Operation, now: float) -> tuple[float, float] | None:
        if wave.arrived == wave.met:
            self._arrive(wave, operation, now)
        return self._meet(wave, operation, now)

    def _arrive(self, wave: Wave, operation: Operation, now: float) -> tuple[float, float]:
        """Count the wave in; the last one lets the others go."""
        wave.arrived += 1
        group = self.members[wave.group]
        released = self.released[wave.group]
        if wave.arrived > len(released) and all(w.arrived > len(released) for w in group):
            released.append(now + self.timing.barrier)
            for other in [w for w in self.blocked if w.group == wave.group]:
                self.blocked.remove(other)
                heapq.heappush(self.heap, (other.time, -other.priority, other.time, other.order, other))
        return now, now + operation.issue

    def _meet(self, wave: Wave, operation: Operation, now: float) -> tuple[float, float] | None:
        released = self.released[wave.group]
        if wave.met >= len(released):
            return None
        now = self._hold(now, released[wave.met], MEETING)
        wave.met += 1
        return now, now + operation.issue
