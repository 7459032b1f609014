"""Plan the software pipeline of one loop.

`plan_loop` reads facts only (the trace, def-use webs, Triton's decisions); no text is made here.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from translator.optimize.tuning import Tuning
from translator.pipeline.ahead import NotAhead, what_runs_ahead
from translator.pipeline.depth import fitting
from translator.pipeline.loop_range import every_iteration, index_dtype, int_of, loop_bounds, trips_of
from translator.pipeline.plan import NotPipelined, PipelinedLoad, PipelinePlan
from translator.pipeline.schedule import copy_schedule, held_schedule, register_schedule
from translator.pipeline.span import constant_span
from translator.pipeline.tail import TailProof
from translator.pipeline.tensor_tiles import DescriptorTile
from translator.pipeline.ways import is_held, loads_in, one_way, staged_of, strided_tiles
from translator.rewrite import callees, descriptors, tdm

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter


def plan_loop(rw: "FunctionRewriter", loop: ast.For, hold: bool = True) -> PipelinePlan | NotPipelined:
    """The pipeline of `loop`, or why there is none.

    hold: loads that Triton keeps in registers may run ahead. Those that cannot stay where they are.
    """
    if rw.unrolled(loop):
        return NotPipelined(loop.lineno, "it is unrolled at compile time")
    found = [c for s in loop.body if rw.taken(s) for c in loads_in(rw, s)]
    held = [c for c in found if is_held(rw, c)]
    staged = [c for c in found if c not in held]
    if not found:
        return NotPipelined(loop.lineno, "Triton fetches no load of its body ahead")
    plan = _plan(rw, loop, found if hold else staged)
    if isinstance(plan, PipelinePlan) or not held:
        return plan
    if hold:
        possible = [
            c for c in held if isinstance(_plan(rw, loop, [x for x in found if x in staged or x is c]), PipelinePlan)
        ]
        if possible:
            return _plan(rw, loop, [c for c in found if c in staged or c in possible])
    return _plan(rw, loop, staged) if staged else plan


def _plan(rw: "FunctionRewriter", loop: ast.For, found: list[ast.Call]) -> PipelinePlan | NotPipelined:
    """The pipeline of `loop` in which the loads in `found` run ahead."""

    def no(reason: str) -> NotPipelined:
        return NotPipelined(loop.lineno, reason, True)

    if not found:
        return no("its loads stay in registers")
    bounds = loop_bounds(rw, loop, either_way=True)
    if bounds is None or not isinstance(loop.target, ast.Name) or loop.orelse:
        return no("it is not a loop over a range")
    low, high, step = bounds
    atoms = every_iteration(rw, loop.body)
    for call in found:
        if len(rw.visits(call)) != 1:
            return no(f"the load in line {call.lineno} is unrolled")
        holders = [a for a in atoms if call in loads_in(rw, a)]
        if not holders or isinstance(holders[0], (ast.If, ast.With)):
            return no(f"the load in line {call.lineno} is conditional")
    index = loop.target.id
    if any(d.name == index and loop in d.in_loop and d.node is not loop for w in rw.webs.all for d in w.definitions):
        return no("its index is assigned in the body too")

    tail = TailProof(rw, loop, low, high, step)
    tiles, not_tiles = strided_tiles(rw, loop, bounds, found)
    plain = [c for c in found if c not in tiles]
    held = [c for c in plain if is_held(rw, c)]
    staged = [c for c in found if c not in held]
    try:
        runs = what_runs_ahead(rw, loop, tail, atoms, found, plain)
    except NotAhead as reason:
        return no(str(reason))

    loads = []
    ways, copies, buffers = {c: staged_of(rw, c) for c in held}, False, 1
    if staged:
        fetched, copies, buffers = one_way([staged_of(rw, c) for c in staged], [c in tiles for c in staged])
        ways |= dict(zip(staged, fetched))
        if copies and buffers < 2:
            return no("a copy needs two buffers")
        buffers = rw.unit.tuning.num_buffers or fitting(rw, ((c, ways[c]) for c in staged), buffers)
        if buffers < (2 if copies else 1):
            return no("LDS has no room for its tiles")
    span = constant_span(rw, low, high)
    trips = trips_of(rw, low, high, step, span and span.value)
    # Triton's pipeliner peels such a loop until nothing is left of it.
    descending = step is not None and int_of(rw, step) < 0
    few = trips is not None and not descending and 0 < trips <= buffers + (not copies) and bool(staged)
    plain = replace(rw.unit.tuning, num_buffers=0) == Tuning()
    written_out = trips if few and plain and not _leaks(rw, loop) else None
    if written_out is not None and held:
        return _plan(rw, loop, staged)  # written out, the loads stand one after the other
    for call in found:
        way = ways[call]
        given = callees.bind(rw, call, callees.callee_of(rw, call))
        (statement,) = [a for a in atoms if call in loads_in(rw, a)]
        owner = callees.callee_of(rw, call).owner
        if owner is not None and descriptors.is_descriptor(rw.fact(owner)):
            offsets, bounds = given.get("offsets"), descriptors.bounds_of(rw, owner)
            name = _name(statement, call, {"pointer": owner})
            if tdm.uses_data_mover(rw, descriptors.origin_of(rw, owner)):
                if (
                    not isinstance(offsets, (ast.List, ast.Tuple))
                    or not isinstance(owner, ast.Name)
                    or tail.varies(owner)
                ):
                    return no(f"the descriptor load in line {call.lineno} is not a plain tile")
                whole = len(bounds) == len(offsets.elts)
                covered = written_out is not None or (whole and any(map(tail.ends, offsets.elts, bounds)))
                tile = DescriptorTile(owner, tuple(offsets.elts), tuple(not tail.varies(o) for o in offsets.elts))
                loads.append(PipelinedLoad(name, call.lineno, call, statement, way, covered, False, tile))
                continue
            if not descriptors.fetchable(rw, owner) or not isinstance(offsets, (ast.List, ast.Tuple)):
                return no(f"the descriptor load in line {call.lineno} is not a plain tile")
            if way.copy == "tensor":
                way = replace(way, copy="global", source=descriptors.fetch_layout(rw, call, owner))
            covered = written_out is not None or any(map(tail.ends, offsets.elts, bounds))
            loads.append(PipelinedLoad(name, call.lineno, call, statement, way, covered, False))
            continue
        mask, other = given.get("mask"), given.get("other")
        masked = mask is not None and not callees.is_absent(rw, mask)
        if call in tiles:
            covered = written_out is not None or (masked and tail.implied(mask))
            name = _name(statement, call, given)
            loads.append(PipelinedLoad(name, call.lineno, call, statement, way, covered, False, tiles[call]))
            continue
        if set(given) - {"pointer", "mask", "other", "cache_modifier", "eviction_policy", "volatile"}:
            return no(f"the load in line {call.lineno} has arguments that a copy cannot take")
        if (
            masked
            and other is not None
            and not (callees.is_none(rw, other) or callees.is_zero(rw, other))
            and copies
            and call not in held
        ):
            return no(f"the load in line {call.lineno} fills masked lanes with something other than 0")
        covered = written_out is not None or (masked and tail.implied(mask))
        shrinking = not masked or tail.shrinks(mask)
        name = _name(statement, call, given)
        loads.append(PipelinedLoad(name, call.lineno, call, statement, way, covered, shrinking))
    tensor_loads = sum(load.tile is not None for load in loads)
    grouped = tensor_loads + len(held) < len(loads)
    if copies:
        schedule = copy_schedule(buffers, tensor_loads, grouped)
    else:
        schedule = register_schedule(buffers) if staged else held_schedule()
    return PipelinePlan(
        loop,
        loop.target.id,
        index_dtype(rw, loop),
        low,
        high,
        step,
        schedule,
        tuple(loads),
        tuple(atoms),
        runs.producer,
        runs.shared,
        runs.carried,
        runs.rolled_back,
        frozenset(tail.assumed),
        tuple((call.lineno, reason) for call, reason in not_tiles.items()),
        written_out,
        descending=descending,
        span=span,
    )


def _leaks(rw: "FunctionRewriter", loop: ast.For) -> bool:
    """Whether a later loop assigns a name of this one: written out, this one would hand it on as a carried variable."""
    inside = set(ast.walk(loop))
    own = {d.name for web in rw.webs.all for d in web.definitions if d.node in inside}
    around = [
        n for n in ast.walk(rw.tree) if isinstance(n, (ast.For, ast.While)) and n is not loop and loop in ast.walk(n)
    ]
    return any(
        d.name in own and d.loop_depth and (around or d.node.lineno > loop.lineno)
        for web in rw.webs.all
        for d in web.definitions
        if d.node not in inside
    )


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
