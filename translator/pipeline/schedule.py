"""The order of copies, waits and reads of a pipelined loop, as data, and an interpreter that finds its hazards.

Tile `i` is what iteration `i` of the loop reads. Three mechanisms:

* `copies`: asynchronous copies from global memory to LDS, one commit group per tile. `buffers` slots; the prologue
  copies tiles 0 .. buffers-2; iteration i waits until at most `wait` groups are outstanding, copies tile i + ahead
  and reads tile i. Copies of the tensor data mover have no groups: waits count `tensor_loads` operations per tile.
* `registers`: iteration i loads tile i + ahead to registers, reads tile i from its slot, and stores the registers to
  the slot of tile i + ahead at the end; barriers between reads and stores are the compiler's.
  Beside copies (`stored`), tiles that cannot be copied go this way, into slots like theirs.
  Where `refills` is set there is one slot: iteration i waits for tile i, reads it, and copies tile i + 1 after a barrier.
* `held`: iteration i takes tile i from a variable and loads tile i + ahead into it; no LDS.

Tiles past the last one are fetched masked out: they still occupy a slot and a commit group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

GROUPED = -1  # the ring that all copies with commit groups stand for
STORED = -2  # the ring of tiles that go through registers beside copies


@dataclass(frozen=True)
class Schedule:
    """`buffers` slots; `prologue` tiles fetched before the loop; iteration i fetches tile i + `ahead`.

    wait: commit groups that may be outstanding when tile i is read (copies only). read_shift: added to i before the
    slot is taken modulo `buffers`; write_shift: the same for a fetched tile. Both are 0 in a correct schedule.
    grouped: whether a tile has copies with a commit group; tensor_loads: its copies by the tensor data mover, of which
    `tensor_wait` may be outstanding when tile i is read. refills: copies come after the last read of the slot they fill.
    stored: whether a tile has parts that go through registers beside its copies.
    """

    mechanism: str
    buffers: int
    prologue: int
    ahead: int
    wait: int = 0
    read_shift: int = 0
    write_shift: int = 0
    grouped: bool = True
    tensor_loads: int = 0
    tensor_wait: int = 0
    refills: bool = False
    stored: bool = False

    def events(self, trips: int) -> Iterator[tuple]:
        """What one program does for `trips` iterations, in order."""
        copies = self.mechanism == "copies"
        for t in range(self.prologue):
            slot = (t + self.write_shift) % self.buffers
            yield from self._copies(t, slot) if copies else [("load", t), ("store", t, slot)]
            if self.stored:
                yield from [("load", t), ("store", t, slot, STORED)]
        for i in range(trips):
            fetched = i + self.ahead
            slot = (fetched + self.write_shift) % self.buffers
            if copies:
                if self.grouped:
                    yield ("wait", self.wait)
                if self.tensor_loads:
                    yield ("tensor_wait", self.tensor_wait)
                if not self.refills:
                    yield from self._copies(fetched, slot)
            elif self.mechanism == "registers":
                yield ("load", fetched)
            if self.stored:
                yield ("load", fetched)
            yield ("read", i, (i + self.read_shift) % self.buffers)
            if self.refills:
                yield ("barrier",)
                yield from self._copies(fetched, slot)
            if self.mechanism == "held":
                yield ("load", fetched)
            if not copies:
                yield ("store", fetched, slot)
            if self.stored:
                yield ("store", fetched, slot, STORED)
        if copies:
            yield ("drain", 0)

    def _copies(self, tile: int, slot: int) -> Iterator[tuple]:
        """All copies of one tile. The copies of a group go to one ring, those of the tensor data mover to one each."""
        if self.grouped:
            yield from [("copy", tile, slot), ("commit",)]
        yield from (("tensor", tile, slot, ring) for ring in range(self.tensor_loads))


def copy_schedule(buffers: int, tensor_loads: int = 0, grouped: bool = True, stored: bool = False) -> Schedule:
    ahead = buffers - 1
    return Schedule(
        "copies",
        buffers,
        ahead,
        ahead,
        ahead - 1,
        grouped=grouped,
        tensor_loads=tensor_loads,
        tensor_wait=(ahead - 1) * tensor_loads,
        stored=stored,
    )


def refill_schedule(tensor_loads: int, grouped: bool = False) -> Schedule:
    """One slot, which is filled again."""
    return Schedule("copies", 1, 1, 1, grouped=grouped, tensor_loads=tensor_loads, refills=True)


def held_schedule() -> Schedule:
    return Schedule("held", 1, 1, 1)


def register_schedule(buffers: int) -> Schedule:
    return Schedule("registers", buffers, buffers, buffers)


class _Run:
    """What is in slots and registers, and what is under way, while a schedule runs; found: what is wrong with it."""

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


def hazards(schedule: Schedule, trips: int) -> list[str]:
    """What is wrong with `schedule` for a loop of `trips` iterations; empty when every read gets its tile.

    Found: a read of a slot that holds another tile or none, a read before the wait that covers its copy, an overwrite
    of a tile that is still to be read, a slot refilled with no barrier since its last read, a wait for more than the
    tile to be read, copies left in flight.
    """
    run = _Run(trips)
    for kind, *rest in schedule.events(trips):
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
