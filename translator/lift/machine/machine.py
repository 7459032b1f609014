"""One program of a Gluon kernel, run in the order that its barriers give, with tensors as expressions.

Integers are numbers and expressions at once, so that control flow is decided and what is computed can be told for every size.
Copies and matrix products happen when they are issued, which is what their waits make visible; partitions take turns where a
barrier makes one wait. What is stored to global memory is the result: `Effect`s, in order, with the loops around them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gluonize.lift.values.barriers import Barrier
from gluonize.lift.values.induction import Moving, moved, steps_of, strides_of, while_strides
from gluonize.lift.values.order import MemoryOrder, Reordered
from gluonize.lift.values.recurrences import Carrying, held_positions
from gluonize.lift.values.scalars import Expr, Scalar, apply, atom, atoms_of, ceil_div, combine, const, number, terms
from gluonize.lift.values.slots import Memory, Unreadable
from gluonize.lift.values.tensors import Graph, Node, Value
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Block, Op, Region

MOST_STEPS = 400_000


class NotLifted(Exception):
    """Why a kernel cannot be lifted, and the operation at which that shows; certain: whatever other sizes say."""

    def __init__(self, why: str, op: Op | None = None, certain: bool = False):
        super().__init__(why)
        self.why, self.op, self.certain = why, op, certain


@dataclass(frozen=True, eq=False)
class Loop:
    """One execution of a loop. key: its iteration's atom; around: the loops around it; trips: how often it runs."""

    op: Op
    key: Expr
    low: Scalar
    step: Scalar
    trips: Scalar | None
    around: tuple["Around", ...]
    unsigned: bool = False


@dataclass(frozen=True)
class Around:
    """A loop in a certain iteration, or a branch: `condition` is what decided it (`loop` is None then)."""

    op: Op
    loop: Loop | None = None
    iteration: int = 0
    condition: Scalar | None = None
    taken: int = 0


@dataclass(frozen=True, eq=False)
class Effect:
    """A store of one kind (`tile`, `scatter`, `reduce`, `store`, `atomic`) by `op` within the loops `around`."""

    op: Op
    kind: str
    operands: tuple[Node | Scalar | None, ...]
    around: tuple[Around, ...]
    attrs: tuple = ()


@dataclass
class Partition:
    """What runs for itself: the kernel, or a partition of a `warp_specialize`."""

    number: int
    around: list[Around] = field(default_factory=list)
    warps: int = 4


