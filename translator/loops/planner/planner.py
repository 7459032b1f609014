"""Plan the software pipeline of one loop.

`plan_loop` rests on facts (the trace, def-use webs, Triton's decisions) and on what was decided before; no text is made here.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gluonize.decide.readback.staging import Staged
from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.loops.loop_range import (
    every_iteration,
    index_dtype,
    int_of,
    is_hinted_index,
    loop_bounds,
    trips_of,
    varies,
)
from gluonize.facts.loops.span import constant_span, known_trips
from gluonize.facts.made_descriptors import origin_of
from gluonize.facts.refusals import line_of
from gluonize.facts.syntax import unparsed
from gluonize.facts.webs import Definition
from gluonize.loops.loop.ahead import NotAhead, what_runs_ahead
from gluonize.loops.passes.stages import FEWEST_STORED
from gluonize.loops.plan.impossible import REFILLED, why_not
from gluonize.loops.plan.plan import LoopRange, NotPipelined, PipelinedLoad, PipelinePlan
from gluonize.loops.plan.schedule import Schedule, copy_schedule, held_schedule, refill_schedule, register_schedule
from gluonize.loops.plan.tiles.descriptors import DescriptorTile
from gluonize.loops.plan.tiles.strided import StridedTile
from gluonize.loops.plan.tiles.tail import TailProof
from gluonize.loops.planner import lds_room
from gluonize.loops.planner.depth import fitting, padded
from gluonize.loops.planner.fetched import (
    fetched_as,
    is_held,
    loaded_by_helpers,
    loads_in,
    one_way,
    staged_of,
    strided_tiles,
    waits_repeated,
)
from gluonize.loops.planner.overwritten import elsewhere, overwritten
from gluonize.loops.planner.specialize import asked_for
from gluonize.numbered import numbered
from gluonize.write.descriptors import descriptors, tdm
from gluonize.write.state.unit import Decided


class BesideRegisters(Exception):
    """Tiles of the descriptor that is made at `site` would be copied in a loop in which others go through registers."""

    def __init__(self, site: tdm.Site):
        super().__init__(f"descriptor {site}")
        self.site = site


def plan_loop(facts: FunctionFacts, decided: Decided, loop: ast.For, hold: bool = True) -> PipelinePlan | NotPipelined:
    """The pipeline of `loop`, or why there is none.

    hold: loads that Triton keeps in registers may run ahead. Those that cannot stay where they are.

    Raises: BesideRegisters, unless `decided` says that the descriptor stays plain.
    """
    if facts.unrolled(loop):
        return NotPipelined(loop.lineno, "it is unrolled at compile time")
    found = [c for s in loop.body if facts.taken(s) for c in loads_in(facts, s)]
    found = _waiting(facts, decided, found)
    held = [c for c in found if is_held(facts, c)]
    staged = [c for c in found if c not in held]
    if not found:
        if called := loaded_by_helpers(facts, loop.body):
            return NotPipelined(loop.lineno, f"its tiles are loaded by {' and '.join(called)}", True)
        return NotPipelined(loop.lineno, "Triton fetches no load of its body ahead")
    plan = _plan(facts, decided, loop, found if hold else staged)
    if isinstance(plan, PipelinePlan) or not held:
        return plan
    if hold:
        possible = [
            c
            for c in held
            if isinstance(_plan(facts, decided, loop, [x for x in found if x in staged or x is c]), PipelinePlan)
        ]
        if possible and isinstance(
            some := _plan(facts, decided, loop, [c for c in found if c in staged or c in possible]), PipelinePlan
        ):
            return some
    return _plan(facts, decided, loop, staged) if staged else plan


def _waiting(facts: FunctionFacts, decided: Decided, found: list[ast.Call]) -> list[ast.Call]:
    """The loads in `found` without vectors that are made in their own iteration instead of waiting in registers.

    Loads return in the order in which they were made: beside tiles that go through registers to LDS, whoever waits for a vector of this
    iteration waits for tiles of the next one too. Where the data mover fetches tiles, vectors go with them; where nothing else is on its
    way meanwhile, they are all that can be.
    """
    target, ahead = facts.kernel.target, decided.choices.asks("waiting-loads", "ahead")
    through = any(staged_of(facts, c).copy == "registers" for c in found)
    if ahead or through or not target.separate_matrix_pipe:
        return found
    return [c for c in found if not is_held(facts, c) or not waits_repeated(facts, c)] or found


def _plan(
    facts: FunctionFacts,
    decided: Decided,
    loop: ast.For,
    found: list[ast.Call],
    in_registers: frozenset[ast.Call] = frozenset(),
) -> PipelinePlan | NotPipelined:
    """The pipeline of `loop` in which the loads in `found` run ahead, those `in_registers` not through LDS."""
    try:
        return _planned(facts, decided, loop, found, in_registers)
    except NotAhead as reason:
        return NotPipelined(loop.lineno, str(reason), True)


def _planned(
    facts: FunctionFacts, decided: Decided, loop: ast.For, found: list[ast.Call], in_registers: frozenset[ast.Call]
) -> PipelinePlan | NotPipelined:
    """`_plan`. Raises: NotAhead where there is none."""
    bounds = _bounds(facts, loop, found)
    low, high, step = bounds
    atoms = every_iteration(facts, loop.body)
    _check_body(facts, loop, atoms, found)
    deepest = max(decided.choices.number("depth"), *(staged_of(facts, c).buffers for c in found)) + 1
    for call in found:
        if reason := overwritten(facts, loop, bounds, call, deepest):
            raise NotAhead(reason)

    tail = TailProof(facts, loop, low, high, step, deepest + decided.choices.number("l2-prefetch"))
    apart = elsewhere(facts, loop, found)
    tiles, not_tiles = strided_tiles(facts, decided, loop, bounds, found, in_registers)
    addressed = [c for c in found if c not in tiles]
    held = [c for c in addressed if is_held(facts, c)]
    staged = [c for c in found if c not in held]
    runs = what_runs_ahead(facts, loop, tail, atoms, found, addressed)
    fetch = _fetch(facts, decided, loop, staged, tiles, bool(held))
    ways = {c: staged_of(facts, c) for c in held} | fetch.ways
    refills = reads_early = False
    if fetch.copies and _plain(facts, decided, loop):
        refillable = not (why_not(facts, decided, loop.lineno, REFILLED) or runs.carried or runs.rolled_back)
        room, refills, reads_early = _room(facts, loop, fetch, tiles, refillable)
        if room.left:
            return _plan(facts, decided, loop, found, in_registers | {*room.left})
        tiles = room.tiles
    span = constant_span(facts, low, high)
    trips = trips_of(facts, low, high, step, span and span.value)
    # Triton's pipeliner peels such a loop until nothing is left of it.
    descending = step is not None and int_of(facts, step) < 0
    few = trips is not None and not descending and 0 < trips <= fetch.buffers + (not fetch.copies) and bool(staged)
    if facts.kernel.loose:  # with other sizes it has another number of iterations
        few = False
    written_out = trips if few and decided.choices.keeps_loops and not _leaks(facts, loop) else None
    if written_out is not None and held:
        return _plan(facts, decided, loop, staged)  # written out, the loads stand one after the other
    # A copy: what masks rest on is found next, and counts only where tiles past the end are fetched.
    assumed = set(tail.assumed)
    loads = _loads(facts, decided, tail, atoms, found, ways, tiles)
    dtype, asks_rest = index_dtype(facts, loop), ""
    if written_out is None and not tail.counts_on(dtype) and not (asks_rest := tail.rest_type(dtype)):
        raise NotAhead(f"nothing bounds `{unparsed(high)}` before the launch, so an index past it may overflow")
    if written_out is not None:  # only tiles that exist are fetched
        loads = [replace(load, covered=True) for load in loads]
    else:
        assumed = tail.assumed
    asks_start = tail.runs_asked and not asks_rest
    bounded_by = LoopRange(loop.target.id, dtype, low, high, step, descending, span, asks_start, asks_rest)
    return PipelinePlan(
        loop,
        bounded_by,
        _schedule(fetch, loads, held, refills, reads_early),
        tuple(loads),
        tuple(atoms),
        runs,
        frozenset(assumed | apart),
        tuple((call.lineno, reason) for call, reason in not_tiles.items()),
        fetch.asked,
        written_out,
    )


def _bounds(
    facts: FunctionFacts, loop: ast.For, found: list[ast.Call]
) -> tuple[ast.expr | None, ast.expr, ast.expr | None]:
    """(low, high, step) as `loop_bounds` gives them. Raises: NotAhead for no loop over a range, or no loads."""
    if not found:
        raise NotAhead("its loads stay in registers")
    bounds = loop_bounds(facts, loop, either_way=True)
    if bounds is None or not isinstance(loop.target, ast.Name) or loop.orelse:
        raise NotAhead("it is not a loop over a range")
    for end in bounds:
        if end is not None and varies(facts, loop, end):
            raise NotAhead(f"its body changes `{unparsed(end)}`, by which it is bounded")
    return bounds


def _check_body(facts: FunctionFacts, loop: ast.For, atoms: list[ast.stmt], found: list[ast.Call]) -> None:
    """Raises: NotAhead unless each load runs once in every iteration, whose number is the loop's index."""
    for call in found:
        if len(facts.visits(call)) != 1:
            raise NotAhead(f"the load in line {line_of(facts.frame, call)} is unrolled")
        if any(isinstance(n, ast.NamedExpr) for n in ast.walk(call)):
            raise NotAhead(f"the load in line {line_of(facts.frame, call)} gives a variable a value")
        holders = [a for a in atoms if call in loads_in(facts, a)]
        if not holders or isinstance(holders[0], (ast.If, ast.With)):
            raise NotAhead(f"the load in line {line_of(facts.frame, call)} is conditional")
    index = loop.target.id
    assigned = [d for w in facts.webs.all for d in w.definitions if d.name == index and loop in d.in_loop]
    if any(d.node is not loop and not is_hinted_index(facts, loop, d) for d in assigned):
        raise NotAhead("its index is assigned in the body too")


