"""One program of a module, run with symbols: what it stores, in order, as terms.

Effects are terms: `store`, `atomic`, `loop` (how often, and what an iteration does), `branch`. A load is a term of its address and of the
stores to the same argument that come before it (`version`); different arguments are different memory, as the contract has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from math import lcm
from typing import Any

from gluonize.judge.prove.last_uses import TAKES_PLACE, last_uses
from gluonize.judge.prove.op_table import CONTROL, TABLE, control
from gluonize.judge.prove.promises import hinted
from gluonize.judge.prove.proof_values import (
    ACQUIRE,
    UNKNOWN,
    Access,
    Hazard,
    NeedCase,
    NeedConstant,
    NotProved,
    StoresTo,
    Tensor,
    argument,
    indices,
    reached,
    symbol_of,
)
from gluonize.judge.prove.slot_boxes import SharedMemory
from gluonize.judge.prove.terms.elements import Term, Terms, bits, is_integer
from gluonize.judge.prove.terms.term import subterms
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Block, Op, Region

ENDS = frozenset(
    "scf.yield tt.return tt.reduce.return tt.scan.return scf.condition ttg.warp_yield ttg.warp_return".split()
)
MOST_STEPS = 200_000
MOST_PATHS = 64
MOST_CALLS = 16  # of functions in each other
MOST_CASES = 24  # of the number of a loop's iterations
BIG = 500  # nodes of a term that are copied where it is taken at other indices


@dataclass
class Frame:
    """Stores so far, by the argument that they reach, in a loop's iteration or a branch. loop: its iteration, None of a branch; known: which
    arguments an iteration of it stores to."""

    counts: dict[str, int] = field(default_factory=dict)
    loop: Term | None = None
    known: frozenset[str] = frozenset()
    name: str = ""


class Machine:
    """side: 0 the source, 1 the kernel that is to compute the same."""

    def __init__(self, module: Module, terms: Terms, side: int, arguments: list[Any]):
        self.module, self.terms, self.side, self.arguments = module, terms, side, arguments
        self.effects: list[Term] = []
        self.accesses: list[Access] = []
        self.frames = [Frame()]
        self.shared = SharedMemory(terms, lambda key: self._last_uses.get(key[0], 0) < self.line)
        self.conditions: list[Term] = []
        # What the source assumes, under which conditions, and in loops that run how often.
        self.promises: list[tuple[Term, tuple[Term, ...], tuple[Term, ...]]] = []
        # Tiles do not begin before what they are tiles of, where conditions hold: said where a proof rests on it.
        self.given: dict[tuple[Term, frozenset[Term], tuple[tuple[Term, Term], ...]], str] = {}
        self.env: dict[str, Any] = {}
        self.steps = self.paths = self.calls = 0
        self.copies_end = False
        # Of programs that go from one of the source's to another: their number, how many there are, and how many the source has.
        self.tiles: tuple[Term, Term, Term] | None = None
        self.ended = False  # with the last of them
        self.line = 0  # of the operation of the kernel itself that is looked at
        # Of a loop, by its line: how often it runs, and by how many remainders of its iterations it was looked at.
        self.trips: dict[int, tuple[Term, int]] = {}
        # Whether the source has barriers; which accesses it has one before, by what tells them from others; what was accessed so far.
        self.barriers = False
        self.apart: dict[tuple, bool] = {}
        self.known_apart: dict[tuple, bool] = {}
        # Behind how many atomic operations that tell others the source has which loads.
        self.released: dict[tuple, int] = {}
        self.touched: set[tuple[str, bool]] = set()
        self.strict = module.has("tt.atomic_cas", "tt.atomic_poll", "amdg.buffer_atomic_cas")

    def run(self) -> list[Term]:
        """Run the kernel; -> its effects. Raises: NotProved, Hazard, NeedConstant, NeedCase."""
        self.terms.side = self.side
        entry = self.module.entry
        env = {name: value for (name, _), value in zip(entry.arguments, self.arguments)}
        self.region(entry.region, env)
        return self.effects

    # --- going back

    def state(self) -> tuple:
        """What a run has made so far, for `back_to`."""
        frames, shared = [copy_of(f) for f in self.frames], self.shared.copied()
        changing = list(self.effects), list(self.accesses), frames, shared, list(self.conditions), dict(self.given)
        return changing, (self.calls, self.line, self.ended, self.terms.residues)

    def back_to(self, state: tuple) -> None:
        """Forget what was run since then."""
        (effects, accesses, frames, shared, conditions, given), kept = state
        self.effects, self.accesses, self.conditions, self.given = [*effects], [*accesses], [*conditions], {**given}
        self.frames, self.shared = [copy_of(f) for f in frames], shared.copied()
        self.calls, self.line, self.ended, self.terms.residues = kept

    # --- regions

    def region(self, region: Region, env: dict[str, Any]) -> tuple[str, list[Any]]:
        """Run a region to its end; -> how it ended and with what."""
        return self._from(region, region.blocks[0], env)

    def _from(self, region: Region, block: Block, env: dict[str, Any]) -> tuple[str, list[Any]]:
        while True:
            end, values, op = self.block(block, env)
            if end == "cf.br":
                block, env = self._goes_to(region, op, 0, env)
            elif end == "cf.cond_br":
                condition = self.decided(env[op.condition].term)
                if condition is self.terms.true or condition is self.terms.false:
                    block, env = self._goes_to(region, op, 0 if condition is self.terms.true else 1, env)
                else:
                    return self._fork(region, op, condition, env)
            else:
                if end == "tt.return" and not self.calls:
                    self._close(op)
                return end, values

    def _close(self, op: Op) -> None:
        """The program ends, and its shared memory goes to another one. On some targets the end of a wave waits for copies to it."""
        for copy_ in self.shared.under_way():
            if copy_.reads or not self.copies_end:
                raise NotProved("a copy is not waited for before the kernel ends", copy_.op)

    def _goes_to(self, region: Region, op: Op, which: int, env: dict[str, Any]) -> tuple[Block, dict[str, Any]]:
        label, passed = op.branches[which]
        block = next(b for b in region.blocks if b.label == label)
        return block, {**env, **{name: env[x] for (name, _), x in zip(block.arguments, passed)}}

    def _fork(self, region: Region, op: Op, condition: Term, env: dict[str, Any]) -> tuple[str, list[Any]]:
        """Go both ways to the end of the function."""
        self.paths += 1
        if self.paths > MOST_PATHS:
            raise NotProved("too many ways through the kernel", op)

        def way(which: int) -> list[Any]:
            block, inner = self._goes_to(region, op, which, dict(env))
            return self._from(region, block, inner)[1]

        return "tt.return", self.both_ways(condition, way, op, ends=not self.calls)

    def both_ways(self, condition: Term, way: Callable[[int], list[Any]], op: Op, ends: bool = False) -> list[Any]:
        """Do what is done where a condition holds, way(0), and where not, way(1); -> what these give. ends: the kernel, on either."""
        effects, shared, frames = self.effects, self.shared, self.frames
        did, values, memories, counts = [], [], [], []
        for which in (0, 1):
            self.effects, self.shared = [], shared.copied()
            self.frames = [*map(copy_of, frames), Frame(name=f"way {which}")]
            self.conditions.append(condition if which == 0 else self.terms.no(condition))
            values.append(way(which))
            self.conditions.pop()
            self.shared.end_of_body(shared.cells)
            did.append(self.effects)
            memories.append(self.shared)
            counts.append(self.frames[-1].counts)
        self.effects, self.frames = effects, frames
        if not ends:
            self.shared = memories[0].merged(memories[1], condition, op)
        for name in sorted({*counts[0], *counts[1]}):
            self.frames[-1].counts[name] = self.frames[-1].counts.get(name, 0) + 1
        self.branch(condition, did)
        self.terms.at = op
        return [chosen(self, condition, a, b, op) for a, b in zip(*values)]

    def branch(self, condition: Term, ways: Sequence[Sequence[Term]]) -> None:
        """What is done on a condition."""
        first, second = ways
        if not first and not second:
            return
        if condition.op == "not" or condition.op == "lt0" and self.terms.no(condition) < condition:
            condition, first, second = self.terms.no(condition), second, first
        t = self.terms
        if not second or not first:  # a store under a condition is a masked one
            only, on = (first, condition) if first else (second, t.no(condition))
            if all(x.op == "store" for x in only):
                for x in only:
                    self.effects.append(t.store(x.data, x.args[0], t.both(on, x.args[1]), t.assuming(x.args[2], [on])))
                return
        self.effects.append(t.node("branch", len(first), (condition, *first, *second), "effect"))

    def decided(self, condition: Term) -> Term:
        """A condition, or what the way here says of it."""
        return self.terms.assuming(condition, self.conditions) if self.conditions else condition

    def block(
        self, block: Block, env: dict[str, Any], first: int = 0, in_case: bool = False
    ) -> tuple[str, list[Any], Op]:
        """Run a block from an operation on. in_case: that operation is a loop of which all is said that is behind it."""
        for number, op in enumerate(block.ops[first:], first):
            if op.name == "scf.for" and not (in_case and number == first):
                return self._loop_and_rest(block, number, env)
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise NotProved("it runs for too long", op)
            self.terms.at = op
            name = op.name
            if name in ENDS:
                return name, [env[x] for x in op.operands], op
            if name in ("cf.br", "cf.cond_br"):
                return name, [], op
            if self.ended and op.name not in ENDS:
                raise NotProved("what is done behind the last tile", op)
            self.env = env
            self.line = self.line if self.calls else op.line
            if name in TAKES_PLACE:
                self._place_is_free(op)
            control = CONTROL.get(name)
            if control is not None:
                results = control(self, op, env)
            else:
                handler = TABLE.get(name)
                if handler is None:
                    several = "barrier" in name or "warp" in name
                    why = "not modelled: warps in partitions, and what they wait for" if several else "not known"
                    raise NotProved(f"{name} is {why}", op)
                results = handler(self, op, [env[x] for x in op.operands])
                if op.results and op.has_promises:
                    hinted(self, op, results[0])
            for key, value in zip(op.results, results):
                env[key] = value
        return "", [], block.ops[-1] if block.ops else None  # type: ignore[return-value]

    def _loop_and_rest(self, block: Block, number: int, env: dict[str, Any]) -> tuple[str, list[Any], Op]:
        """Run a loop and what is behind it in its block; where slots are used there whose number depends on how often the loop ran, once for
        each remainder of that: all of them must have the same effects."""
        op, state, before = block.ops[number], self.state(), dict(env)
        try:
            return self.block(block, env, number, True)
        except (NeedCase, NeedConstant) as need:
            if (found := self._cases(op, need)) is None:
                raise
        trips, atom, modulus = found
        t, ends, accesses, given = self.terms, [], [], []
        for r in range(modulus):
            self.back_to(state)
            more = trips.poly.get((), 0)
            self.terms.residues = {**self.terms.residues, atom: (modulus, (r - more) % modulus)}
            env.update(before)
            try:
                end, values, last = self.block(block, env, number, True)
            except Hazard as error:  # of a case that no launch may be in
                raise NotProved(f"{error.why}, where a loop before runs {modulus} n + {r} times", error.op) from None
            if end in ("cf.br", "cf.cond_br"):
                raise NotProved("slots that are read behind a loop before the function goes on elsewhere", op)
            counts = [f.counts for f in self.frames]
            ends.append((values, self.shared, self.effects, counts))
            accesses += self.accesses[len(state[0][1]) :]
            given.append(self.given)
        self.terms.residues = state[1][-1]
        self.accesses = [*state[0][1], *accesses]
        self.given = {x: name for x, name in given[0].items() if all(x in its for its in given)}
        if any(x[2:] != ends[0][2:] for x in ends):
            raise NotProved("what is stored behind a loop depends on the remainder of its number of iterations", op)
        values, self.shared = ends[0][:2]
        for r, (its, shared, *_) in enumerate(ends[1:], 1):
            condition = t.is_zero(t.add(t.rem(trips, t.integer(modulus)), t.integer(-r)))
            values = [chosen(self, condition, a, b, op) for a, b in zip(its, values)]
            if end != "tt.return":
                self.shared = shared.merged(self.shared, condition, op)
        return end, values, last

    def _cases(self, op: Op, need: NeedCase | NeedConstant) -> tuple[Term, Term, int] | None:
        """(how often a loop runs, the atom of that number, by how many remainders) that decides which slots are used behind it; None where
        that is another loop's."""
        trips, modulus = self.trips.get(op.line, (self.terms.integer(0), 1))
        atom = self.terms._atom(self.terms.add(trips, self.terms.integer(-trips.poly.get((), 0))))
        if atom is None or trips.low < 0 or atom in self.terms.residues:
            return None
        if isinstance(need, NeedCase):
            mine = need.op is op
        else:
            mine, modulus = atom in subterms([need.index]), lcm(modulus, need.extent)
        return (trips, atom, modulus) if mine and modulus <= MOST_CASES else None

    @cached_property
    def _last_uses(self) -> dict[int, int]:
        return last_uses(self.module.entry)

    def _place_is_free(self, op: Op) -> None:
        """No copy is under way to, or from, shared memory that this operation may be given, as nothing uses it any more. Where half of the
        warps is a stage behind it needs none."""
        if self.shared.staged and (
            "ttg.shared" not in self.module.attributes or op.attribute("allocation.offset") is not None
        ):
            raise NotProved(f"{op.name} needs shared memory in a stage", op)
        for copy_ in self.shared.under_way():
            own = {key[0] for key, _ in copy_.cells}
            own |= {key[0] for key, cells in self.shared.cells.items() if any(copy_ in cell.copies for cell in cells)}
            if any(self._last_uses.get(line, 0) < self.line for line in own):
                raise NotProved(f"{op.name} may be given shared memory that a copy still goes to", op)

    def pure_block(self, block: Block, env: dict[str, Any]) -> list[Any]:
        """The results of a block that has no effects."""
        effects, outer = self.effects, self.env
        self.effects = []
        _, values, op = self.block(block, env)
        if self.effects:
            raise NotProved("a store in a function of elements", op)
        self.effects, self.env = effects, outer
        return values

    # --- services

    def unset(self, element: str, shape: tuple[int, ...] | None) -> Term:
        """What nobody has set, of a shape. The source's may be chosen as it suits: 0; that of the other side may be anything, at each index and in
        each iteration something else."""
        t = self.terms
        if self.side == 0:
            return zero(t, element)
        t.fresh_numbers += 1
        at = (*indices(t, shape or ()), *(t.integer_of(f.loop) for f in self.frames if f.loop is not None))
        made = t.node("unset", t.fresh_numbers, at, element)
        return t.integer_of(made) if is_integer(element) else made

    def applied(self, x: Tensor) -> Term:
        """The term of a tensor; of a big one as a function that is applied, so that it is not copied for each index that it is taken at."""
        t = self.terms
        if not larger_than(x.term, BIG):
            return argument(t, x)
        at = [t.fresh("idxf", "int", 0, n - 1) for n in x.shape]
        by = {symbol_of(t.index(d, n)): t.integer_of(a) for d, (n, a) in enumerate(zip(x.shape, at)) if n > 1}
        body = t.lam(t.substitute(argument(t, x), by), [a if n > 1 else None for a, n in zip(at, x.shape)])
        function = t.node("tensor", x.shape, (body,), "lam")
        made = t.node("at", x.shape, (function, *(t.index(d, n) for d, n in enumerate(x.shape))), x.element)
        return t.integer_of(made) if is_integer(x.element) else made

    # --- versions of memory

    def version(self, base: Term) -> Term:
        """Which stores come before a load through `base`: how many in each loop and branch around it, and in which iterations."""
        name = reached(base)
        path, rounds = [], []
        last = 0
        for frame in self.frames:
            if name == UNKNOWN or self.strict:
                seen = tuple(sorted(frame.counts.items()))
            else:
                seen = tuple((k, frame.counts[k]) for k in (name, UNKNOWN, ACQUIRE) if frame.counts.get(k))
            inside = frame.loop is not None and (
                {name, UNKNOWN, ACQUIRE} & frame.known or (name == UNKNOWN or self.strict) and frame.known
            )
            if seen or inside or frame.loop is None:
                path.append(("loop" if inside else frame.name, seen))
            if inside:
                rounds.append(self.terms.integer_of(frame.loop))
            last = len(path) if seen or inside else last
        return self.terms.node("version", tuple(path[:last]), rounds, "version")

    def stored(self, name: str) -> None:
        """A store to an argument has happened, or an atomic operation that loads behind it wait for. Raises: StoresTo where the loop around it did
        not know."""
        for frame in self.frames:
            if frame.loop is not None and name not in frame.known:
                raise StoresTo(name, frame)
        frame = self.frames[-1]
        frame.counts[name] = frame.counts.get(name, 0) + 1

    def inside(self) -> tuple[tuple[Term, Term], ...]:
        """The loops around what is done now."""
        return tuple((f.loop, f.trips) for f in self.frames if isinstance(f, LoopFrame) and f.loop is not None)


