"""The order of copies, waits and reads of a pipelined loop, as data, and an interpreter that finds its hazards.

Tile `i` is what iteration `i` of the loop reads. Two mechanisms:

* `copies`: asynchronous copies from global memory to LDS, one commit group per tile. `buffers` slots; the prologue
  copies tiles 0 .. buffers-2; iteration i waits until at most `wait` groups are outstanding, copies tile i + ahead
  and reads tile i.
* `registers`: iteration i loads tile i + ahead to registers, reads tile i from its slot, and stores the registers to
  the slot of tile i + ahead at the end; barriers between reads and stores are the compiler's.

Tiles past the last one are fetched masked out: they still occupy a slot and a commit group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """`buffers` slots; `prologue` tiles fetched before the loop; iteration i fetches tile i + `ahead`.

    wait: commit groups that may be outstanding when tile i is read (copies only). read_shift: added to i before the
    slot is taken modulo `buffers`; write_shift: the same for a fetched tile. Both are 0 in a correct schedule.
    """

    mechanism: str
    buffers: int
    prologue: int
    ahead: int
    wait: int = 0
    read_shift: int = 0
    write_shift: int = 0

    def events(self, trips: int) -> Iterator[tuple]:
        """What one program does for `trips` iterations, in order."""
        copies = self.mechanism == "copies"
        for t in range(self.prologue):
            slot = (t + self.write_shift) % self.buffers
            yield from [("copy", t, slot), ("commit",)] if copies else [("load", t), ("store", t, slot)]
        for i in range(trips):
            fetched = i + self.ahead
            slot = (fetched + self.write_shift) % self.buffers
            if copies:
                yield from [("wait", self.wait), ("copy", fetched, slot), ("commit",)]
            else:
                yield ("load", fetched)
            yield ("read", i, (i + self.read_shift) % self.buffers)
            if not copies:
                yield ("store", fetched, slot)
        if copies:
            yield ("drain", 0)


def copy_schedule(buffers: int) -> Schedule:
    return Schedule("copies", buffers, buffers - 1, buffers - 1, buffers - 2)


def register_schedule(buffers: int) -> Schedule:
    return Schedule("registers", buffers, buffers, buffers)


def hazards(schedule: Schedule, trips: int) -> list[str]:
    """What is wrong with `schedule` for a loop of `trips` iterations; empty when every read gets its tile.

    Found: a read of a slot that holds another tile or none, a read before the wait that covers its copy, an overwrite
    of a tile that is still to be read, a slot refilled with no barrier since its last read, a wait for more than the
    tile to be read, copies left in flight.
    """
    found: list[str] = []
    slots: dict[int, int] = {}  # slot -> tile whose data it holds or is about to
    groups: list[set[int]] = []  # committed groups still outstanding, oldest first
    open_group: set[int] = set()
    registers: dict[int, bool] = {}
    unread = dict.fromkeys(range(trips))
    read_since_barrier: set[int] = set()
    for event in schedule.events(trips):
        kind = event[0]
        if kind in ("copy", "store"):
            _, tile, slot = event
            if slot in slots and slots[slot] in unread:
                found.append(f"tile {tile} overwrites slot {slot} before tile {slots[slot]} is read")
            if kind == "copy":
                if slot in read_since_barrier:
                    found.append(f"tile {tile} refills slot {slot} with no barrier since it was read")
                open_group.add(tile)
            elif not registers.pop(tile, False):
                found.append(f"tile {tile} is stored before it is loaded")
            slots[slot] = tile
        elif kind == "load":
            registers[event[1]] = True
        elif kind == "commit":
            groups.append(open_group)
            open_group = set()
        elif kind in ("wait", "drain"):
            if event[1] < 0:
                found.append(f"wait for {event[1]} groups")
            waited = groups[: max(0, len(groups) - event[1])]
            if kind == "wait" and any(min(g) > trips - len(unread) for g in waited if g):
                found.append("a wait covers a tile that is read later only")
            open_group = set()
            groups = groups[len(groups) - event[1] :] if event[1] > 0 else []
            read_since_barrier = set()
        elif kind == "read":
            _, tile, slot = event
            if slots.get(slot) != tile:
                found.append(f"iteration {tile} reads slot {slot}, which holds tile {slots.get(slot)}")
            elif any(tile in g for g in [*groups, open_group]):
                found.append(f"iteration {tile} reads slot {slot} before its copy is waited for")
            unread.pop(tile, None)
            read_since_barrier.add(slot)
    if groups or open_group:
        found.append("copies are in flight after the loop")
    return found