@dataclass(frozen=True)
class _Fetch:
    """How tiles come into LDS. ways: of each load; copies: by asynchronous copies; buffers: of each tile, asked: before there
    was to be room for them."""

    ways: dict[ast.Call, Staged]
    copies: bool
    buffers: int
    asked: int


def _fetch(
    facts: FunctionFacts,
    decided: Decided,
    loop: ast.For,
    staged: list[ast.Call],
    tiles: Mapping[ast.Call, StridedTile],
    holds: bool,
) -> _Fetch:
    """How the loads in `staged` are fetched. holds: others wait in registers. Raises: NotAhead where LDS has no room.

    What waits in registers for more than one iteration goes from one register to the next in each of them, and such a move waits for the
    load: nothing is further ahead then than one iteration.
    """
    if not staged:
        return _Fetch({}, False, 1, 0)
    theirs, by_tile = [fetched_as(facts, decided, c) for c in staged], [c in tiles for c in staged]
    if any(s.copy == "registers" for s in theirs) and (
        moved := [c for c in staged if _by_data_mover(facts, decided, c)]
    ):
        raise BesideRegisters(tdm.site_of(origin_of(facts, callees.callee_of(facts, moved[0]).owner)))
    fetched, copies, buffers = one_way(theirs, by_tile, _mixes(facts, decided, loop))
    if fitting(facts, zip(staged, fetched), buffers) < min(2, buffers):
        fetched, copies, buffers = one_way(theirs, by_tile, False)
    if copies and buffers < 2:
        raise NotAhead("a copy needs two buffers")
    if decided.choices.asks("warp-groups", "alternating") and not copies:
        buffers = max(buffers, FEWEST_STORED)
    if holds and not decided.choices.asks("depth", "launch"):
        buffers = min(buffers, 2 if copies else 1)
    asked = buffers
    buffers = decided.choices.number("depth") or fitting(facts, zip(staged, fetched), buffers)
    if buffers < (2 if copies else 1):
        raise NotAhead("LDS has no room for its tiles")
    ways = dict(zip(staged, fetched))
    return _Fetch(ways | padded(facts, ways, buffers), copies, buffers, asked)