class Run:
    """One program. handlers: by operation, `handler(run, op, values) -> results`."""

    def __init__(
        self, module: Module, arguments: list[Value], program: tuple[int, ...], grid: tuple[int, ...],
        handlers: Mapping[str, Callable],
    ):  # fmt: skip
        self.module, self.arguments, self.handlers = module, arguments, handlers
        self.program, self.grid = program, grid
        self.number = next(_NUMBERS)
        self.clusters = module.number("ttg.num-ctas") > 1
        self.graph = Graph()
        self.memory, self.order = Memory(self.graph), MemoryOrder()
        self.barriers: dict[tuple, Barrier] = {}
        self.effects: list[Effect] = []
        self.reached: set[Op] = set()
        self.counted: set[tuple[Op, int]] = set()  # loops whose count is no constant, and how often they ran
        self.deciding: set[str] = set()  # arguments that counts of loops are made of
        self.allocations = 0
        self.steps, self.most = 0, MOST_STEPS
        self.loops = 0
        self.part = Partition(0, warps=module.warps)
        self.moved = False
        self.groups: list[Callable[[], None]] = []

    @property
    def around(self) -> tuple[Around, ...]:
        return tuple(self.part.around)

    def go(self) -> "Run":
        """Run to the end. Raises: NotLifted."""
        entry = self.module.entry
        values = {name: value for (name, _), value in zip(entry.arguments, self.arguments)}
        for said in self._region(entry.region, values):
            raise NotLifted(f"it waits for ever: {said}")
        return self

    # --- regions

    def _region(self, region: Region, values: dict[str, Value]) -> Iterator[str | None]:
        """Run a region; what it gives back is the generator's value."""
        block: Block | None = region.blocks[0]
        part, depth = self.part, len(self.part.around)
        while block is not None:
            result, label, passed = yield from self._block(block, values, region)
            if label is None:
                del part.around[depth:]
                return result
            block = next(b for b in region.blocks if b.label == label)
            values.update(zip((name for name, _ in block.arguments), passed))
        return []

    def _block(self, block: Block, values: dict[str, Value], region: Region) -> Iterator[str | None]:
        for op in block.ops:
            self.steps += 1
            if self.steps > self.most:
                raise NotLifted("it runs for too long", op)
            self.reached.add(op)
            name = op.name
            if name in ENDS:
                return [values[x] for x in op.operands], None, []
            if name in ("cf.br", "cf.cond_br"):
                label, passed = yield from self._branch(op, values, region)
                return [], label, passed
            out = yield from self._one(op, name, values)
            values.update(zip(op.results, out or ()))
        return [], None, []

    def _one(self, op: Op, name: str, values: dict[str, Value]) -> Iterator[str | None]:
        control = CONTROL.get(name)
        if control is not None:
            return (yield from control(self, op, values))
        given = [values[x] for x in op.operands]
        if name in WAITS:
            yield from self._wait(op, given)
            return []
        handler = self.handlers.get(name)
        if handler is None:
            raise NotLifted(f"{name} has no meaning without the machine that it is for", op)
        try:
            out = handler(self, op, given)
        except (Unreadable, Reordered) as error:
            raise NotLifted(str(error), op, certain=isinstance(error, Reordered)) from None
        if name in MAKES_PROGRESS:
            self.moved = True
        return out

    def _branch(self, op: Op, values: dict[str, Value], region: Region) -> Iterator[str | None]:
        """The block that comes next, and what is passed to it.

        Where both ways only compute numbers and meet again (`if late: return pid`), the numbers are either's, as the condition says.
        """
        if op.name == "cf.br":
            label, passed = op.branches[0]
            return label, [values[x] for x in passed]
        condition = decided(values[op.condition], op)
        ways = []
        for label, passed in op.branches:
            block = next(b for b in region.blocks if b.label == label)
            given = [values[x] for x in passed]
            if block.ops and all(x.name.startswith("arith.") for x in block.ops[:-1]) and block.ops[-1].name == "cf.br":
                own = values | dict(zip((name for name, _ in block.arguments), given))
                _, label, given = yield from self._block(block, own, region)
            ways.append((label, given))
        (label, first), (other, second) = ways
        if label == other and first and all(isinstance(x, Scalar) for x in (*first, *second)):
            return label, [combine("select", condition, a, b) for a, b in zip(first, second)]
        taken = 0 if condition.value else 1
        # One way ends here, or is another one: what follows is done where the condition says so.
        self.part.around.append(Around(op, None, 0, condition, taken))
        label, passed = op.branches[taken]
        return label, [values[x] for x in passed]

    def _wait(self, op: Op, given: list[Value]) -> Iterator[str | None]:
        pred = given[2] if op.name == "ttng.wait_barrier" and len(given) > 2 and isinstance(given[2], Scalar) else None
        if pred is not None and not pred.value:
            return
        barrier, phase = self.barrier(given[0], op), decided(given[1], op).value & 1
        while barrier.phase == phase:
            yield f"{op} for phase {phase} of {given[0].alloc.name or 'a barrier'}"

    def barrier(self, view: Value, op: Op) -> Barrier:
        """Raises: NotLifted for a barrier that was not initialised."""
        found = self.barriers.get(view.key)
        if found is None:
            raise NotLifted("a barrier is used before it is initialised", op)
        return found

    # --- control flow

    def _for(self, op: Op, values: dict[str, Value]) -> Iterator[str | None]:
        header = op.for_loop
        low, high, step = (decided(values[x], op) for x in (header.low, header.high, header.step))
        if step.value <= 0:
            raise NotLifted("a loop whose step is not positive", op)
        trips = Scalar(max(0, -(-(high.value - low.value) // step.value)), how_often(low.expr, high.expr, step.expr))
        loop = Loop(op, self._key(), low, step, trips, self.around, header.unsigned)
        if not trips.expr.is_const:
            self.counted.add((op, trips.value))
            self.deciding |= {x[1] for x in atoms_of(trips.expr) if x[0] == "arg"}
        body = op.regions[0]
        names = [name for name, _ in header.bindings]
        carried = [values[x] for _, x in header.bindings]
        first = list(carried)
        strides = strides_of(self._alone, body, names, values)
        shifts = Moving(self.graph, steps_of(self._alone, op, values), carried)
        held = self._hold(op, loop, carried, shifts.steps)
        for i in range(trips.value):
            count, inside = Scalar(i, loop.key), Around(op, loop, i)
            values[header.variable] = combine("add", low, combine("mul", count, step))
            for k, (name, value) in enumerate(zip(names, carried)):
                values[name] = moved(first[k], strides.get(name), count, value)
                values[name] = shifts.told(k, count, values[name], (*self.around, inside))
            self._give(op, held, i, names, values)
            carried = yield from self._body(body, values, inside)
            if held is not None:
                held.bodies.append({k: carried[k] for k in held.positions})
        if held is not None:
            for k in held.positions:
                carried[k] = Node(
                    "loop", (held, k), (), held.first[k].type, names[k].lstrip("%"), op.place, self.around
                )
        ends = [moved(first[k], strides.get(name), trips, carried[k]) for k, name in enumerate(names)]
        return [shifts.told(k, trips, x, self.around) for k, x in enumerate(ends)]

    def _hold(self, op: Op, loop: Loop, carried: list[Value], moved: Container[int]) -> Carrying | None:
        """What stands for the carried tensors of a loop that is no sum of products; None for any other."""
        if loop.trips is not None and loop.trips.expr.is_const:
            return None
        positions = tuple(k for k in held_positions(op) if k not in moved)
        if not positions or not all(isinstance(carried[k], Node) for k in positions):
            return None
        return Carrying(loop, positions, {k: carried[k] for k in positions})

    def _give(self, op: Op, held: Carrying | None, i: int, names: list[str], values: dict[str, Value]) -> None:
        """Iteration `i` of such a loop gets names for what is carried to it."""
        for k in held.positions if held is not None else ():
            kind, name = held.first[k].type, names[k].lstrip("%")
            values[names[k]] = self.graph.node("carried", (), kind, (op.line, k, held.loop.key, i), name, op.place, ())

    def _alone(self, op: Op, given: list[Scalar]) -> Value:
        return self.handlers.get(op.name)(self, op, given)[0]  # type: ignore[misc]

    def _key(self) -> Expr:
        self.loops += 1
        return atom("it", (self.number, self.loops))

    def _body(self, region: Region, values: dict[str, Value], around: Around) -> Iterator[str | None]:
        part = self.part
        part.around.append(around)
        out = yield from self._region(region, values)
        part.around.pop()
        return out

    def _while(self, op: Op, values: dict[str, Value]) -> Iterator[str | None]:
        before, after = op.regions
        names = [name for name, _ in op.bindings]
        carried = [values[x] for _, x in op.bindings]
        first, key, i = list(carried), self._key(), 0
        strides = while_strides(self._alone, op, values)
        inner = [name for name, _ in after.blocks[0].arguments]
        loop = Loop(op, key, number(0), number(1), None, self.around)
        while True:
            count = Scalar(i, key)
            for k, (name, value) in enumerate(zip(names, carried)):
                values[name] = moved(first[k], strides.get(k), count, value)
            go, *passed = yield from self._region(before, values)
            if not decided(go, op).value:
                return passed
            values.update(zip(inner, passed))
            carried = yield from self._body(after, values, Around(op, loop, i, go))
            i += 1

    def _if(self, op: Op, values: dict[str, Value]) -> Iterator[str | None]:
        condition = decided(values[op.condition], op)
        branches = op.regions
        if op.results and len(branches) == 2 and all(_pure(region) for region in branches):
            both = []
            for region in branches:
                both.append((yield from self._region(region, values)))
            if all(isinstance(x, Scalar) for out in both for x in out):
                return [combine("select", condition, a, b) for a, b in zip(*both)]
        which = 0 if condition.value else 1
        if which >= len(branches) or not branches[which].blocks:
            return []
        return (yield from self._body(branches[which], values, Around(op, None, 0, condition, which)))

    def _specialize(self, op: Op, values: dict[str, Value]) -> Iterator[str | None]:
        captured = [values[x] for x in op.captures]
        yield from ()  # its partitions wait for each other, not for what is around them
        outer, live, out = self.part, {}, []
        for number_, region in enumerate(op.regions):
            own = dict(values)
            if number_:
                names = [name for name, _ in region.blocks[0].arguments]
                own.update(zip(names, captured))
            warps = region.warps or self.module.warps
            live[number_] = (Partition(number_, list(outer.around), warps), self._region(region, own))
        while live:
            self.moved, blocked, before = False, [], len(live)
            for number_ in list(live):
                self.part, running = live[number_]
                try:
                    blocked.append(next(running))
                except StopIteration as end:
                    out = end.value if number_ == 0 else out
                    del live[number_]
            self.part = outer
            if live and not self.moved and len(live) == before:
                raise NotLifted(f"its partitions wait for each other: {blocked[0]}", op)
        return out or []


def how_often(low: Expr, high: Expr, step: Expr) -> Expr:
    """The iterations of `range(low, high, step)`: of a loop that begins two tiles late, two less than of the whole one."""
    span, whole = apply("sub", high, low), 0
    if step.is_const:
        whole, _ = divmod(terms(span).get((), 0), step[1])
        whole = min(whole, 0)
    span = apply("sub", span, apply("mul", const(whole), step))
    return apply("max", apply("add", ceil_div(span, step), const(whole)), const(0))


def decided(value: Value, op: Op) -> Scalar:
    """An integer that control flow may ask for. Raises: NotLifted for one that comes from memory."""
    if isinstance(value, Scalar):
        return value
    raise NotLifted("what is done depends on a number that is read from memory", op)


def _pure(region: Region) -> bool:
    return all(op.name.startswith("arith.") or op.name == "scf.yield" for op in region.walk())


_NUMBERS = itertools.count()  # of runs, whose iterations are told apart by them
ENDS = frozenset({"scf.yield", "tt.return", "ttg.warp_return", "ttg.warp_yield", "scf.condition", "tt.reduce.return"})
WAITS = frozenset({"ttng.wait_barrier", "amdg.wait_barrier"})
MAKES_PROGRESS = frozenset(
    {"ttng.arrive_barrier", "ttng.tc_gen5_commit", "ttng.tc_gen5_mma", "ttng.tc_gen5_mma_scaled", "ttng.barrier_expect"}
    | {"ttng.async_tma_copy_global_to_local", "ttng.async_tma_gather", "amdg.arrive_barrier", "ttng.clc_try_cancel"}
    | {"amdg.async_tdm_copy_global_to_local", "amdg.async_tdm_copy_local_to_global", "ttng.async_copy_mbarrier_arrive"}
)
CONTROL: dict[str, Any] = {
    "scf.for": Run._for,
    "scf.while": Run._while,
    "scf.if": Run._if,
    "ttg.warp_specialize": Run._specialize,
}
