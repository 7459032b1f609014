"""Loops, by induction: what holds at the head of an iteration is found from what one iteration does, and checked.

An iteration `k` is run once with symbols for what is carried into it: arguments of the loop, and what shared memory holds. What comes out
says what the symbols are (docs/explanation/proofs.md):

- what moves by the same number in each iteration is its first value and `k` times that number;
- what an iteration makes of nothing that is carried, `H(k)`, is `H(k - 1)` at the head, if the value before the loop is `H(-1)`; else it is
  the value before the loop at `k = 0` and `H(k - 1)` from then on;
- anything else is a recurrence: a `fold` of what the loop computes, the same term on both sides if they compute the same.

A ring of slots is looked at by the remainder of `k`: with `P` slots, `P` iterations are run, the one with remainder `r` for all `k` that have it.
What each says of what is carried must be one term; which slot is filled and read is a number in each. A slot holds what was written to it the
last time, `d` iterations ago: `H(k - d)`, checked against what it held before the loop. That copies under way, and the reads that no barrier
has ended, are at the end of the `P` iterations what they were at the start is checked too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import lcm
from typing import Any

from translator.prove.machine import LoopFrame, Machine, copy_of
from translator.prove.rows import control
from translator.prove.shared import Cell, SharedMemory, meet
from translator.prove.terms import INFINITE, Term, bits, is_integer
from translator.prove.values import NeedCase, NeedConstant, NotProved, StoresTo, Tensor, indices, lam_over, moved
from translator.ttgir.op import Op

MOST_REMAINDERS = 24


@dataclass
class Knowledge:
    """What attempts at a loop have found out. stores: the arguments that it stores to; numbers: carried values that must be numbers;
    modulus: by how many remainders of its iteration it is looked at; relaxed: reads that may still go on at its head; unwritten: boxes that
    nothing was written to before the loop; steps: what carried values that must be numbers are taken to grow by, which is checked; tried: those
    that did not."""

    stores: set[str] = field(default_factory=set)
    numbers: set[int] = field(default_factory=set)
    modulus: int = 1
    relaxed: set[tuple] = field(default_factory=set)
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


@control("scf.for")
def run_for(m: Machine, op: Op, env: dict[str, Any]) -> list[Any]:
    """Run an `scf.for`; -> what it carries out."""
    known = Knowledge()
    for _ in range(40):
        state = (m.effects, list(m.accesses), [copy_of(f) for f in m.frames], m.shared.copied(), m.terms.residues)
        try:
            return _attempt(m, op, dict(env), known)
        except StoresTo as found:
            m.effects, m.accesses, m.frames, m.shared, m.terms.residues = state
            # Raised for the outermost loop that did not know.
            if found.frame.name != f"loop {op.line}" or found.name in known.stores:
                raise
            known.stores.add(found.name)
        except _Again:
            m.effects, m.accesses, m.frames, m.shared, m.terms.residues = state
    raise NotProved("a loop that is not understood", op)


class _Again(Exception):
    """More is known of the loop now."""


def trip_count(m: Machine, low: Term, high: Term, step: Term) -> Term:
    """How often a loop runs."""
    t = m.terms
    span = t.add(high, low, -1)
    if step.constant == 1:
        return t.larger(span, t.integer(0))
    if step.constant is not None and step.constant <= 0:
        raise NotProved("a loop whose step is not positive")
    if step.constant is not None and all(n % step.constant == 0 for n in span.poly.values()):
        return t.larger(t.div(span, step), t.integer(0))
    return t.larger(t.div(t.add(t.add(span, step), t.integer(-1)), step), t.integer(0))


def _attempt(m: Machine, op: Op, env: dict[str, Any], known: Knowledge) -> list[Any]:
    t, header = m.terms, op.for_loop
    if header.unsigned:
        raise NotProved("a loop over unsigned numbers", op)
    width = bits(env[header.low].element)
    low, high, step = (t.value(env[x].term, width) for x in (header.low, header.high, header.step))
    trips = trip_count(m, low, high, step)
    firsts = [env[x] for _, x in header.bindings]
    names = [name for name, _ in header.bindings]
    if trips.high <= 0:
        return firsts
    count = t.fresh("count", "int", 0, max(trips.high - 1, 0), op.line)
    k = t.integer_of(count)
    index = t.reduced(t.add(low, t.multiply(k, step)), width)
    if high.high - 1 + step.high < 1 << (width - 1):  # so it does where a formula is taken behind the last iteration
        t.exact[index] = (low.low, high.high - 1)
    if step.low > 0 and index.free:
        t.bounds.append((dict(index.poly), max(high.high - 1 + step.high, low.high)))

    def body(turn_env: dict[str, Any]) -> list[Any]:
        turn_env[header.variable] = Tensor(
            index, (), env[header.variable].element if header.variable in env else f"i{width}"
        )
        end, values = m.region(op.regions[0], turn_env)
        return values

    facts = [x for x in (t.less(k, trips), t.less(t.value(index, width), high)) if x is not t.true]
    return _Loop(m, op, known, count, trips, names, firsts, env, body, facts).results()


class _Loop:
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

    def results(self) -> list[Any]:
        m, t = self.m, self.t
        outer, before, entry = m.effects, m.shared, m.accesses
        self.entry = before
        for j, first in enumerate(self.firsts):
            if not isinstance(first, Tensor):
                raise NotProved("a loop that carries what is no tensor", self.op)
            if j not in self.known.numbers and j not in self.known.steps:
                self.carried[j] = self._carried(first, self.names[j])
        m.effects, m.accesses = [], []
        self._run()
        self._check_steps()
        m.effects, m.accesses = outer, entry
        self._solve()
        self._same_in_all()
        turn = self.turns[0]
        effects = [t.assuming(self.told(x, 0), self.facts) for x in turn.effects]
        if effects:
            t.at = self.op
            group = t.group([], self.count, effects)
            m.effects.append(t.node("loop", len(effects), (self.trips, group), "effect"))
            for name in self.known.stores:
                m.frames[-1].counts[name] = m.frames[-1].counts.get(name, 0) + 1
        for r, each in enumerate(self.turns):
            for access in each.accesses:
                pointer, mask = (t.assuming(self.told(x, r), self.facts) for x in (access.pointer, access.mask))
                m.accesses.append(replace(access, pointer=pointer, mask=mask))
        self._leave()
        out = []
        for j, first in enumerate(self.firsts):
            if j in self.known.numbers:
                out.append(self._last_number(j, first))
                continue
            if j in self.known.steps:
                out.append(self._stepped(j, self.trips))
                continue
            c = self.carried[j]
            value = self.at(self.closed[c.function], self.trips)
            element = t.apply(value, indices(t, first.shape), c.element)
            if c.function in self._weak:
                element = t.select(t.is_zero(self.trips), self._start(j), element)
            term = self._value(c, element)
            out.append(Tensor(term, first.shape, first.element, first.pointee))
        return out

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

    # --- running iterations

    def _run(self) -> None:
        """Run an iteration for each remainder. Raises: _Again, NotProved."""
        m, t, known = self.m, self.t, self.known
        numbers = {j: self.firsts[j] for j in known.numbers}
        for first in numbers.values():
            if first.term.constant is None:
                raise NotProved("an index of slots that begins anywhere", self.op)
        start = dict(numbers)
        shared, r = self.entry, 0
        residues = t.residues
        shape = self._with_relaxed(shared).shape()
        while True:
            heads: dict[tuple, Term] = {}
            m.shared = self._with_relaxed(shared) if r == 0 else shared.copied()
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
                raise _Again from None
            finally:
                t.residues = residues
            m.frames.pop()
            self._end_of_body(m.shared)
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
            raise _Again
        self._comes_round(shape, shared)

    def _stepped(self, j: int, iteration: Term) -> Tensor:
        """A carried number that grows by the same in each iteration."""
        first, t = self.firsts[j], self.t
        term = t.add(first.term, iteration, self.known.steps[j])
        return Tensor(t.reduced(term, bits(first.element)), (), first.element)

    def _check_steps(self) -> None:
        """Raises: _Again where a number does not grow as it was taken to."""
        for j in list(self.known.steps):
            after = self._stepped(j, self.t.add(self.k, self.t.integer(1)))
            if any(turn.results[j].term is not after.term for turn in self.turns):
                del self.known.steps[j]
                raise _Again

    def _end_of_body(self, shared: SharedMemory) -> None:
        """What an iteration allocates is gone at its end, if nothing is under way to it."""
        busy = {key for copy in shared.under_way() for key, _ in copy.cells}
        for key in [key for key in shared.cells if key not in self.entry.cells]:
            if not any(c.copies for c in shared.cells[key]) and key not in busy:
                del shared.cells[key]

    def _comes_round(self, shape: tuple, shared: SharedMemory) -> None:
        """Check that shared memory is in use at the end of the iterations as at their start."""
        if shared.shape() == shape:
            return
        boxes = {(key, c.box) for key, cells in self._with_relaxed(self.entry).cells.items() for c in cells}
        new = {(key, c.box): c for key, cells in shared.cells.items() for c in cells if (key, c.box) not in boxes}
        empty = {at: c for at, c in new.items() if not any(meet(c.box, box) for key, box in boxes if key == at[0])}
        if empty:
            self.known.unwritten |= {at: Cell(c.allocation, c.box, None) for at, c in empty.items()}
            raise _Again
        late = {(key, c.box) for key, cells in shared.cells.items() for c in cells if c.relaxed}
        if not late <= self.known.relaxed:
            self.known.relaxed |= late
            raise _Again
        if self._with_relaxed(shared).shape() == shape:
            return
        raise NotProved("what is under way at the end of an iteration is not what was under way at its start", self.op)

    def _with_relaxed(self, shared: SharedMemory) -> SharedMemory:
        """With the reads that may still go on, and the boxes that nothing was written to."""
        again = shared.copied()
        for (key, _), cell in self.known.unwritten.items():
            again.cells.setdefault(key, []).append(cell)
        for key, cells in again.cells.items():
            again.cells[key] = [replace(c, relaxed=c.relaxed or (key, c.box) in self.known.relaxed) for c in cells]
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
        source = made.get(ops[-1].operands[j])
        if source is None or source.name != "arith.addi" or self.names[j] not in source.operands:
            return None
        other = next((x for x in source.operands if x != self.names[j]), None)
        value = self.env.get(other)
        return value.term.constant if isinstance(value, Tensor) else None

    # --- solving

    def at(self, function: Term, iteration: Term) -> Term:
        """What holds for iteration k, for another one."""
        return self.t.substitute(function, {self.count: iteration})

    def told(self, term: Term, r: int) -> Term:
        """A term of the iteration with remainder r, with what is carried into it told."""
        for _ in range(MOST_REMAINDERS):
            by = {x: self.closed[x] for x in term.free if x in self.closed}
            by |= {head: self.content(key, r) for key, head in self.turns[r].heads.items() if head in term.free}
            if not by:
                return term
            term = self.t.substitute(term, by)
        raise NotProved("shared memory that is computed from itself", self.op)

    def content(self, key: tuple, r: int) -> Term:
        """What a box holds at the head of an iteration with remainder r: a function of the allocation's indices. Raises: NotProved."""
        found = self._contents.get((key, r))
        if found is None:
            if (key, r) in self._asked:
                raise NotProved("shared memory that is computed from itself", self.op)
            self._asked.add((key, r))
            found = self._contents[key, r] = self._content(key, r)
            self._asked.discard((key, r))
        return found

    def _content(self, key: tuple, r: int) -> Term:
        t = self.t
        back = self.k
        at = r
        for steps in range(1, len(self.turns) + 1):
            at = (at - 1) % len(self.turns)
            turn = self.turns[at]
            cell = next((c for c in turn.shared.cells[key[0]] if c.box == key[1]), None)
            if cell is None or cell.content is None:
                raise NotProved("what shared memory holds is not known", self.op)
            if key not in turn.heads:
                raise NotProved("what shared memory holds is not known", self.op)
            if turn.heads[key] in cell.content.free and self._is_head(cell, turn.heads[key]):
                continue
            function = lam_over(t, self._as_atom(cell, cell.content), cell.allocation.shape)
            if turn.heads[key] in function.free:
                raise NotProved("shared memory that is computed from what it held", self.op)
            function = self.told_function(function, at)
            before = self.at(function, t.add(back, t.integer(-steps)))
            if steps > r:  # for the first such iteration it was written before the loop
                first = self._first(key)
                head = self.at(before, t.integer(r))
                if head is not first:
                    facts = self._facts_at(r)
                    if t.assuming(head, facts) is t.assuming(first, facts):
                        self._weak.add(key)  # where there is an iteration
                    else:
                        before = self._from_then_on(first, before, r, cell)
            return before
        return self._first(key)

    def _facts_at(self, iteration: int) -> list[Term]:
        """What holds in an iteration."""
        return [x for x in (self.at(fact, self.t.integer(iteration)) for fact in self.facts) if x is not self.t.true]

    def told_function(self, function: Term, r: int) -> Term:
        told = self.told(function, r)
        unknown = [x for x in told.free if x in self._functions]
        if unknown:
            raise _Unsolved
        return told

    def _from_then_on(self, first: Term, before: Term, r: int, cell: Cell) -> Term:
        """What was there before the loop in iteration r, `before` later."""
        t = self.t
        at = indices(t, cell.allocation.shape)
        element = cell.allocation.element
        chosen = t.select(
            t.is_zero(t.add(self.k, t.integer(-r))), t.apply(first, at, element), t.apply(before, at, element)
        )
        return lam_over(t, chosen, cell.allocation.shape)

    def _is_head(self, cell: Cell, head: Term) -> bool:
        at = indices(self.t, cell.allocation.shape)
        content = self.t.apply(head, at, cell.allocation.element)
        if is_integer(cell.allocation.element):
            content = self.t.reduced(content, bits(cell.allocation.element))
        return cell.content is content

    def _as_atom(self, cell: Cell, term: Term) -> Term:
        element = cell.allocation.element
        return self.t.value(term, bits(element)) if is_integer(element) else term

    def _first(self, key: tuple) -> Term:
        """What a box held before the loop."""
        cell = next((c for c in self.entry.cells.get(key[0], []) if c.box == key[1]), None)
        if cell is None:
            raise NotProved("what shared memory holds is not known", self.op)
        if cell.case is not None:
            raise NeedCase(*cell.case)
        if cell.content is None:
            raise NotProved("what shared memory holds is not known", self.op)
        return lam_over(self.t, self._as_atom(cell, cell.content), cell.allocation.shape)

    def _solve(self) -> None:
        """Find what each carried value is at the head of iteration k."""
        self._functions = {c.function for c in self.carried.values()}
        self._contents: dict[tuple, Term] = {}
        self._asked: set[tuple] = set()
        self._weak: set[Any] = set()  # what is known at the head of an iteration, but not where there is none
        while True:
            progress = False
            for j, c in self.carried.items():
                if c.function in self.closed:
                    continue
                try:
                    found = self._closed(j, c)
                except _Unsolved:
                    self._asked.clear()
                    continue
                if found is not None:
                    self.closed[c.function] = found
                    self._functions.discard(c.function)
                    self._contents.clear()
                    progress = True
            if not progress:
                break
        self._fold()

    def _next(self, j: int, r: int) -> Term:
        """What an iteration makes of a carried value, at its indices, with what is known told."""
        c, value = self.carried[j], self.turns[r].results[j]
        term = value.term
        if c.base is not None:
            if term.op != "ptr" or term.args[0] is not c.base:
                raise NotProved("a pointer that a loop carries from one argument to another", self.op)
            term = term.args[1]
        if is_integer(c.element):
            term = self.t.value(term, bits(c.element))
        return self.t.assuming(self.told(term, r), self.facts)

    def _start(self, j: int) -> Term:
        c = self.carried[j]
        term = c.first.term.args[1] if c.base is not None else c.first.term
        return self.t.value(term, bits(c.element)) if is_integer(c.element) else term

    def _closed(self, j: int, c: Carried) -> Term | None:
        t, shape = self.t, c.first.shape
        first, after = self._start(j), self._next(j, 0)
        for r in range(1, len(self.turns)):
            if self._next(j, r) is not after:
                return None
        mine = t.apply(c.function, indices(t, shape), c.element)
        unknown = {x for x in after.free if x in self._functions}
        if after is mine:
            return lam_over(t, first, shape)
        if is_integer(c.element) and unknown == {c.function}:
            change = t.reduced(t.add(self._modular(after, c), mine, -1), bits(c.element))
            if c.function not in change.free and self.count not in change.free:
                moved = t.reduced(t.add(first, t.multiply(self.k, change)), bits(c.element))
                return lam_over(t, t.value(moved, bits(c.element)), shape)
        if not unknown and not any(h in after.free for turn in self.turns for h in turn.heads.values()):
            before = self.at(after, t.add(self.k, t.integer(-1)))
            start = self.at(after, t.integer(-1))
            if start is not first:
                facts = self._facts_at(0)
                if t.assuming(start, facts) is t.assuming(first, facts):
                    self._weak.add(c.function)
                else:
                    before = t.select(t.is_zero(self.k), first, before)
            return lam_over(t, before, shape)
        return None

    def _modular(self, term: Term, c: Carried) -> Term:
        return self.t.reduced(term, bits(c.element))

    def _fold(self) -> None:
        """What is left are recurrences: each of what it needs, and what these need."""
        t = self.t
        left = {c.function: j for j, c in self.carried.items() if c.function not in self.closed}
        if not left:
            return
        after: dict[Term, Term] = {}
        for function, j in left.items():
            try:
                after[function] = self._next(j, 0)
            except _Unsolved:
                raise NotProved("what a loop carries through shared memory is not understood", self.op) from None
        for function, j in left.items():
            if (found := self._of_one_element(function, left, after)) is not None:
                self.closed[function] = lam_over(t, found, self.carried[j].first.shape)
                continue
            order: list[Term] = []
            todo = [function]
            while todo:
                x = todo.pop(0)
                if x not in order:
                    order.append(x)
                    todo += [y for y in appearing(after[x]) if y in left and y not in order]
            terms = []
            for x in order:
                c = self.carried[left[x]]
                terms += [lam_over(t, self._start(left[x]), c.first.shape), lam_over(t, after[x], c.first.shape)]
            t.at = self.op
            group = t.group(order, self.count, terms)
            c = self.carried[j]
            made = t.node("fold", c.first.shape, (group, self.k, *indices(t, c.first.shape)), c.element)
            term = t.integer_of(made) if is_integer(c.element) else made
            self.closed[function] = lam_over(t, term, c.first.shape)
        self._functions.clear()
        self._contents.clear()

    def _of_one_element(self, root: Term, left: Mapping[Term, int], after: Mapping[Term, Term]) -> Term | None:
        """The recurrence of one element of a carried tensor, if it needs one element of each tensor; None where it needs more of one."""
        t = self.t
        at: dict[Term, list[Term]] = {root: indices(t, self.carried[left[root]].first.shape)}
        order, bodies = [root], {}
        for x in order:
            c = self.carried[left[x]]
            bodies[x] = moved(t, after[x], c.first.shape, at[x])
            for app in applications(bodies[x], left):
                f, where = app.args[0], [t.integer_of(y) for y in app.args[1:]]
                if any(atom.op != "idx" for y in where for atom in y.args):
                    return None
                if f not in at:
                    at[f] = where
                    order.append(f)
                elif at[f] != where:
                    return None
        functions = {x: t.function(self.carried[left[x]].element) for x in order}
        by = {}
        for x, f in functions.items():
            shape = self.carried[left[x]].first.shape
            by[x] = lam_over(t, t.apply(f, [], self.carried[left[x]].element), shape)
        terms = []
        for x in order:
            first = moved(t, self._start(left[x]), self.carried[left[x]].first.shape, at[x])
            terms += [first, t.substitute(bodies[x], by)]
        t.at = self.op
        group = t.group([functions[x] for x in order], self.count, terms)
        element = self.carried[left[root]].element
        made = t.node("fold", (), (group, self.k), element)
        return t.integer_of(made) if is_integer(element) else made

    def _same_in_all(self) -> None:
        """Check that iterations of every remainder do the same."""
        for j in self.carried:
            first = self._next(j, 0)
            for r in range(1, len(self.turns)):
                if self._next(j, r) is not first:
                    raise NotProved("iterations that take turns in what they carry", self.op)
        first_effects = [self.t.assuming(self.told(x, 0), self.facts) for x in self.turns[0].effects]
        for r in range(1, len(self.turns)):
            if [self.t.assuming(self.told(x, r), self.facts) for x in self.turns[r].effects] != first_effects:
                raise NotProved("iterations that take turns in what they store", self.op)

    # --- behind the loop

    def _remainder(self) -> int | None:
        """The remainder of the number of iterations, where the case of the proof has it."""
        modulus = len(self.turns)
        if modulus == 1:
            return 0
        if self.trips.constant is not None:
            return self.trips.constant % modulus
        return self.t._residue(self.trips, modulus) if self.trips.low >= 0 else None

    def _leave(self) -> None:
        """What shared memory holds behind the loop."""
        m, t, r = self.m, self.t, self._remainder()
        at = self.turns[(r or 0) - 1] if (r or 0) > 0 else self.turns[-1]
        shared = at.shared.copied()
        if r is None:
            self._unknown(shared)
        else:
            for key, cells in shared.cells.items():
                for i, cell in enumerate(cells):
                    try:
                        function = self.at(self.content((key, cell.box), r), self.trips)
                        if (key, cell.box) in self._weak:
                            raise NotProved("what is there without an iteration")
                        content = t.apply(function, indices(t, cell.allocation.shape), cell.allocation.element)
                        if is_integer(cell.allocation.element):
                            content = t.reduced(content, bits(cell.allocation.element))
                        cells[i] = replace(cell, content=content)
                    except (NotProved, KeyError):
                        cells[i] = replace(cell, content=None)
        m.shared = shared

    def _unknown(self, shared: SharedMemory) -> None:
        """Which slot holds what depends on the number of iterations: what is under way to any of them may be under way to each."""
        copies: dict[tuple, frozenset] = {}
        shapes = {turn.shared.shape()[1] for turn in self.turns}
        lengths = {tuple(len(groups) for _, groups, _ in x) for x in shapes}
        if len(lengths) > 1:
            raise NeedCase(self.trips, len(self.turns), self.op)
        busy = any(c.copies for turn in self.turns for cells in turn.shared.cells.values() for c in cells)
        if busy and any(len(q.groups) > 0 or q.open for q in shared.queues.values()):
            everything = frozenset(shared.under_way())
            copies = {key: everything for key in shared.cells}
        for key, cells in shared.cells.items():
            for i, cell in enumerate(cells):
                in_flight = cell.copies | copies.get(key, frozenset()) if any(
                    c.copies for turn in self.turns for c in turn.shared.cells.get(key, [])
                ) else cell.copies  # fmt: skip
                relaxed = any(c.relaxed for turn in self.turns for c in turn.shared.cells.get(key, []))
                cells[i] = replace(
                    cell, content=None, copies=in_flight, relaxed=relaxed, case=(self.trips, len(self.turns), self.op)
                )

    def _last_number(self, j: int, first: Tensor) -> Tensor:
        """A number that goes round, behind the loop."""
        r = self._remainder()
        if r is not None:
            return self.turns[r].numbers[j]
        t = self.t
        at = t.rem(self.trips, t.integer(len(self.turns)))
        out = t.value(self.turns[0].numbers[j].term, bits(first.element))
        for i in range(1, len(self.turns)):
            value = t.value(self.turns[i].numbers[j].term, bits(first.element))
            out = t.select(t.is_zero(t.add(at, t.integer(-i))), value, out)
        return Tensor(t.reduced(out, bits(first.element)), (), first.element)