def _room(
    facts: FunctionFacts, loop: ast.For, fetch: _Fetch, tiles: dict[ast.Call, StridedTile], refillable: bool
) -> tuple[lds_room.Room, bool, bool]:
    """What LDS has room for; whether its one slot is filled again after the last read, and whether tiles are read early for that.

    refillable: whether nothing else speaks against filling a slot again.
    """
    refills = refillable and all(call in tiles and is_held(facts, call) for call in fetch.ways)
    room = lds_room.fitted(facts, loop, fetch.ways, tiles, 1 if refills else fetch.buffers)
    if refillable and room.crowded and not (one_slot := lds_room.fitted(facts, loop, fetch.ways, tiles, 1)).left:
        return one_slot, True, True
    return room, refills, False


def _loads(
    facts: FunctionFacts, decided: Decided, tail: TailProof, atoms: list[ast.stmt], found: list[ast.Call],
    ways: dict[ast.Call, Staged], tiles: Mapping[ast.Call, StridedTile],
) -> list[PipelinedLoad]:  # fmt: skip
    loads: list[PipelinedLoad] = []
    for call in found:
        (statement,) = [a for a in atoms if call in loads_in(facts, a)]
        load = _load(facts, decided, tail, statement, call, ways[call], tiles.get(call))
        # What a variable is loaded with twice has a name, and a ring, for each load.
        loads.append(replace(load, name=numbered(load.name, {other.name for other in loads}.__contains__)))
    return loads