@dataclass
class LoopFrame(Frame):
    trips: Term | None = None


def copy_of(frame: Frame) -> Frame:
    again = copy(frame)
    again.counts = dict(frame.counts)
    return again


def zero(t: Terms, element: str) -> Term:
    """0 of a type, as a constant of a module has it."""
    if element == "i1":
        return t.false
    if is_integer(element):
        return t.integer(0)
    if element == "ptr":
        return t.pointer(t.node("null", (), (), "ptr"), t.integer(0))
    return t.node("float", "0.000000e+00", (), element)


def larger_than(term: Term, most: int) -> bool:
    """Whether a term has more than `most` nodes, those of functions that are applied left out."""
    seen, todo = {term}, [term]
    while todo:
        for x in todo.pop().args:
            if x not in seen and x.op != "tensor":
                seen.add(x)
                todo.append(x)
        if len(seen) > most:
            return True
    return False


# --- control flow


@control("scf.if")
def _if(m: Machine, op: Op, env: dict[str, Any]) -> list[Any]:
    t = m.terms
    condition = m.decided(env[op.condition].term)
    if condition is t.true or condition is t.false:
        which = 0 if condition is t.true else 1
        if which >= len(op.regions):
            return []
        return m.region(op.regions[which], env)[1]

    def way(which: int) -> list[Any]:
        return m.region(op.regions[which], dict(env))[1] if which < len(op.regions) else []

    return m.both_ways(condition, way, op)


def chosen(m: Machine, condition: Term, a: Any, b: Any, op: Op) -> Any:
    """What is one value or another by a condition."""
    if a is b or a == b:
        return a
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        raise NotProved("a branch that gives what is no tensor", op)
    t = m.terms
    if is_integer(a.element):
        w = bits(a.element)
        term = t.reduced(t.select(condition, t.value(a.term, w), t.value(b.term, w)), w)
    else:
        term = t.select(condition, a.term, b.term)
    return Tensor(term, a.shape, a.element, a.pointee)


@control("tt.call")
def _call(m: Machine, op: Op, env: dict[str, Any]) -> list[Any]:
    """A function that is not inlined. Both sides may have one where the other has its body."""
    function = m.module.functions.get(op.callee)
    if function is None or m.calls >= MOST_CALLS:
        raise NotProved("a call of what is not known", op)
    m.calls += 1
    _, values = m.region(function.region, {name: env[x] for (name, _), x in zip(function.arguments, op.operands)})
    m.calls -= 1
    return values
