"""The schedule of a warp-specialized loop as data: what each partition does, what its barriers count, and what is wrong.

The producer copies tile t into slot t mod buffers once the slot is empty; the consumer reads it once it is ready. Loads
that are read together form a group with two barriers per slot: `ready` counts the lanes of the producer (the warps, for
copies of the tensor data mover), whose arrivals follow their copies, `empty` counts the lanes of the consumer. A barrier's phase flips when all have arrived; `wait(p)`
passes when the phase is not p, so waiting for the phase before the first one passes at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Partitions:
    """groups: names of the tiles that are copied and read together, in order. tensor: how many tiles of each group the
    tensor data mover copies: each warp arrives for each of them; lanes arrive once for all other copies of the group.

    The fields after `lanes` describe mistakes, and are what they are here in a correct schedule: shifts of the slot that
    is read or filled and of the phases waited for, arrivals that a barrier expects too many, and steps left out, as
    (partition, kind of event).
    """

    buffers: int
    groups: tuple[tuple[str, ...], ...]
    producer_warps: int
    consumer_warps: int
    lanes: int
    tensor: tuple[int, ...] = ()
    read_shift: int = 0
    write_shift: int = 0
    producer_phase: int = 1
    consumer_phase: int = 0
    ready_excess: int = 0
    empty_excess: int = 0
    omitted: tuple[tuple[str, str], ...] = ()

    mechanism = "partitions"
    prologue = 0
    ahead = 0
    wait = 0
    grouped = False
    tensor_loads = 0

    def _tensor(self, group: int) -> int:
        return self.tensor[group] if self.tensor else 0

    def ready_count(self, group: int) -> int:
        by_lanes = self.lanes if self._tensor(group) < len(self.groups[group]) else 0
        return self.producer_warps * (self._tensor(group) + by_lanes)

    def spelled_ready_count(self, group: int) -> str:
        """`ready_count` with what it is made of: warps times lanes, and warps times tensor copies."""
        tensor, warps = self._tensor(group), self.producer_warps
        terms = [f"{warps} * {self.lanes}"] if tensor < len(self.groups[group]) else []
        terms += [f"{warps} * {tensor}" if tensor > 1 and warps > 1 else f"{warps * tensor}"] if tensor else []
        return " + ".join(terms)

    @property
    def empty_count(self) -> int:
        return self.consumer_warps * self.lanes

    def producer(self, trips: int) -> Iterator[tuple]:
        for t in range(trips):
            slot, phase = t % self.buffers, t // self.buffers & 1
            for group in range(len(self.groups)):
                yield "wait", ("empty", group, slot), phase ^ self.producer_phase
                yield "copy", group, t, (t + self.write_shift) % self.buffers
                yield "arrive", ("ready", group, slot), self.ready_count(group)

    def consumer(self, trips: int) -> Iterator[tuple]:
        for t in range(trips):
            slot, phase = t % self.buffers, t // self.buffers & 1
            for group in range(len(self.groups)):
                yield "wait", ("ready", group, slot), phase ^ self.consumer_phase
                yield "read", group, t, (t + self.read_shift) % self.buffers
                yield "arrive", ("empty", group, slot), self.empty_count

    def expected(self, barrier: tuple) -> int:
        """What a barrier is initialised with."""
        if barrier[0] == "ready":
            return self.ready_count(barrier[1]) + self.ready_excess
        return self.empty_count + self.empty_excess

    def __str__(self) -> str:
        named = [f"{' and '.join(group)}" for group in self.groups]
        lines = [
            f"  producer: {self.producer_warps} warps; consumer: {self.consumer_warps} warps",
            f"  barriers per slot: {', '.join(f'ready and empty for {names}' for names in named)}",
            f"  arrivals at ready: {', '.join(map(self.spelled_ready_count, range(len(self.groups))))}, after the copies",
            f"  arrivals at empty: {self.consumer_warps} * {self.lanes}, after the reads",
            f"  tile t: slot t % {self.buffers}, phase t // {self.buffers} & 1; the producer waits for the phase before",
        ]
        return "\n".join(lines)


def hazards(partitions: Partitions, trips: int) -> list[str]:
    """What can go wrong in a loop of `trips` iterations in any order of the two partitions; empty when nothing can.

    Found: a read of a slot that holds another tile or one whose copy may not have landed, a copy over a tile that is
    still to be read, more arrivals at a barrier than it expects in a phase, and states in which nobody can go on.
    """
    left_out = partitions.omitted
    sides = [
        [e for e in events if (who, e[0]) not in left_out]
        for who, events in (("producer", partitions.producer(trips)), ("consumer", partitions.consumer(trips)))
    ]
    found: dict[str, None] = {}
    seen, todo = {(0, 0)}, [(0, 0)]
    while todo:
        state = todo.pop()
        arrived = _arrivals(sides, state)
        moved = False
        for me in (0, 1):
            if state[me] == len(sides[me]):
                continue
            event = sides[me][state[me]]
            if event[0] == "wait":
                count = arrived.get(event[1], 0)
                if count // partitions.expected(event[1]) & 1 == event[2]:
                    continue
            elif event[0] == "arrive":
                expected = partitions.expected(event[1])
                if arrived.get(event[1], 0) % expected + event[2] > expected:
                    found[f"{event[2]} arrivals at a barrier of {event[1][0]} slots that expects {expected}"] = None
            else:
                problem = _problem(partitions, sides, state, arrived, event)
                if problem:
                    found[problem] = None
            moved = True
            following = (state[0] + (me == 0), state[1] + (me == 1))
            if following not in seen:
                seen.add(following)
                todo.append(following)
        if not moved and state != (len(sides[0]), len(sides[1])):
            stuck = [who for who, side, at in zip(("producer", "consumer"), sides, state) if at < len(side)]
            found[f"deadlock: {' and '.join(stuck)} wait for ever"] = None
    return list(found)


def _arrivals(sides: list[list[tuple]], state: tuple[int, int]) -> dict[tuple, int]:
    total: dict[tuple, int] = {}
    for side, at in zip(sides, state):
        for event in side[:at]:
            if event[0] == "arrive":
                total[event[1]] = total.get(event[1], 0) + event[2]
    return total


def _problem(partitions: Partitions, sides, state, arrived, event: tuple) -> str:
    """What is wrong with a copy or a read in a state in which it may happen."""
    kind, group, tile, slot = event
    copied = [
        (e[2], at) for at, e in enumerate(sides[0][: state[0]]) if e[0] == "copy" and (e[1], e[3]) == (group, slot)
    ]
    read = {e[2] for e in sides[1][: state[1]] if e[0] == "read" and e[1] == group}
    if kind == "copy":
        if copied and copied[-1][0] not in read:
            return "the copy of a tile overwrites one that is still to be read"
        return ""
    if not copied or copied[-1][0] != tile:
        return "a read of a slot that holds another tile or none"
    # The copy is done when an arrival that follows it has completed a phase of its barrier.
    barrier = ("ready", group, tile % partitions.buffers)
    before = sum(e[2] for e in sides[0][: copied[-1][1]] if e[0] == "arrive" and e[1] == barrier)
    expected = partitions.expected(barrier)
    if arrived.get(barrier, 0) // expected <= before // expected:
        return "a read of a tile whose copy may not have landed"
    return ""
