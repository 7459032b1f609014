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

from gluonize.judge.machine.hazards import Finding, Hazard, NotRunnable, Report, stop
from gluonize.judge.machine.memory.clusters import Cluster, is_spread
from gluonize.judge.machine.memory.ordering import Partitions, Stages
from gluonize.judge.machine.memory.views import FLYING, NEVER, VALID, Allocation, MemDesc, Placed
from gluonize.trace.model.attributes import Attribute
from gluonize.trace.model.locations import Place


@dataclass(eq=False)
class Copy:
    """An asynchronous copy under way. A load sets `values` (and `written`, None for all); a store has `finish`.

    An `idle` one has no lane that is on: it is counted and waited for, and touches nothing. by: the agent that makes it (ordering.py), None
    for the partition itself; clock: what the agent knew when it was started.
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
    by: int | None = None
    clock: np.ndarray | None = None


@dataclass
class Counter:
    """Copies that one kind of wait covers, oldest first. `open` are those that no commit has closed into a group."""

    groups: list[list[Copy]] = field(default_factory=list)
    open: list[Copy] = field(default_factory=list)


class SharedMemory:
    """Allocations and copies of one program. `waits` holds, per wait op, its place, how often it ran, how many groups it
    landed, and how often anything was under way. `siblings` are the views of all
    partitions of the program. report(hazard): raises it, or notes it and lets the program go on in its own order. in_program_order: a copy to
    global memory is done where it stands, and still reads shared memory until it is waited for.
    """

    def __init__(self, report: Report = stop, in_program_order: bool = False):
        self.report, self.in_program_order = report, in_program_order
        self.epoch = 0
        self.async_copies = Counter()
        self.tensor_copies = Counter()
        self.bulk_stores = Counter()
        self.products = Counter()  # of warp groups, which read their operands until they are waited for
        self.signalled: list[Copy] = []  # loads that only their barrier tells of
        self.waits: dict[int, list] = {}
        self.siblings: list[SharedMemory] = [self]
        self.partitions: Partitions | None = None
        self.cluster: Cluster | None = None
        self.me = 0
        self.stages = Stages()
        self.latest: dict[tuple[str, Placed], Allocation] = {}

    def partition(self, report: Report = stop) -> "SharedMemory":
        """The same memory for another partition: its copies and its barrier intervals are its own."""
        side = SharedMemory(report, self.in_program_order)
        side.waits = self.waits
        side.siblings = self.siblings
        self.siblings.append(side)
        return side

    def barrier(self) -> None:
        self.epoch += 1

    def allocate(
        self,
        name: str,
        element: str,
        shape,
        place: Place,
        placed: Placed | None = None,
        layout: Attribute = Attribute(),
    ) -> MemDesc:
        allocation = Allocation(name, element, shape, place, placed, layout)
        allocation.spread = self.cluster is not None and is_spread(layout, shape)
        if placed is not None:
            latest = self.siblings[0].latest
            before = latest.get((name, placed))  # in the last iteration of a loop around it
            if before is not None and before.read_epoch.shape == allocation.read_epoch.shape:
                allocation.read_epoch[...] = before.read_epoch
            latest[(name, placed)] = allocation
        return MemDesc(allocation, np.arange(allocation.data.size, dtype=np.int64).reshape(shape))

    # Bytes that two owners use, one after the other.

    def use_scratch(self, begin: int, end: int) -> None:
        """An op uses these bytes for itself. Raises: Hazard when a copy under way still touches them."""
        self._check_reuse(begin, end, None)
        if self.cluster is not None:
            self.cluster.scratch(begin, end, self.epoch)

    def _check_reuse(self, begin: int, end: int, owner: Allocation | None) -> None:
        for copy in self.under_way():
            a = copy.target.allocation
            if a.is_same(owner) or copy.idle or end == 0:
                continue
            for first, last in copy.target.extents():
                if first < end and begin < last:
                    shared = f"bytes {max(first, begin)} to {min(last, end)} of shared memory"
                    what = f"uses {shared}, which belonged to {a.name}{_since(copy)}"
                    self.report(Hazard("lds-reuse-in-flight", what))

    def _check_readers(self, begin: int, end: int, owner: Allocation) -> None:
        """Raises: Hazard when a relaxed load of another allocation may still read these bytes."""
        for a in self.siblings[0].latest.values():
            if a.is_same(owner) or a.placed is None or not a.placed.overlaps(begin, end):
                continue
            if (a.read_epoch == self.epoch).any():
                what = f"fills bytes that belonged to {a.name}, read since the last barrier by a load that takes none"
                self.report(Hazard("lds-overwrite-read", what))

    # Plain accesses.

    def current(self, view: MemDesc) -> Allocation:
        """The allocation of a view, with what its bytes hold. Raises: NotRunnable where their order in time matters."""
        view.check_inside()
        a = view.allocation
        if a.aliases is not None and a.aliases.current is not a:
            if self.partitions is not None or self.stages.inside:
                raise NotRunnable("ttg.memdesc_reinterpret", "of memory that partitions or pipeline stages share")
            a.aliases.turn_to(a)
        return a

    def load(self, view: MemDesc, relaxed: bool = False, by: int | None = None) -> np.ndarray:
        """Values of a view. `by` is the agent that reads, None for the partition itself. Raises: Hazard for elements that are not valid."""
        a = self.current(view)
        state = a.state[view.index]
        if (state != VALID).any():
            self._report_read(view, state)
        self._ordered(view, False, by)
        if relaxed:
            a.read_epoch[view.index] = self.epoch
        return view.values()

    def _ordered(self, view: MemDesc, writes: bool, by: int | None) -> None:
        """Reports what another partition, an agent, or the other half of a warp pipeline may touch meanwhile. Raises: Hazard for another CTA."""
        if self.cluster is not None:
            self.cluster.used(view, self.epoch, writes)
        if self.stages.inside:
            (self.stages.write if writes else self.stages.read)(view, self.report)
        if self.partitions is not None:
            order, who = self.partitions, self.me if by is None else by
            (order.write if writes else order.read)(who, view, self.report)

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
        what = f"reads {count} of {a.name} still in flight, first {a.where(first)}{_since(copy)}"
        self.report(Hazard("lds-in-flight", what))
        self._land_into(view)

    def _land_into(self, view: MemDesc) -> None:
        """What is copied into these elements is there after all."""
        a = view.allocation
        while (flying := a.state[view.index] == FLYING).any():
            copy = self._copy_of(a, int(view.index[flying][0]))
            assert copy is not None, f"bug in gluonize: nothing fills what is in flight of {a.name}"
            self.land(copy)

    def store(self, view: MemDesc, value: np.ndarray, by: int | None = None) -> None:
        a = self.current(view)
        self.check_overwrite(view, copying=False)
        self._ordered(view, True, by)
        if self.stages.inside:
            self.stages.note(view, "stored")
        view.put(value)
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
            self.report(Hazard("lds-overwrite-in-flight", what + _since(self._copy_of(a, first))))
            self._land_into(view)
        if a.reading[view.index].any():
            first = int(view.index[a.reading[view.index] > 0][0])
            reader = self._copy_of(a, first)
            who = "a matrix product" if reader in self._all_products() else "an asynchronous store"
            what = f"overwrites elements of {a.name} that {who} still reads"
            self.report(Hazard("lds-overwrite-source", what + _since(reader)))
        if copying and (a.read_epoch[view.index] == self.epoch).any():
            what = f"refills elements of {a.name} that were read since the last barrier by a load that takes none"
            self.report(Hazard("lds-overwrite-read", what))

    def _all_products(self) -> list[Copy]:
        return [copy for side in self.siblings for group in side.products.groups for copy in group]

    def _copy_of(self, a: Allocation, index: int) -> Copy | None:
        for copy in self.under_way():
            if copy.target.allocation is a and (copy.target.index == index).any():
                return copy
        return None

    def under_way(self):
        for side in self.siblings:
            for counter in (side.async_copies, side.tensor_copies, side.bulk_stores, side.products):
                for group in (*counter.groups, counter.open):
                    yield from (copy for copy in group if not copy.landed)
            side.signalled = [copy for copy in side.signalled if not copy.landed]
            yield from side.signalled

    # Asynchronous copies.

    def issue(self, copy: Copy, counter: Counter) -> None:
        """Start a copy; it belongs to the open group of `counter`."""
        self.start(copy)
        counter.open.append(copy)

    def start(self, copy: Copy) -> None:
        """Start a copy that no counter knows."""
        if copy.values is not None:
            target = copy.target
            if copy.written is not None and not copy.written.all():
                target = target.at(target.index[copy.written])
                copy.values = copy.values[copy.written]
                copy.target = target
            self.check_overwrite(target, copying=True)
            if target.allocation.spread and not copy.idle:
                self.cluster.start(copy)
            else:
                self._ordered(target, True, copy.by)
            target.allocation.state[target.index] = FLYING
        else:
            self.load(copy.target, by=copy.by)
            copy.target.allocation.reading[copy.target.index] += 1
            if self.in_program_order:
                copy.finish()
                copy.finish = _nothing

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
                if copy.clock is not None and self.partitions is not None:
                    self.partitions.acquired(self.me, copy.clock)
        self.barrier()

    def land(self, copy: Copy) -> None:
        if copy.landed:
            return
        copy.landed = True
        a = self.current(copy.target)
        if a.spread:
            self.cluster.land(copy, self.epoch)
        if self.stages.inside:
            # The wait stands before the stage that comes next.
            self.stages.note(copy.target, "landed", self.stages.now + 1)
        if copy.values is not None:
            copy.target.put(copy.values)
            a.state[copy.target.index] = VALID
        else:
            a.reading[copy.target.index] -= 1
            copy.finish()

    def close(self, program: tuple[int, ...], waited: bool = True) -> list[Finding]:
        """The program ends, and its shared memory goes to another one: a copy under way would read or write there.

        waited: the end of a program waits for copies to shared memory (`copies_end_with_program` of a target's row).
        """
        out = []
        products = self._all_products()
        for copy in self.under_way():
            if copy in products or (not copy.finish and (copy.idle or waited)):
                continue
            kind, what = ("store", "store from") if copy.finish else ("load", "copy to")
            message = f"the asynchronous {what} {copy.target.allocation.name} is not waited for before the kernel ends"
            p = copy.place
            out.append(Finding(f"lds-{kind}-unwaited", message, copy.op, p.file, p.line, p.column, program))
        return out + (self.cluster.close(program) if self.cluster is not None else [])


def _nothing() -> None:
    """What is left to do of a store that was done where it stands."""


def _since(copy: Copy | None) -> str:
    return f"; the {copy.op} at {copy.place.file}:{copy.place.line} has not been waited for" if copy else ""