class _Unsolved(Exception):
    """It depends on what is carried and not known yet."""


def appearing(term: Term) -> list[Term]:
    """The function symbols of a term, in the order in which they appear."""
    out: list[Term] = []
    seen: set[Term] = set()

    def walk(t: Term) -> None:
        if t in seen or not t.free:
            return
        seen.add(t)
        if t.op == "fun" and t not in out:
            out.append(t)
        for x in t.args:
            walk(x)

    walk(term)
    return out


def applications(term: Term, functions: Mapping[Term, int]) -> list[Term]:
    """Where elements of carried tensors are taken, in the order in which they appear."""
    out: list[Term] = []
    seen: set[Term] = set()

    def walk(t: Term) -> None:
        if t in seen or not t.free:
            return
        seen.add(t)
        if t.op == "app" and t.args[0] in functions:
            out.append(t)
        for x in t.args:
            walk(x)

    walk(term)
    return out


@control("scf.while")
def run_while(m: Machine, op: Op, env: dict[str, Any]) -> list[Any]:
    """Run an `scf.while`: its condition is one more thing that its iterations say. Only one that stores nothing."""
    t = m.terms
    names = [name for name, _ in op.bindings]
    firsts = [env[x] for _, x in op.bindings]
    if not all(isinstance(x, Tensor) and x.element != "ptr" for x in firsts):
        raise NotProved("a while loop that carries pointers", op)
    count = t.fresh("count", "int", 0, INFINITE, op.line)
    functions = [t.function(x.element, name) for name, x in zip(names, firsts)]
    inner = dict(env)
    for name, function, first in zip(names, functions, firsts):
        inner[name] = Tensor(_as_value(t, function, first), first.shape, first.element)
    effects, shape, shared = m.effects, m.shared.shape(), m.shared
    m.effects, m.shared = [], m.shared.copied()
    m.frames.append(LoopFrame({}, count, frozenset(), f"loop {op.line}", t.integer(INFINITE)))
    end, values = m.region(op.regions[0], inner)
    condition, passed = values[0].term, values[1:]
    block = op.regions[1].blocks[0]
    second = {**env, **{name: x for (name, _), x in zip(block.arguments, passed)}}
    m.conditions.append(condition)
    end, after = m.region(op.regions[1], second)
    m.conditions.pop()
    m.frames.pop()
    if m.effects:
        raise NotProved("a while loop that stores", op)
    if m.shared.shape() != shape:
        raise NotProved("a while loop that uses shared memory", op)
    m.effects, m.shared = effects, shared
    terms = []
    for first, value in zip(firsts, after):
        for x in (first, value):
            terms.append(lam_over(t, t.value(x.term, bits(x.element)) if is_integer(x.element) else x.term, x.shape))
    terms.append(t.lam(condition, []))
    for x in passed:
        terms.append(lam_over(t, t.value(x.term, bits(x.element)) if is_integer(x.element) else x.term, x.shape))
    group = t.group(functions, count, terms)
    out = []
    for number, x in enumerate(passed):
        made = t.node("while", (number, x.shape, len(firsts)), (group, *indices(t, x.shape)), x.element)
        term = t.integer_of(made) if is_integer(x.element) else made
        out.append(Tensor(t.reduced(term, bits(x.element)) if is_integer(x.element) else term, x.shape, x.element))
    return out


def _as_value(t, function: Term, first: Tensor) -> Term:
    term = t.apply(function, indices(t, first.shape), first.element)
    return t.reduced(term, bits(first.element)) if is_integer(first.element) else term


__all__ = ["run_for", "run_while"]
