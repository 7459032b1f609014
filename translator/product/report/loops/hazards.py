"""What goes wrong in the slots of a pipelined loop, given what it does in order: its copies, waits and reads as events.

A loop is planned (`events_of` a schedule) or read from a text (`Replay.events`). Tile `i` is what iteration `i` reads. Events:

("copy", tile, slot), ("commit",)        an asynchronous copy, and the end of its commit group
("tensor", tile, slot, ring)             a copy of the tensor data mover, which has no group
("load", tile), ("store", tile, slot)    a tile that goes through registers, into ring BESIDE where others are copied
("wait", left), ("tensor_wait", left)    until at most so many groups, or copies of the data mover, are outstanding
("read", tile, slot), ("barrier",), ("drain", 0)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gluonize.loops.plan.schedule import BESIDE, Schedule

GROUPED = -1  # the ring that all copies with commit groups stand for


def events_of(schedule: Schedule, trips: int) -> Iterator[tuple]:
    """What one program of a planned loop does for `trips` iterations, in order."""
    for tile in range(schedule.prologue):
        yield from schedule.first(tile)
    for tile in range(trips):
        yield from schedule.iteration(tile)
    if schedule.copies:
        yield ("drain", 0)


class _Run:
    """What is in slots and registers, and what is under way, while a loop runs; found: what is wrong with it."""

    def __init__(self, trips: int):
        self.trips = trips
        self.found: list[str] = []
        self.slots: dict[tuple[int, int], int] = {}  # (ring, slot) -> tile whose data it holds or is about to
        self.groups: list[set[tuple[int, int]]] = []  # committed groups of (ring, tile) still outstanding, oldest first
        self.tensor: list[set[tuple[int, int]]] = []  # the same for copies of the tensor data mover, one each
        self.open_group: set[tuple[int, int]] = set()
        self.registers: dict[int, bool] = {}
        self.unread = dict.fromkeys(range(trips))
        self.read_since_barrier: set[int] = set()

    def fill(self, kind: str, tile: int, slot: int, ring: int = GROUPED) -> None:
        if self.slots.get((ring, slot)) in self.unread:
            self.found.append(f"tile {tile} overwrites slot {slot} before tile {self.slots[ring, slot]} is read")
        if kind != "store":
            if slot in self.read_since_barrier:
                self.found.append(f"tile {tile} refills slot {slot} with no barrier since it was read")
            if kind == "tensor":
                self.tensor.append({(ring, tile)})
            else:
                self.open_group.add((ring, tile))
        elif not self.registers.pop(tile, False):
            self.found.append(f"tile {tile} is stored before it is loaded")
        self.slots[ring, slot] = tile

    def commit(self) -> None:
        self.groups.append(self.open_group)
        self.open_group = set()

    def wait(self, kind: str, left: int) -> None:
        if left < 0:
            self.found.append(f"wait for {left} groups")
        under_way = self.tensor if kind == "tensor_wait" else self.groups
        waited = under_way[: max(0, len(under_way) - left)]
        if kind != "drain" and any(min(t for _, t in g) > self.trips - len(self.unread) for g in waited if g):
            self.found.append("a wait covers a tile that is read later only")
        del under_way[: len(waited)]
        if kind == "drain":
            self.tensor = []
        if kind != "tensor_wait":
            self.open_group = set()
        self.read_since_barrier = set()

    def read(self, tile: int, slot: int) -> None:
        slots = self.slots
        for ring in sorted({r for r, _ in slots}) or [GROUPED]:
            if slots.get((ring, slot)) != tile:
                self.found.append(f"iteration {tile} reads slot {slot}, which holds tile {slots.get((ring, slot))}")
            elif any((ring, tile) in g for g in [*self.groups, *self.tensor, self.open_group]):
                self.found.append(f"iteration {tile} reads slot {slot} before its copy is waited for")
        self.unread.pop(tile, None)
        self.read_since_barrier.add(slot)


def hazards(events: Iterable[tuple], trips: int) -> list[str]:
    """What is wrong with the events of a loop of `trips` iterations; empty when every read gets its tile.

    Found: a read of a slot that holds another tile or none, a read before the wait that covers its copy, an overwrite
    of a tile that is still to be read, a slot refilled with no barrier since its last read, a wait for more than the
    tile to be read, copies left in flight.
    """
    run = _Run(trips)
    for kind, *rest in events:
        if kind in ("copy", "store", "tensor"):
            run.fill(kind, *rest)
        elif kind == "load":
            run.registers[rest[0]] = True
        elif kind == "commit":
            run.commit()
        elif kind in ("wait", "tensor_wait", "drain"):
            run.wait(kind, rest[0])
        elif kind == "barrier":
            run.read_since_barrier = set()
        elif kind == "read":
            run.read(*rest)
    if run.groups or run.tensor or run.open_group:
        run.found.append("copies are in flight after the loop")
    return run.found


__all__ = ["GROUPED", "BESIDE", "events_of", "hazards"]
