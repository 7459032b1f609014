"""The order of copies, waits and reads of a pipelined loop, as data: one type for each way in which tiles come to their reads.

Tile `i` is what iteration `i` of the loop reads.

* `Copied`: asynchronous copies from global memory to LDS, one commit group per tile. `buffers` slots; the prologue
  copies tiles 0 .. buffers-2; iteration i waits until at most `wait` groups are outstanding, copies tile i + ahead
  and reads tile i. Copies of the tensor data mover have no groups: waits count `tensor_loads` operations per tile.
* `Refilled`: one slot; iteration i waits for tile i, reads it, and copies tile i + 1 after a barrier.
* `Stored`: iteration i loads tile i + ahead to registers, reads tile i from its slot, and stores the registers to
  the slot of tile i + ahead at the end; barriers between reads and stores are the compiler's.
  Beside copies (`Copied.stored`), tiles that cannot be copied go this way, into slots like theirs.
* `Held`: iteration i takes tile i from a variable and loads tile i + ahead into it; no LDS.
* `Once`: there is one iteration at most, whose tiles are fetched at its top.
* `Partitions` (`gluonize.loops.plan.partition_schedule`): some warps copy, the others read.

Tiles past the last one are fetched masked out: they still occupy a slot and a commit group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

BESIDE = -2  # the ring of tiles that go through registers beside copies, in events
Events = Iterator[tuple]


@dataclass(frozen=True)
class Schedule:
    """`buffers` slots; `prologue` tiles fetched before the loop; iteration i fetches tile i + `ahead`.

    mechanism: what brings tiles to their reads, in a word. copies: whether copies are under way that have to be waited for; in_slots:
    whether tiles that go through registers are all that lies in LDS.
    """

    buffers: int
    prologue: int
    ahead: int

    mechanism = ""
    copies = in_slots = grouped = stored = False
    tensor_loads = 0
    why_fewer = "LDS has no room for more"  # buffers than were asked for

    def first(self, tile: int) -> Events:
        """What fetches a tile before the loop, in order, as `gluonize.product.report.loops.hazards` names events."""
        raise NotImplementedError

    def iteration(self, tile: int) -> Events:
        """What the iteration that reads a tile does, in order."""
        raise NotImplementedError

    @property
    def waits(self) -> tuple[tuple[str, int], ...]:
        """The waits of an iteration: how many commit groups, and how many copies of the data mover, may be outstanding behind them."""
        return ()

    @property
    def steady(self) -> str:
        """What an iteration does, in words."""
        return f"load tile i + {self.ahead}, read tile i from slot i % {self.buffers}"

    def described(self) -> list[str]:
        """What happens before the loop, in it and behind it, in words."""
        first = f"tiles 0 to {self.prologue - 1}" if self.prologue > 1 else "tile 0"
        return [f"prologue: {first}", f"steady state: {self.steady}"]


@dataclass(frozen=True)
class _Copies(Schedule):
    """grouped: whether a tile has copies with a commit group; tensor_loads: its copies by the tensor data mover. wait: commit groups that may
    be outstanding when tile i is read; tensor_wait: so many copies by the tensor data mover."""

    grouped: bool = True
    tensor_loads: int = 0
    wait: int = 0
    tensor_wait: int = 0

    mechanism = "copies"
    copies = True

    def copied(self, tile: int) -> Events:
        """All copies of one tile. The copies of a group go to one ring, those of the tensor data mover to one each."""
        slot = tile % self.buffers
        if self.grouped:
            yield from [("copy", tile, slot), ("commit",)]
        yield from (("tensor", tile, slot, ring) for ring in range(self.tensor_loads))

    @property
    def waits(self) -> tuple[tuple[str, int], ...]:
        groups = (("wait", self.wait),) if self.grouped else ()
        return (*groups, ("tensor_wait", self.tensor_wait)) if self.tensor_loads else groups


@dataclass(frozen=True)
class Copied(_Copies):
    """stored: whether a tile has parts that go through registers beside its copies."""

    stored: bool = False

    def first(self, tile: int) -> Events:
        yield from self.copied(tile)
        if self.stored:
            yield from [("load", tile), ("store", tile, tile % self.buffers, BESIDE)]

    def iteration(self, tile: int) -> Events:
        fetched = tile + self.ahead
        yield from self.waits
        yield from self.copied(fetched)
        yield from [("load", fetched)] if self.stored else []
        yield ("read", tile, tile % self.buffers)
        yield from [("store", fetched, fetched % self.buffers, BESIDE)] if self.stored else []

    @property
    def steady(self) -> str:
        wait = f"wait for all but {self.wait} groups, " if self.grouped else ""
        wait += f"wait for all but {self.tensor_wait} tensor copies, " if self.tensor_loads else ""
        return f"{wait}copy tile i + {self.ahead}, read tile i from slot i % {self.buffers}"


@dataclass(frozen=True)
class Refilled(_Copies):
    """One slot, which is filled again behind its last read. reads_early: no operand is read after the others, so that it can be."""

    reads_early: bool = False

    why_fewer = "it is filled again after its last read"
    steady = "wait for the tile, read it, copy tile i + 1 behind its last read"

    def first(self, tile: int) -> Events:
        return self.copied(tile)

    def iteration(self, tile: int) -> Events:
        fetched = tile + self.ahead
        yield from self.waits
        yield from [("read", tile, tile % self.buffers), ("barrier",)]
        yield from self.copied(fetched)


@dataclass(frozen=True)
class Stored(Schedule):
    mechanism = "registers"
    in_slots = True

    def first(self, tile: int) -> Events:
        yield from [("load", tile), ("store", tile, tile % self.buffers)]

    def iteration(self, tile: int) -> Events:
        fetched = tile + self.ahead
        yield from [("load", fetched), ("read", tile, tile % self.buffers), ("store", fetched, fetched % self.buffers)]


@dataclass(frozen=True)
class Held(Schedule):
    mechanism = "held"
    steady = "load tile i + 1, take tile i"

    def first(self, tile: int) -> Events:
        yield from [("load", tile), ("store", tile, 0)]

    def iteration(self, tile: int) -> Events:
        fetched = tile + self.ahead
        yield from [("read", tile, 0), ("load", fetched), ("store", fetched, 0)]


@dataclass(frozen=True)
class Once(Schedule):
    """of: how the loop's tiles would travel if it had more of them."""

    of: Copied | Stored

    mechanism = property(lambda self: self.of.mechanism)
    copies = property(lambda self: self.of.copies)
    in_slots = property(lambda self: self.of.in_slots)
    grouped = property(lambda self: self.of.grouped)
    tensor_loads = property(lambda self: self.of.tensor_loads)
    stored = property(lambda self: self.of.stored)

    def first(self, tile: int) -> Events:
        return iter(())

    def iteration(self, tile: int) -> Events:
        yield from self.of.first(tile)
        yield from self.waits
        yield ("read", tile, 0)

    @property
    def waits(self) -> tuple[tuple[str, int], ...]:
        return self.of.waits

    def described(self) -> list[str]:
        return ["runs at most once: a branch, its tiles fetched at the top"]


def copy_schedule(buffers: int, tensor_loads: int = 0, grouped: bool = True, stored: bool = False) -> Copied:
    ahead = buffers - 1
    left = ahead - 1
    return Copied(
        buffers,
        prologue=ahead,
        ahead=ahead,
        grouped=grouped,
        tensor_loads=tensor_loads,
        wait=left,
        tensor_wait=left * tensor_loads,
        stored=stored,
    )


def refill_schedule(tensor_loads: int, grouped: bool = False, reads_early: bool = False) -> Refilled:
    return Refilled(1, 1, 1, grouped=grouped, tensor_loads=tensor_loads, reads_early=reads_early)


def held_schedule() -> Held:
    return Held(1, 1, 1)


def register_schedule(buffers: int) -> Stored:
    return Stored(buffers, buffers, buffers)


def at_once(schedule: Copied | Stored) -> Once:
    """The schedule of a loop that runs at most once, whose tiles travel as in `schedule`."""
    alone = {"wait": 0, "tensor_wait": 0} if isinstance(schedule, Copied) else {}
    return Once(1, 0, 0, replace(schedule, buffers=1, **alone))