def _schedule(
    fetch: _Fetch, loads: list[PipelinedLoad], held: list[ast.Call], refills: bool, reads_early: bool
) -> Schedule:
    tensor_loads = sum(load.tile is not None for load in loads)
    grouped = tensor_loads + len(held) < len(loads)
    if refills:
        return refill_schedule(tensor_loads, grouped, reads_early)
    if fetch.copies:
        return copy_schedule(fetch.buffers, tensor_loads, grouped, any(load.stored for load in loads))
    return register_schedule(fetch.buffers) if fetch.ways else held_schedule()


def _by_data_mover(facts: FunctionFacts, decided: Decided, call: ast.Call) -> bool:
    """Whether a load is one of a descriptor of the tensor data mover."""
    owner = callees.callee_of(facts, call).owner
    described = owner is not None and callees.is_descriptor(facts.fact(owner))
    return described and tdm.uses_data_mover(facts, decided, origin_of(facts, owner))


def _plain(facts: FunctionFacts, decided: Decided, loop: ast.For) -> bool:
    """Whether nothing but parity is asked for: no depth, no other arrangement of the loop."""
    return decided.choices.keeps_depth and not asked_for(facts, decided, loop)


def as_triton(facts: FunctionFacts, decided: Decided, loop: ast.For) -> bool:
    """Whether the loop is written as Triton's compiler would write it, whatever its depth."""
    return decided.choices.keeps_loops and not asked_for(facts, decided, loop)


def holds_tiles(facts: FunctionFacts, decided: Decided, loop: ast.For) -> bool:
    """Whether loads may wait in registers: other strategies arrange the loop in another way, and 256 registers are too few."""
    if facts.kernel.target.has_few_registers or decided.choices.asks("waiting-loads", "own-iteration"):
        return False
    return as_triton(facts, decided, loop)


def _mixes(facts: FunctionFacts, decided: Decided, loop: ast.For) -> bool:
    """Whether some tiles of a loop may be copied while others go through registers: LDS is then filled as by Triton."""
    room = facts.kernel.lds_bytes <= facts.kernel.target.lds_bytes
    return (
        facts.kernel.target.has_async_copies
        and not facts.kernel.target.supports_tdm
        and room
        and as_triton(facts, decided, loop)
    )


def _load(
    facts: FunctionFacts,
    decided: Decided,
    tail: TailProof,
    statement: ast.stmt,
    call: ast.Call,
    way: Staged,
    tile: StridedTile | None,
) -> PipelinedLoad:
    """One load of the plan; tile: what the tensor data mover fetches.

    Raises: NotAhead for a load that cannot be fetched like that.
    """
    given = callees.bound(facts, call)
    owner = callees.callee_of(facts, call).owner
    if owner is not None and callees.is_descriptor(facts.fact(owner)):
        return _descriptor_load(facts, decided, tail, statement, call, way, owner, given.get("offsets"))
    name = _name(statement, call, given)
    mask = given.get("mask")
    masked = mask is not None and not callees.is_absent(facts, mask)
    covered = masked and tail.implied(mask)
    if tile is not None:
        return PipelinedLoad(name, call.lineno, call, statement, way, covered, None, tile)
    if set(given) - {"pointer", "mask", "other", "cache_modifier", "eviction_policy", "volatile"}:
        raise NotAhead(f"the load in line {line_of(facts.frame, call)} has arguments that a copy cannot take")
    shrinking = tail.shrinks(mask) if masked else frozenset()
    return PipelinedLoad(name, call.lineno, call, statement, way, covered, shrinking)


