"""Iterations of a loop as they are run, one for each remainder of the iteration's number, with symbols for what is carried into them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import lcm
from typing import Any

from gluonize.judge.prove.proof_values import NeedConstant, NotProved, Tensor, indices
from gluonize.judge.prove.slot_boxes import Cell, Mark, SharedMemory, meet
from gluonize.judge.prove.symbolic_program import LoopFrame, Machine
from gluonize.judge.prove.terms.elements import Term, bits, is_integer
from gluonize.trace.model.op import Op

MOST_REMAINDERS = 24


@dataclass
class Knowledge:
    """What attempts at a loop have found out. stores: the arguments that it stores to; numbers: carried values that must be numbers;
    modulus: by how many remainders of its iteration it is looked at; marks: what happened to shared memory of late at its head; unwritten: boxes that
    nothing was written to before the loop; steps: what carried values that must be numbers are taken to grow by, which is checked; tried: those
    that did not."""

    stores: set[str] = field(default_factory=set)
    numbers: set[int] = field(default_factory=set)
    modulus: int = 1
    marks: frozenset[Mark] = frozenset()
    unwritten: dict[tuple, Cell] = field(default_factory=dict)
    steps: dict[int, int] = field(default_factory=dict)
    tried: set[int] = field(default_factory=set)


@dataclass
class Turn:
    """One iteration with a remainder: what came out. heads: the symbol of each box of shared memory at its head."""

    results: list[Any]
    effects: list[Term]
    accesses: list[Any]
    heads: dict[tuple, Term]
    shared: SharedMemory
    numbers: dict[int, Tensor]


@dataclass
class Carried:
    """A carried value. function: its symbol; base: of a pointer, whose offset is what is carried."""

    function: Term
    first: Tensor
    base: Term | None = None

    @property
    def element(self) -> str:
        return "i64" if self.base is not None else self.first.element


class Again(Exception):
    """More is known of the loop now."""


class Turns:
    """A loop of either kind, whose iterations `body` runs."""

    def __init__(
        self, m: Machine, op: Op, known: Knowledge, count: Term, trips: Term, names: list[str], firsts: list[Any],
        env: dict[str, Any], body: Callable[[dict[str, Any]], list[Any]], facts: list[Term],
    ):  # fmt: skip
        self.facts = facts  # what holds in each iteration
        self.m, self.t, self.op, self.known = m, m.terms, op, known
        self.count, self.k, self.trips = count, m.terms.integer_of(count), trips
        self.names, self.firsts, self.env, self.body = names, firsts, env, body
        self.carried: dict[int, Carried] = {}
        self.closed: dict[Term, Term] = {}  # of the symbol of a carried value: what it is at the head of iteration k
        self.turns: list[Turn] = []

    def _value(self, c: Carried, term: Term) -> Term:
        """A carried value of the term that stands for it: an integer of its width, a pointer behind its base."""
        if c.base is not None:
            return self.t.pointer(c.base, term)
        return self.t.reduced(term, bits(c.element)) if is_integer(c.element) else term

    def _carried(self, first: Tensor, name: str) -> Carried:
        if first.element == "ptr":
            if first.term.op != "ptr":
                raise NotProved("a loop that carries a choice of pointers", self.op)
            return Carried(self.t.function("i64", name), first, first.term.args[0])
        return Carried(self.t.function(first.element, name), first)

    def _run(self) -> None:
        """Run an iteration for each remainder. Raises: Again, NotProved."""
        m, t, known = self.m, self.t, self.known
        numbers = {j: self.firsts[j] for j in known.numbers}
        for first in numbers.values():
            if first.term.constant is None:
                raise NotProved("an index of slots that begins anywhere", self.op)
        start = dict(numbers)
        shared, r = self.entry, 0
        residues = t.residues
        shape = self._at_head(shared).shape()
        while True:
            heads: dict[tuple, Term] = {}
            m.shared = self._at_head(shared) if r == 0 else shared.copied()
            self._symbols(m.shared, heads, r)
            env = dict(self.env)
            for j, name in enumerate(self.names):
                env[name] = (
                    numbers[j]
                    if j in known.numbers
                    else self._stepped(j, self.k) if j in known.steps else self._tensor(j)
                )
            frame = LoopFrame({}, self.count, frozenset(known.stores), f"loop {self.op.line}", self.trips)
            m.frames.append(frame)
            if known.modulus > 1:
                t.residues = {**residues, self.count: (known.modulus, r)}
            try:
                values = self.body(env)
            except NeedConstant as need:
                self._learn(need)
                raise Again from None
            finally:
                t.residues = residues
            m.frames.pop()
            m.shared.end_of_body(self.entry.cells)
            self.turns.append(Turn(values, m.effects, m.accesses, heads, m.shared, dict(numbers)))
            m.effects, m.accesses = [], []
            shared, r = m.shared, r + 1
            numbers = {j: values[j] for j in known.numbers}
            if any(x.term.constant is None for x in numbers.values()):
                raise NotProved("an index of slots that does not go round", self.op)
            round_ = all(numbers[j].term is start[j].term for j in numbers)
            if round_ and r % known.modulus == 0:
                break
            if r >= MOST_REMAINDERS:
                raise NotProved("slots that do not come round", self.op)
        if r != known.modulus:
            known.modulus = r
            raise Again
        self._comes_round(shape, shared)

    def _stepped(self, j: int, iteration: Term) -> Tensor:
        """A carried number that grows by the same in each iteration."""
        first, t = self.firsts[j], self.t
        term = t.add(first.term, iteration, self.known.steps[j])
        return Tensor(t.reduced(term, bits(first.element)), (), first.element)

    def _check_steps(self) -> None:
        """Raises: Again where a number does not grow as it was taken to."""
        for j in list(self.known.steps):
            after = self._stepped(j, self.t.add(self.k, self.t.integer(1)))
            if any(turn.results[j].term is not after.term for turn in self.turns):
                del self.known.steps[j]
                raise Again

    def _comes_round(self, shape: tuple, shared: SharedMemory) -> None:
        """Check that shared memory is in use at the end of the iterations as at their start."""
        if not shared.marks <= (head := self._at_head(self.entry)).marks:
            self.known.marks |= shared.marks
            raise Again
        if shared.shape() == shape:
            return
        boxes = {(key, c.box) for key, cells in head.cells.items() for c in cells}
        new = {(key, c.box): c for key, cells in shared.cells.items() for c in cells if (key, c.box) not in boxes}
        empty = {at: c for at, c in new.items() if not any(meet(c.box, box) for key, box in boxes if key == at[0])}
        if empty:
            self.known.unwritten |= {at: Cell(c.allocation, c.box, None) for at, c in empty.items()}
            raise Again
        raise NotProved("what is under way at the end of an iteration is not what was under way at its start", self.op)

    def _at_head(self, shared: SharedMemory) -> SharedMemory:
        """With what may have happened of late, and the boxes that nothing was written to."""
        again = shared.copied()
        again.marks |= self.known.marks
        for (key, _), cell in self.known.unwritten.items():
            again.cells.setdefault(key, []).append(cell)
        return again

    def _symbols(self, shared: SharedMemory, heads: dict[tuple, Term], r: int) -> None:
        """Put a symbol for what is not known into each box."""
        for key, cells in shared.cells.items():
            for i, cell in enumerate(cells):
                symbol = self.t.function(cell.allocation.element, f"{cell.allocation.name} at the head")
                heads[key, cell.box] = symbol
                at = indices(self.t, cell.allocation.shape)
                content = self.t.apply(symbol, at, cell.allocation.element)
                if is_integer(cell.allocation.element):
                    content = self.t.reduced(content, bits(cell.allocation.element))
                cells[i] = replace(cell, content=content, case=None) if cell.case is None else cell

    def _tensor(self, j: int) -> Tensor:
        c = self.carried[j]
        term = self.t.apply(c.function, indices(self.t, c.first.shape), c.element)
        return Tensor(self._value(c, term), c.first.shape, c.first.element, c.first.pointee)

    def _learn(self, need: NeedConstant) -> None:
        """What has to be known for an index of slots to be a number. Raises: NeedConstant where it is another loop's."""
        mine = {c.function: j for j, c in self.carried.items()}
        free = need.index.free
        found = {mine[x] for x in free if x in mine}
        if found:
            for j in found:
                step = self._step_of(j) if j not in self.known.tried else None
                if step is not None:
                    self.known.tried.add(j)
                    self.known.steps[j] = step
                else:
                    self.known.numbers.add(j)
        elif self.count in free:
            modulus = lcm(self.known.modulus, need.extent)
            if modulus == self.known.modulus or modulus > MOST_REMAINDERS:
                raise NotProved("an index of slots that is not known", need.op)
            self.known.modulus = modulus
        else:
            raise need

    def _step_of(self, j: int) -> int | None:
        """What an iteration seems to add to a carried number: `yield %x + 1`."""
        if self.op.name != "scf.for" or not is_integer(self.firsts[j].element) or self.firsts[j].shape:
            return None
        ops = self.op.regions[0].blocks[0].ops
        made = {name: op for op in ops for name in op.results}
        source = made.get(last := ops[-1].operands[j])
        while source is not None and source.name == "scf.execute_region":
            inner = source.regions[0].blocks[0].ops
            last = inner[-1].operands[source.results.index(last)]
            source = next((op for op in inner if last in op.results), made.get(last))
        if source is None or source.name != "arith.addi" or self.names[j] not in source.operands:
            return None
        other = next((x for x in source.operands if x != self.names[j]), None)
        value = self.env.get(other)
        return value.term.constant if isinstance(value, Tensor) else None
