"""Shared memory of one program: what lies in each box of an allocation, what is under way, and what waits make visible.

The rules are those of the reference machine (`translator/judge/machine/memory`): a copy lands when a wait covers it; what is in flight is neither
read nor overwritten; barriers between plain accesses are the compiler's, but for reads marked `syncedViaAsyncWait`: what such a read touched
is refilled only after a wait or a barrier, also by another allocation that is given its place.

Between the stages of a loop in which half of the warps is one stage behind, a value stored in stage s is read from stage s + 2 on, what is read
in s is filled from s + 2 on, and what a wait before s covers is read from s + 1 on.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace

from gluonize.judge.prove.proof_values import Allocation, Hazard, NeedCase, NotProved, View, indices, moved, symbol_of
from gluonize.judge.prove.terms.elements import Term, Terms
from gluonize.trace.model.op import Op

Box = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Copy:
    """An asynchronous copy under way. reads: it reads shared memory (a store to global memory), so that its source must stay."""

    op: Op
    reads: bool = False
    cells: frozenset[tuple[tuple, Box]] = frozenset()


@dataclass(frozen=True)
class Cell:
    """What a box of an allocation holds. content: the element at the allocation's indices; None after a loop whose number of iterations it
    depends on (case says of which). copies: those under way to it."""

    allocation: Allocation
    box: Box
    content: Term | None
    copies: frozenset[Copy] = frozenset()
    case: tuple[Term, int, Op] | None = None


@dataclass(frozen=True)
class Mark:
    """What happened to a box: `relaxed`, read since the last barrier by a load that takes none; in a loop with stages `read`, `stored`, `landed`.
    age: stages since then; former: in an allocation that is no longer there."""

    key: tuple
    box: Box
    what: str
    age: int = 0
    former: bool = False


@dataclass
class Queue:
    """Copies that one kind of wait covers, oldest group first, and those of no group yet."""

    groups: list[list[Copy]] = field(default_factory=list)
    open: list[Copy] = field(default_factory=list)


KINDS = ("async", "tensor")
STORED, LOADED = "global store", "global load"  # marks of arguments, since the last barrier of all memory


class SharedMemory:
    """cells: by allocation. marks: what forbids accesses for a while; more of them are never wrong. staged: in a loop with stages.
    gone: whether nothing uses an allocation any more, so that its place may be another's."""

    def __init__(self, terms: Terms, gone: Callable[[tuple], bool] = lambda key: False):
        self.terms, self.gone = terms, gone
        self.cells: dict[tuple, list[Cell]] = {}
        self.marks: frozenset[Mark] = frozenset()
        self.staged = False
        self.queues = {kind: Queue() for kind in KINDS}

    def copied(self) -> "SharedMemory":
        again = SharedMemory(self.terms, self.gone)
        again.marks, again.staged = self.marks, self.staged
        again.cells = {key: list(cells) for key, cells in self.cells.items()}
        again.queues = {k: Queue([list(g) for g in q.groups], list(q.open)) for k, q in self.queues.items()}
        return again

    # --- plain accesses

    def write(self, view: View, value: Term, op: Op, copy: Copy | None = None) -> None:
        """Store a tensor, or what a copy will bring."""
        self._free(view, op, copy is not None)
        kept = []
        for cell in self.cells.get(view.allocation.key, []):
            kept += [replace(cell, box=rest) for rest in without(cell.box, view.box)]
        content = moved(self.terms, value, view.shape, list(view.inverse))
        kept.append(Cell(view.allocation, view.box, content, frozenset((copy,)) if copy is not None else frozenset()))
        self.cells[view.allocation.key] = kept
        if self.staged and copy is None:
            self._mark(view, "stored")

    def _free(self, view: View, op: Op, copying: bool) -> None:
        """Raises: Hazard where what is overwritten is in flight, or still being read."""
        name = view.allocation.name
        for cell in self.cells.get(view.allocation.key, []):
            if cell.copies and meet(cell.box, view.box):
                raise Hazard(f"overwrites what is in flight to {name}", op)
        for mark in self.marks:
            here = mark.key == view.allocation.key
            if here and meet(mark.box, view.box):
                if copying and mark.what == "relaxed":
                    raise Hazard(f"refills what was read of {name} since the last barrier", op)
                if mark.what == "read":
                    raise Hazard(f"fills what was read of {name} less than two stages before", op)
            elif copying and not here and mark.what == "relaxed" and (mark.former or self.gone(mark.key)):
                raise NotProved(f"{name} may be given the place of what was read since the last barrier", op)
        for copy in self.under_way():
            if copy.reads and any(k == view.allocation.key and meet(box, view.box) for k, box in copy.cells):
                raise Hazard(f"overwrites what an asynchronous store still reads of {name}", op)

    def read(self, view: View, op: Op, relaxed: bool = False) -> Term:
        """The tensor that lies at a view. Raises: Hazard, NeedCase."""
        t, name = self.terms, view.allocation.name
        found = [cell for cell in self.cells.get(view.allocation.key, []) if meet(cell.box, view.box)]
        size = sum(volume(overlap(cell.box, view.box)) for cell in found)
        if size < volume(view.box):
            raise Hazard(f"reads what was never written of {name}", op)
        for cell in found:
            if cell.case is not None:
                raise NeedCase(*cell.case)
            if cell.content is None:
                raise NotProved(f"what {name} holds is not known", op)
            if cell.copies:
                copy = min(cell.copies, key=lambda c: c.op.line)
                raise Hazard(f"reads what is in flight to {name}: the {copy.op} has not been waited for", op)
        for mark in self.marks:
            if mark.key == view.allocation.key and meet(mark.box, view.box):
                if mark.what == "stored":
                    raise Hazard(f"reads what was stored to {name} less than two stages before", op)
                if mark.what == "landed" and mark.age <= 0:
                    raise Hazard(
                        f"reads {name} in the stage behind the wait, for which half of the warps has not waited", op
                    )
        if relaxed:
            self._mark(view, "relaxed")
        if self.staged:
            self._mark(view, "read")
        out: Term | None = None
        for cell in sorted(found, key=lambda c: c.box, reverse=True):
            part = moved(t, cell.content, view.allocation.shape, list(view.places))
            out = part if out is None else self._either(view, cell.box, part, out)
        assert out is not None
        return out

    def _either(self, view: View, box: Box, inside: Term, outside: Term) -> Term:
        t, condition = self.terms, self.terms.true
        for place, (low, high) in zip(view.places, box):
            condition = t.both(
                condition, t.negative(t.add(place, t.integer(-high))), t.no(t.negative(t.add(place, t.integer(-low))))
            )
        return t.select(condition, inside, outside)

    def _mark(self, view: View, what: str, age: int = 0) -> None:
        self.marks |= {Mark(view.allocation.key, view.box, what, age)}

    # --- copies and waits

    def under_way(self) -> Iterable[Copy]:
        for queue in self.queues.values():
            for group in (*queue.groups, queue.open):
                yield from group

    def issue(self, kind: str, view: View, value: Term, op: Op) -> Copy:
        copy = Copy(op)
        self.write(view, value, op, copy)
        self.queues[kind].open.append(copy)
        return copy

    def issue_store(self, kind: str, view: View, op: Op) -> Term:
        """A copy to global memory; -> what it copies."""
        value = self.read(view, op)
        self.queues[kind].open.append(Copy(op, True, frozenset(((view.allocation.key, view.box),))))
        return value

    def commit(self, kind: str) -> None:
        queue = self.queues[kind]
        queue.groups.append(queue.open)
        queue.open = []

    def wait(self, kind: str, outstanding: int) -> None:
        """Land the oldest groups until so many are left; a barrier follows."""
        queue, landed = self.queues[kind], set()
        while len(queue.groups) > outstanding:
            landed |= set(queue.groups.pop(0))
        if landed:
            for key, cells in self.cells.items():
                if self.staged:  # the wait stands before the stage that comes next
                    self.marks |= {Mark(key, c.box, "landed", -1) for c in cells if c.copies & landed}
                self.cells[key] = [replace(c, copies=c.copies - landed) if c.copies & landed else c for c in cells]
        self.barrier()

    def barrier(self, everywhere: bool = False) -> None:
        """everywhere: of global memory, too."""
        over = ("relaxed", STORED, LOADED) if everywhere else ("relaxed",)
        self.marks = frozenset(x for x in self.marks if x.what not in over)

    # --- stages and iterations

    def next_stage(self) -> None:
        """A stage begins, behind a barrier."""
        self.barrier()
        self.marks = frozenset(replace(x, age=x.age + 1) for x in self.marks if x.age < 1)

    def with_stages(self, staged: bool) -> None:
        """A loop with stages begins, or has ended: all warps are together."""
        if staged == self.staged:
            return
        self.staged = staged
        self.marks = frozenset(x for x in self.marks if x.what in ("relaxed", STORED, LOADED))

    def end_of_body(self, outer: Container[tuple]) -> None:
        """What an iteration allocated is gone at its end, if nothing is under way to it. outer: what was there before it."""
        busy = {key for copy in self.under_way() for key, _ in copy.cells}
        for key in [key for key in self.cells if key not in outer]:
            if not any(c.copies for c in self.cells[key]) and key not in busy:
                del self.cells[key]
        self.marks = frozenset(x if x.key in outer else replace(x, former=True) for x in self.marks)

    # --- branches

    def merged(self, other: "SharedMemory", condition: Term, op: Op) -> "SharedMemory":
        """What there is behind a branch."""
        if self.shape() != other.shape():
            raise NotProved("a branch that changes how shared memory is in use", op)
        out = self.copied()
        out.marks |= other.marks
        pairs = dict(zip(self.under_way(), other.under_way()))
        for key, cells in out.cells.items():
            its = {c.box: c for c in other.cells[key]}
            for i, cell in enumerate(cells):
                that = its[cell.box].content
                if cell.content is not that:
                    known = cell.content is not None and that is not None
                    cells[i] = replace(
                        cell, content=self.terms.select(condition, cell.content, that) if known else None
                    )
        assert len(pairs) == len(list(self.under_way()))
        return out

    def shape(self) -> tuple:
        """How it is in use, whatever it holds, but for marks: boxes, what is under way to each, and the groups of copies."""
        number: dict[Copy, tuple] = {}
        for kind, queue in self.queues.items():
            for g, group in enumerate((*queue.groups, queue.open)):
                for i, copy in enumerate(group):
                    number[copy] = (kind, g, i, copy.reads, copy.cells)
        cells = tuple(
            (
                key,
                tuple(sorted((c.box, tuple(sorted((number.get(x, ()) for x in c.copies), key=repr))) for c in cells)),
            )
            for key, cells in sorted(self.cells.items(), key=lambda item: repr(item[0]))
            if cells
        )
        queues = tuple(
            (
                kind,
                tuple(tuple(number[c] for c in group) for group in queue.groups),
                tuple(number[c] for c in queue.open),
            )
            for kind, queue in self.queues.items()
        )
        return cells, queues


