"""Shared memory of one program, with the state of every element.

An element is never written, valid, or in flight: the target of an asynchronous copy that no wait has covered yet. A copy
lands at the latest legal moment, when a wait covers it, so a missing wait is seen every time and not when a race happens to
hit. Barriers that the compiler inserts by itself (between plain stores, loads and copies) are taken as given; reads marked
`ttg.amdg.syncedViaAsyncWait` opt out of them, so refilling what such a read touched needs a wait or barrier in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable

import numpy as np

from translator.validate.dtypes import held
from translator.validate.hazards import Finding, Hazard, NotRunnable
from translator.ttgir.locations import Place
from translator.validate.ordering import Partitions, Stages

NEVER, VALID, FLYING = 0, 1, 2
STATES = {NEVER: "never written", FLYING: "in flight"}


@dataclass(frozen=True)
class Placed:
    """Where an allocation lies: `slots` from byte `begin`, one every `slot_bytes`, of which `used` hold data or padding between data.

    also: where further pieces of a partitioned one begin, each as large as the first.
    """

    begin: int
    slots: int
    slot_bytes: int
    used: int
    also: tuple[int, ...] = ()

    @property
    def begins(self) -> tuple[int, ...]:
        return (self.begin, *self.also)

    @property
    def size(self) -> int:
        """Bytes from the first to the last one of a piece."""
        return (self.slots - 1) * self.slot_bytes + self.used

    def overlaps(self, begin: int, end: int) -> bool:
        return any(first < end and begin < first + self.size for first in self.begins)


class Allocation:
    """One `ttg.local_alloc`. `read_epoch` is the barrier interval of each element's last relaxed read, -1 for none; `aliases` are those
    that name the same bytes (aliases.py)."""

    def __init__(
        self,
        name: str,
        element: str,
        shape: tuple[int, ...],
        place: Place,
        placed: Placed | None = None,
        layout: str = "",
    ):
        count = int(np.prod(shape))
        self.name, self.element, self.shape, self.place, self.placed = name, element, shape, place, placed
        self.data = np.full(count, np.nan if held(element).kind == "f" else 0, held(element))
        self.state = np.zeros(count, np.uint8)
        self.read_epoch = np.full(count, -1, np.int64)
        self.reading = np.zeros(count, bool)
        self.layout, self.aliases = layout, None

    def is_same(self, other: "Allocation | None") -> bool:
        """Whether both name the same bytes."""
        return self is other or other is not None and self.aliases is not None and self.aliases is other.aliases

    def where(self, index: int) -> str:
        """`a_smem[1, 3, 0]` for a flat index."""
        position = ", ".join(str(int(i)) for i in np.unravel_index(index, self.shape))
        return f"{self.name}[{position}]"


@dataclass(frozen=True)
class MemDesc:
    """A view: `index` holds the flat element of `allocation` behind each element of the view."""

    allocation: Allocation
    index: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.index.shape

    def extents(self) -> list[tuple[int, int]]:
        """First byte and end of each piece that the view covers, whole slots; nothing where the place is not known."""
        placed = self.allocation.placed
        if placed is None or not self.index.size:
            return []
        if placed.slots > 1 and self.index.ndim < len(self.allocation.shape):
            slot = int(self.index.flat[0]) // (self.allocation.data.size // placed.slots)
            skipped = slot * placed.slot_bytes
            return [(begin + skipped, begin + skipped + placed.used) for begin in placed.begins]
        return [(begin, begin + placed.size) for begin in placed.begins]


@dataclass(eq=False)
class Copy:
    """An asynchronous copy under way. A load sets `values` (and `written`, None for all); a store has `finish`.

    An `idle` one has no lane that is on: it is counted and waited for, and touches nothing.
    """

    place: Place
    op: str
    target: MemDesc
    values: np.ndarray | None = None
    written: np.ndarray | None = None
    finish: Callable[[], None] | None = None
    barrier: object = None
    idle: bool = False
    landed: bool = False


@dataclass
class Counter:
    """Copies that one kind of wait covers, oldest first. `open` are those that no commit has closed into a group."""

    groups: list[list[Copy]] = field(default_factory=list)
    open: list[Copy] = field(default_factory=list)


class SharedMemory:
    """Allocations and copies of one program. `waits` holds, per wait op, its place, how often it ran, how many groups it
    landed, and how often anything was under way. `siblings` are the views of all
    partitions of the program."""

    def __init__(self):
        self.epoch = 0
        self.async_copies = Counter()
        self.tensor_copies = Counter()
        self.waits: dict[int, list] = {}
        self.siblings: list[SharedMemory] = [self]
        self.partitions: Partitions | None = None
        self.me = 0
        self.stages = Stages()
        self.latest: dict[tuple[str, Placed], Allocation] = {}

    def partition(self) -> "SharedMemory":
        """The same memory for another partition: its copies and its barrier intervals are its own."""
        side = SharedMemory()
        side.waits = self.waits
        side.siblings = self.siblings
        self.siblings.append(side)
        return side

    def barrier(self) -> None:
        self.epoch += 1

    def allocate(
        self, name: str, element: str, shape, place: Place, placed: Placed | None = None, layout: str = ""
    ) -> MemDesc:
        allocation = Allocation(name, element, shape, place, placed, layout)
        if placed is not None:
            self.siblings[0].latest[(name, placed)] = allocation
        return MemDesc(allocation, np.arange(allocation.data.size, dtype=np.int64).reshape(shape))

    # Bytes that two owners use, one after the other.

    def use_scratch(self, begin: int, end: int) -> None:
        """An op uses these bytes for itself. Raises: Hazard when a copy under way still touches them."""
        self._check_reuse(begin, end, None)

    def _check_reuse(self, begin: int, end: int, owner: Allocation | None) -> None:
        for copy in self.under_way():
            a = copy.target.allocation
            if a.is_same(owner) or copy.idle or end == 0:
                continue
            for first, last in copy.target.extents():
                if first < end and begin < last:
                    shared = f"bytes {max(first, begin)} to {min(last, end)} of shared memory"
                    raise Hazard("lds-reuse-in-flight", f"uses {shared}, which belonged to {a.name}{_since(copy)}")

    def _check_readers(self, begin: int, end: int, owner: Allocation) -> None:
        """Raises: Hazard when a relaxed load of another allocation may still read these bytes."""
        for a in self.siblings[0].latest.values():
            if a.is_same(owner) or a.placed is None or not a.placed.overlaps(begin, end):
                continue
            if (a.read_epoch == self.epoch).any():
                raise Hazard(
                    "lds-overwrite-read",
                    f"fills bytes that belonged to {a.name}, read since the last barrier by a load that takes none",
                )

    # Plain accesses.

    def current(self, view: MemDesc) -> Allocation:
        """The allocation of a view, with what its bytes hold. Raises: NotRunnable where their order in time matters."""
        a = view.allocation
        if a.aliases is not None and a.aliases.current is not a:
            if self.partitions is not None or self.stages.inside:
                raise NotRunnable("ttg.memdesc_reinterpret", "of memory that partitions or pipeline stages share")
            a.aliases.turn_to(a)
        return a

    def load(self, view: MemDesc, relaxed: bool = False) -> np.ndarray:
        """Values of a view. Raises: Hazard for elements that are not valid."""
        a = self.current(view)
        state = a.state[view.index]
        if (state != VALID).any():
            self._report_read(view, state)
        self._ordered(view, writes=False)
        if relaxed:
            a.read_epoch[view.index] = self.epoch
        return a.data[view.index]

    def _ordered(self, view: MemDesc, writes: bool) -> None:
        """Raises: Hazard when another partition, or the other half of a warp pipeline, may touch the same elements meanwhile."""
        for order in (self.stages if self.stages.inside else None, self.partitions):
            if order is None:
                continue
            arguments = (view,) if order is self.stages else (self.me, view)
            (order.write if writes else order.read)(*arguments)

    def _report_read(self, view: MemDesc, state: np.ndarray) -> None:
        a = view.allocation
        bad = state != VALID
        kind = FLYING if (state == FLYING).any() else NEVER
        first = int(view.index[state == kind][0])
        count = f"{int(bad.sum())} of {bad.size} elements"
        if kind == NEVER:
            raise Hazard(
                "lds-uninitialised", f"reads {count} of {a.name} that were never written, first {a.where(first)}"
            )
        copy = self._copy_of(a, first)
        raise Hazard(
            "lds-in-flight", f"reads {count} of {a.name} still in flight, first {a.where(first)}{_since(copy)}"
        )

    def store(self, view: MemDesc, value: np.ndarray) -> None:
        a = self.current(view)
        self.check_overwrite(view, copying=False)
        self._ordered(view, writes=True)
        if self.stages.inside:
            self.stages.note(view, "stored")
        a.data[view.index] = value
        a.state[view.index] = VALID

    def check_overwrite(self, view: MemDesc, copying: bool) -> None:
        """Raises: Hazard when the elements are the target or the source of a copy under way, or still being read."""
        a = self.current(view)
        for begin, end in view.extents():
            self._check_reuse(begin, end, a)
            if copying:
                self._check_readers(begin, end, a)
        flying = a.state[view.index] == FLYING
        if flying.any():
            first = int(view.index[flying][0])
            what = f"overwrites {int(flying.sum())} elements of {a.name} still in flight, first {a.where(first)}"
            raise Hazard("lds-overwrite-in-flight", what + _since(self._copy_of(a, first)))
        if a.reading[view.index].any():
            raise Hazard(
                "lds-overwrite-source", f"overwrites elements of {a.name} that an asynchronous store still reads"
            )
        if copying and (a.read_epoch[view.index] == self.epoch).any():
            raise Hazard(
                "lds-overwrite-read",
                f"refills elements of {a.name} that were read since the last barrier by a load that takes none",
            )

    def _copy_of(self, a: Allocation, index: int) -> Copy | None:
        for copy in self.under_way():
            if copy.target.allocation is a and (copy.target.index == index).any():
                return copy
        return None

    def under_way(self):
        for side in self.siblings:
            for counter in (side.async_copies, side.tensor_copies):
                for group in (*counter.groups, counter.open):
                    yield from (copy for copy in group if not copy.landed)

    # Asynchronous copies.

    def issue(self, copy: Copy, counter: Counter) -> None:
        """Start a copy; it belongs to the open group of `counter`."""
        if copy.values is not None:
            target = copy.target
            if copy.written is not None and not copy.written.all():
                target = MemDesc(target.allocation, target.index[copy.written])
                copy.values = copy.values[copy.written]
                copy.target = target
            self.check_overwrite(target, copying=True)
            self._ordered(target, writes=True)
            target.allocation.state[target.index] = FLYING
        else:
            self.load(copy.target)
            copy.target.allocation.reading[copy.target.index] = True
        counter.open.append(copy)

    def commit(self, counter: Counter) -> None:
        counter.groups.append(counter.open)
        counter.open = []

    def wait(self, counter: Counter, outstanding: int, key, place: Place) -> None:
        """Land the oldest groups until `outstanding` are left; a barrier follows, as the AMD lowering emits it."""
        record = self.waits.setdefault(key, [place, 0, 0, 0])
        record[1] += 1
        record[3] += any(counter.groups) or bool(counter.open)
        while len(counter.groups) > outstanding:
            group = counter.groups.pop(0)
            record[2] += bool(group)
            for copy in group:
                self.land(copy)
        self.barrier()

    def land(self, copy: Copy) -> None:
        if copy.landed:
            return
        copy.landed = True
        a = self.current(copy.target)
        if self.stages.inside:
            # The wait stands before the stage that comes next.
            self.stages.note(copy.target, "landed", self.stages.now + 1)
        if copy.values is not None:
            a.data[copy.target.index] = copy.values
            a.state[copy.target.index] = VALID
        else:
            a.reading[copy.target.index] = False
            copy.finish()

    def close(self, program: tuple[int, ...], target: str = "") -> list[Finding]:
        """The program ends, and its shared memory goes to another one: a copy under way would read or write there.

        Copies to shared memory count in vmcnt on CDNA3 and CDNA4, for which S_ENDPGM waits (instruction set documents, S_ENDPGM); the
        counters of gfx1250 have no such promise.
        """
        out = []
        for copy in self.under_way():
            if not copy.finish and (copy.idle or target != "gfx1250"):
                continue
            kind, what = ("store", "store from") if copy.finish else ("load", "copy to")
            message = f"the asynchronous {what} {copy.target.allocation.name} is not waited for before the kernel ends"
            p = copy.place
            out.append(Finding(f"lds-{kind}-unwaited", message, copy.op, p.file, p.line, p.column, program))
        return out


def _since(copy: Copy | None) -> str:
    return f"; the {copy.op} at {copy.place.file}:{copy.place.line} has not been waited for" if copy else ""
