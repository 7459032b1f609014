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

from dataclasses import replace
from typing import Any

from gluonize.judge.prove.loops.solving import Solved
from gluonize.judge.prove.loops.turns import Again, Knowledge
from gluonize.judge.prove.op_table import control
from gluonize.judge.prove.proof_values import NeedCase, NotProved, StoresTo, Tensor, indices, lam_over
from gluonize.judge.prove.slot_boxes import SharedMemory
from gluonize.judge.prove.symbolic_program import LoopFrame, Machine
from gluonize.judge.prove.terms.elements import INFINITE, Term, bits, is_integer
from gluonize.trace.model.op import Op

MOST_UNROLLED = 8  # iterations of a loop whose number is a constant
MOST_TRIPS = (1 << 31) - 1  # no loop runs more often: it would take hours


@control("scf.for")
def run_for(m: Machine, op: Op, env: dict[str, Any]) -> list[Any]:
    """Run an `scf.for`; -> what it carries out."""
    known, state = Knowledge(), m.state()
    for _ in range(40):
        try:
            return _attempt(m, op, dict(env), known)
        except StoresTo as found:
            m.back_to(state)
            # Raised for the outermost loop that did not know.
            if found.frame.name != f"loop {op.line}" or found.name in known.stores:
                raise
            known.stores.add(found.name)
        except Again:
            m.back_to(state)
    raise NotProved("a loop that is not understood", op)


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


def of_count(m: Machine, k: Term, trips: Term) -> list[tuple[dict, int]]:
    """What an iteration, or the number behind the last one, is at most beside what the number of iterations is computed from: of a / c + n
    iterations c * (k - n) is at most a."""
    t, out = m.terms, []
    for monomial, n in trips.poly.items():
        if n == 1 and len(monomial) == 1 and monomial[0].op == "div":
            whole, by = monomial[0].args
            rest = t.poly({x: f for x, f in trips.poly.items() if x != monomial})
            if whole.low >= 0 and by.constant is not None and by.constant > 0 and rest.constant is not None:
                more = t.add(t.scaled(k, by.constant), whole, -1)
                constant = more.poly.get((), 0)
                known = {x: f for x, f in more.poly.items() if x}
                out.append((known, by.constant * rest.constant - constant))
    # Of max(0, a / c) iterations c * k is at most a, or k is 0.
    most = t._atom(trips)
    inner = (
        next((x for x in most.args if x.constant is None), trips) if most is not None and most.op == "max" else trips
    )
    only = t._atom(inner)
    if inner is not trips and t.integer(0) in most.args and only is not None and only.op == "div":
        whole, by = only.args
        if whole.low < 0 and by.constant is not None and by.constant > 0:
            more = t.add(t.scaled(k, by.constant), whole, -1).poly
            out.append(({x: f for x, f in more.items() if x}, -whole.low - more.get((), 0)))
    return out


def _attempt(m: Machine, op: Op, env: dict[str, Any], known: Knowledge) -> list[Any]:
    t, header = m.terms, op.for_loop
    if header.unsigned:
        raise NotProved("a loop over unsigned numbers", op)
    width = bits(env[header.low].element)
    low, high, step = (t.value(env[x].term, width) for x in (header.low, header.high, header.step))
    trips = trip_count(m, low, high, step)
    firsts = [env[x] for _, x in header.bindings]
    names = [name for name, _ in header.bindings]
    if m.tiles == (low, step, high):
        return _tiles(m, op, env)
    staged = bool(op.attribute("triton.warp_pipeline.pipelined_for"))
    if trips.high <= 0:
        return firsts
    if trips.constant is not None and trips.constant <= MOST_UNROLLED and not staged:
        return _unrolled(m, op, env, trips.constant, low, step)
    count = t.fresh("count", "int", 0, max(min(trips.high, MOST_TRIPS) - 1, 0), op.line)
    t.counted[count] = trips
    k = t.integer_of(count)
    number = t.add(low, t.multiply(k, step))
    index = t.reduced(number, width)
    if high.high - 1 + step.high < 1 << (width - 1):  # so it does where a formula is taken behind the last iteration
        t.exact[index, width] = number
    if step.low > 0 and number.free:
        t.bounds.append((dict(number.poly), max(high.high - 1 + step.high, low.high)))
    t.bounds += of_count(m, k, trips)

    def body(turn_env: dict[str, Any]) -> list[Any]:
        turn_env[header.variable] = Tensor(
            index, (), env[header.variable].element if header.variable in env else f"i{width}"
        )
        end, values = m.region(op.regions[0], turn_env)
        return values

    facts = [x for x in (t.less(k, trips), t.less(t.value(index, width), high)) if x is not t.true]
    if staged and m.shared.staged:
        raise NotProved("stages in a loop with stages", op)
    m.shared.with_stages(staged or m.shared.staged)
    found = Loop(m, op, known, count, trips, names, firsts, env, body, facts).results()
    if staged:
        m.shared.with_stages(False)
    return found


def _tiles(m: Machine, op: Op, env: dict[str, Any]) -> list[Any]:
    """The loop of a program that goes from one of the source's programs to another: each of these is in one iteration of one program, whatever
    their number is. It is the whole kernel, and leaves nothing to its next iteration."""
    if op.for_loop.bindings or len(m.frames) > 1 or m.conditions or m.calls or m.accesses or m.shared.cells:
        raise NotProved("a loop over tiles that is not the whole kernel", op)
    m.region(op.regions[0], {**env, op.for_loop.variable: Tensor(m.terms.program(0), (), "i32")})
    m.shared.end_of_body(())
    if m.shared.cells or m.shared.marks or any(m.shared.under_way()):
        raise NotProved("a tile that leaves something under way, or is still being read, where the next one begins", op)
    m.ended = True
    return []


def _unrolled(m: Machine, op: Op, env: dict[str, Any], trips: int, low: Term, step: Term) -> list[Any]:
    """A loop of a few iterations, one after the other."""
    t, header = m.terms, op.for_loop
    element = env[header.low].element
    carried = [env[x] for _, x in header.bindings]
    for number in range(trips):
        inner = {**env, **{name: value for (name, _), value in zip(header.bindings, carried)}}
        inner[header.variable] = Tensor(t.reduced(t.add(low, step, number), bits(element)), (), element)
        outer = set(m.shared.cells)
        _, carried = m.region(op.regions[0], inner)
        m.shared.end_of_body(outer)
        if set(m.shared.cells) != outer:
            raise NotProved("a copy that is under way at the end of an iteration to what it allocated", op)
    return carried


class Loop(Solved):
    """A loop of either kind, and what there is behind it."""

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
        m, t, r, before = self.m, self.t, self._remainder(), self.entry
        at = self.turns[(r or 0) - 1] if (r or 0) > 0 else self.turns[-1]
        shared = at.shared.copied()
        shared.marks = shared.marks.union(before.marks, *(turn.shared.marks for turn in self.turns))
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
        m.trips[self.op.line] = self.trips, len(self.turns)

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
                cells[i] = replace(cell, content=None, copies=in_flight, case=(self.trips, len(self.turns), self.op))

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


@control("scf.execute_region")
def run_region(m: Machine, op: Op, env: dict[str, Any]) -> list[Any]:
    """Run a stage of a loop, or a region that is none."""
    if m.shared.staged and op.attribute("triton.warp_pipeline.stage") is not None:
        m.shared.next_stage()
    return m.region(op.regions[0], dict(env))[1]


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
    if m.shared.shape() != shape or m.shared.marks != shared.marks:
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