def whole(terms: Terms, allocation: Allocation) -> View:
    """All of an allocation."""
    at = tuple(indices(terms, allocation.shape))
    return View(allocation, allocation.shape, at, at, tuple((0, n) for n in allocation.shape))


def part(terms: Terms, view: View, shape: tuple[int, ...], to: Sequence[Term], back: Sequence[Term], op: Op) -> View:
    """A view of a view. to: its indices in those of `view`; back: the index in it, of the indices of `view`."""
    places = tuple(moved(terms, p, view.shape, list(to)) for p in view.places)
    by = {}
    for d, n in enumerate(view.shape):
        if n > 1:
            by[symbol_of(terms.index(d, n))] = view.inverse[d]
    inverse = tuple(terms.substitute(x, by) for x in back)
    box = tuple((p.low, p.high + 1) for p in places)
    size = 1
    for n in shape:
        size *= n
    if volume(box) != size:
        raise NotProved("a view of shared memory that is no box of it", op)
    return View(view.allocation, shape, places, inverse, box, view.raw)


def volume(box: Box | None) -> int:
    size = 1
    for low, high in box or ():
        size *= max(0, high - low)
    return size


def meet(a: Box, b: Box) -> bool:
    return all(x < q and p < y for (x, y), (p, q) in zip(a, b))


def within(a: Box, b: Box) -> bool:
    """Whether a box is a part of another one."""
    return all(p <= x and y <= q for (x, y), (p, q) in zip(a, b))


def overlap(a: Box, b: Box) -> Box:
    return tuple((max(x, p), min(y, q)) for (x, y), (p, q) in zip(a, b))


def without(box: Box, taken: Box) -> list[Box]:
    """What is left of a box, in boxes."""
    if not meet(box, taken):
        return [box]
    left, rest = [], list(box)
    for d, ((a, b), (c, e)) in enumerate(zip(box, taken)):
        if a < c:
            left.append((*rest[:d], (a, c), *rest[d + 1 :]))
        if e < b:
            left.append((*rest[:d], (e, b), *rest[d + 1 :]))
        rest[d] = (max(a, c), min(b, e))
    return left


__all__ = ["Cell", "Copy", "SharedMemory", "part", "whole"]