def _descriptor_load(
    facts: FunctionFacts,
    decided: Decided,
    tail: TailProof,
    statement: ast.stmt,
    call: ast.Call,
    way: Staged,
    owner: ast.expr,
    offsets: ast.expr | None,
) -> PipelinedLoad:
    """The load of a descriptor's tile. Raises: NotAhead for one that is not a plain tile."""
    bounds = descriptors.bounds_of(facts, owner)
    name = _name(statement, call, {"pointer": owner})
    plain = isinstance(offsets, (ast.List, ast.Tuple))
    if tdm.uses_data_mover(facts, decided, origin_of(facts, owner)):
        if not plain or not isinstance(owner, ast.Name) or tail.varies(owner):
            raise NotAhead(f"the descriptor load in line {line_of(facts.frame, call)} is not a plain tile")
        covered = len(bounds) == len(offsets.elts) and any(map(tail.ends, offsets.elts, bounds))
        tile = DescriptorTile(owner, tuple(offsets.elts), tuple(not tail.varies(o) for o in offsets.elts))
        return PipelinedLoad(name, call.lineno, call, statement, way, covered, None, tile)
    if not plain or not descriptors.fetchable(facts, owner):
        raise NotAhead(f"the descriptor load in line {line_of(facts.frame, call)} is not a plain tile")
    if tail.varies(owner):
        raise NotAhead(f"the descriptor of the load in line {line_of(facts.frame, call)} is made in the loop")
    return PipelinedLoad(name, call.lineno, call, statement, way, any(map(tail.ends, offsets.elts, bounds)), None)


def _leaks(facts: FunctionFacts, loop: ast.For) -> bool:
    """Whether a later loop assigns a name of this one: written out, this one would hand it on as a carried variable.

    Earlier loops come later too where a loop around both is written out. What a branch assigns, its other one may have to.
    """
    inside = set(ast.walk(loop))
    every = [d for web in facts.webs.all for d in web.definitions]
    own = {d.name for d in every if d.node in inside}
    around = [n for n in facts.nodes if n is not loop and loop in ast.walk(n)]
    again = any(isinstance(n, ast.For) and (facts.unrolled(n) or known_trips(facts, n) is not None) for n in around)
    branches = [n for n in around if isinstance(n, ast.If)]
    first = min((n.lineno for n in branches), default=0)
    before = {d.name for d in every if d.node.lineno < first}

    def leaks(d: Definition) -> bool:
        elsewhere = any(outer not in around for outer in d.in_loop)
        apart = any(_apart(branch, d.node, loop) for branch in branches) and d.name not in before
        return elsewhere and (again or d.node.lineno > loop.lineno) or apart

    return any(d.name in own and d.node not in inside and leaks(d) for d in every)


def _apart(branch: ast.If, one: ast.AST, other: ast.AST) -> bool:
    """Whether two nodes stand on different sides of a branch."""
    sides = [{n for s in body for n in ast.walk(s)} for body in (branch.body, branch.orelse)]
    return any(one in side and other not in side for side in sides)


def _name(statement: ast.stmt, call: ast.Call, given: dict[str, ast.expr]) -> str:
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        if statement.value is call or isinstance(statement.value, (ast.Call, ast.Attribute)):
            inner = statement.value
            while isinstance(inner, (ast.Call, ast.Attribute)) and inner is not call:
                inner = inner.func if isinstance(inner, ast.Call) else inner.value
            if inner is call:
                return statement.targets[0].id
    names = [n.id for n in ast.walk(given["pointer"]) if isinstance(n, ast.Name)]
    stem = names[0] if names else "tile"
    for suffix in ("_ptrs", "_ptr", "_pointers", "_pointer"):
        stem = stem.removesuffix(suffix)
    return stem
