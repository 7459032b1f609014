"""Set pipelined loops up, before any layout is demanded: plans, names, copies of the producer's syntax, what moves.

The copies stand at the same place in the source as the originals, so that facts and layouts of the trace apply to them.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.numbers.signs import Signs, obligation_at
from gluonize.facts.obligations import Obligation
from gluonize.facts.syntax import target_of
from gluonize.facts.variables.definitions import names_read
from gluonize.facts.webs import Web
from gluonize.loops.forms.branch import as_branch
from gluonize.loops.forms.kinds import named_loop
from gluonize.loops.forms.twins import Planning, Twins
from gluonize.loops.loop.clip import Clipped, clipped_masks
from gluonize.loops.loop.index_loads import Guard
from gluonize.loops.loop.loop import Fetched, PipelinedLoop, ReadTiles
from gluonize.loops.loop.reads import HeldRead, Read
from gluonize.loops.passes.passes import with_passes
from gluonize.loops.plan.plan import NotPipelined, PipelinedLoad, PipelinePlan
from gluonize.loops.plan.schedule import Once
from gluonize.loops.plan.tiles.tail import TailProof
from gluonize.loops.planner.planner import holds_tiles, plan_loop
from gluonize.loops.planner.specialize import asked_for, specialized
from gluonize.trace.front.trace import TensorFact
from gluonize.trace.model.elements import bits_of
from gluonize.write.accesses.addresses import wide_scalar
from gluonize.write.state.function_loops import FunctionLoops
from gluonize.write.state.writing import StateOf

# A base that moves costs about five scalar instructions per tile (a 64-bit addition and a new buffer descriptor), offsets
# that move cost two vector instructions per load.
FEWEST_LOADS = 2


def prepare(planning: Planning) -> None:
    """Plan every loop of the function, before any layout is demanded."""
    facts, decided, loops = planning.facts, planning.decided, planning.loops
    for loop in facts.for_loops:
        if not facts.taken(loop):
            continue
        plan = plan_loop(facts, decided, loop, holds_tiles(facts, decided, loop))
        if isinstance(plan, PipelinePlan) and (reason := _unsupported(facts, plan)):
            plan = NotPipelined(loop.lineno, reason, True)
        if asked_for(facts, decided, loop):
            split = specialized(facts, decided, loop, plan)
            if isinstance(split, str):
                loops.whole[loop] = split
            else:
                plan = split
        if isinstance(plan, PipelinePlan):
            plan = as_branch(facts, decided.choices, plan)
        loops.plans.append(plan)
        if isinstance(plan, PipelinePlan):
            _set_up(planning, plan)


def _unsupported(facts: FunctionFacts, plan: PipelinePlan) -> str | None:
    """Why a planned loop cannot be written for this target; None when it can."""
    if plan.schedule.copies and not facts.kernel.target.has_async_copies:
        return "the target has no asynchronous copies"
    return None


def _set_up(planning: Planning, plan: PipelinePlan) -> None:
    facts, choices, loops = planning.facts, planning.decided.choices, planning.loops
    loop = named_loop(planning.loop_names, planning.added_parameters, plan)
    twins = Twins(planning, plan)
    twins.add_statements()
    loop = replace(loop, ahead_of=twins.ahead_of, doubled=tuple(twins.doubled), reads=ReadTiles(twins.rings()))
    facts.add_syntax(twins.webs, twins.looped)
    own = (*twins.own_names, *_own_names(facts, loop, twins.own_names))
    loop = replace(loop, fetch=Fetched(tuple(twins.index_names)), own_names=own)
    _push_addresses(facts, planning.make_cheap, planning.pushed, loop)
    clipped = Clipped({}, frozenset(), frozenset(), frozenset())
    if not loop.form.splits and not isinstance(plan.schedule, Once):
        if choices.keeps_loops:
            tail = TailProof(facts, plan.loop, plan.range.low, plan.range.high, plan.range.step)
            clipped = clipped_masks(facts, loop, tail, twins.made)
            rings = [replace(ring, clipped=ring.smem in clipped.rings) for ring in loop.rings]
            loop = replace(loop, reads=ReadTiles(rings))
        loop = with_passes(facts, choices, planning.loop_names, loop)
    moving, assumed = _move_bases(facts, planning.state, planning.decided.moved, plan)
    planning.moving.update(moving)
    loop = replace(loop, assumed=assumed | clipped.assumed)
    guarded = {twins.made[call] for call in plan.runs.guarded} - clipped.guarded
    planning.guards.update(dict.fromkeys(guarded, Guard(loop)))
    loops.clips.update({node: replace(clip, loop=loop) for node, clip in clipped.clips.items()})
    _enter(loops, loop)


def _enter(loops: FunctionLoops, loop: PipelinedLoop) -> None:
    """What stands for the statements and loads of a loop."""
    loops.pipelined[loop.plan.loop] = loop
    loops.statements.update(dict.fromkeys(loop.ahead_of, loop))
    for ring in loop.rings:
        if ring.held:
            loops.held[ring.load.call] = HeldRead(loop, ring)
        else:
            loops.staged[ring.load.call] = Read(loop, ring)
        loops.statements[ring.load.statement] = loop
    loops.statements.update(dict.fromkeys((s for one in loop.passes for s in one.statements()), loop))


def _push_addresses(
    facts: FunctionFacts, make_cheap: Callable[..., None], pushed: set[ast.AST], loop: PipelinedLoop
) -> None:
    """Addresses and masks are computed in the layout of the copy: what they depend on is converted once, before the loop."""
    for s, made in loop.ahead_of.items():
        target = target_of(made)
        web = facts.webs.of_definition[(made, target.id)]
        # A helper is given its argument in one layout: what is made of it is converted where it is used.
        make_cheap(web, not web.is_parameter)
        for d in web.definitions:
            _push(pushed, d.value)
        _push(pushed, made.value)
    for ring in loop.rings:
        for argument in [*ring.fetch.args, *(k.value for k in ring.fetch.keywords)]:
            _push(pushed, argument)
            if (web := facts.webs.of_use.get(argument)) is not None:
                if not web.is_parameter and all(_light(d.value) for d in web.definitions):
                    make_cheap(web)
                    for d in web.definitions:
                        _push(pushed, d.value)


def _own_names(
    facts: FunctionFacts, loop: PipelinedLoop, made_anew: list[tuple[ast.Name, Web]]
) -> Iterator[tuple[ast.Name, Web]]:
    """The uses of values that each tile computes anew."""
    own = {web.index for _, web in made_anew}
    for made in [*loop.ahead_of.values(), *(ring.fetch for ring in loop.rings)]:
        for name in ast.walk(made):
            if (web := facts.webs.of_use.get(name)) is not None and web.index in own:
                yield name, web
    for made in loop.ahead_of.values():  # the target of `x += c` reads it, too
        if isinstance(made, ast.AugAssign) and (web := facts.webs.of_definition[(made, made.target.id)]).index in own:
            yield made.target, web


def _light(value: ast.expr | None) -> bool:
    """Whether a value is arithmetic on names, with nothing loaded, reduced or called on the way."""
    if value is None:
        return False
    allowed = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Name, ast.Constant, ast.Tuple, ast.Slice)
    return all(
        isinstance(n, (*allowed, ast.operator, ast.unaryop, ast.cmpop, ast.expr_context)) for n in ast.walk(value)
    )


def _push(pushed: set[ast.AST], value: ast.expr | None) -> None:
    if isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript)):
        pushed.add(value)
        for child in ast.iter_child_nodes(value):
            _push(pushed, child)


def _move_bases(
    facts: FunctionFacts, state_of: StateOf, moved: frozenset[tuple[str, str]], plan: PipelinePlan
) -> tuple[dict[tuple[str, str], bool], frozenset[Obligation]]:
    """Choose what moves from tile to tile, the scalar base or the tensor of offsets, where only staged loads follow it; -> whether
    the base does, by function and variable, and what that rests on. moved: those whose base moves in any case.

    A base may move without knowing signs: every lane that is ever read is read in the first iteration too (its mask
    only shrinks), so its first offset is that of an element of the tensor, which is not negative. Where the base goes on
    from one run of the loop to the next, that is known of loads without a mask only. Offsets from a base
    that is not the tensor's start may move when neither they nor the step can be negative.
    """
    read = set(names_read(facts, plan.loop))
    moving: dict[tuple[str, str], bool] = {}
    assumed: frozenset[Obligation] = frozenset()
    for s in plan.runs.producer:
        if not isinstance(s, ast.AugAssign) or not isinstance(s.op, ast.Add):
            continue
        fact, web = facts.fact(s.value), facts.webs.of_definition[(s, s.target.id)]
        state = state_of(web)
        if state.split is None or state.split.wide or (isinstance(fact, TensorFact) and fact.shape):
            continue
        inside = [d for d in web.definitions if plan.loop in d.in_loop]
        followers = [load for load in plan.loads if _pointer_name(load.call) == s.target.id]
        uses = [n for n, _ in web.uses if n in read]
        direct = {load.call.args[0] for load in followers if load.call.args}
        if len(inside) != 1 or not followers or not all(n in direct for n in uses):
            continue
        key = (facts.frame.fn.__name__, web.name)
        many = key in moved or all(_instructions(facts, load) >= FEWEST_LOADS for load in followers)
        moving[key] = many
        if not state.split.moves:
            if any(d.augmented and d.node is not s for d in web.definitions):
                continue
            fits = all(load.shrinking is not None and load.staged.copy != "global" for load in followers)
            if (
                many
                and fits
                and (not facts.webs.goes_on(plan.loop, web) or not any(_masked(facts, f) for f in followers))
            ):
                state.split = replace(state.split, base="", moves=True)
                rewrite = "a base that moves from tile to tile"
                for load in followers:
                    sure = obligation_at(facts, load.call.args[0], "shrinks", rewrite, "proven")
                    assumed |= load.shrinking or {sure}
        elif (
            not state.split.fold
            and not many
            and not state.split.of_any_storage
            and len([d for d in web.definitions if d.augmented]) == 1
        ):
            proof = Signs(facts, "offsets that move from tile to tile")
            if proof.holds(s.value) and not wide_scalar(facts, s.value):
                assumed |= proof.assumed
                state.split = replace(state.split, moves=False)
    return moving, assumed


def _masked(facts: FunctionFacts, load: PipelinedLoad) -> bool:
    mask = callees.bound(facts, load.call).get("mask")
    return mask is not None and not callees.is_absent(facts, mask)


def _instructions(facts: FunctionFacts, load: PipelinedLoad) -> int:
    """Memory instructions per wave and tile, at 16 bytes per lane."""
    lanes = facts.kernel.num_warps * facts.kernel.target.warp_size
    return math.prod(load.staged.shape) * bits_of(facts.tensor(load.call).dtype) // 8 // (16 * lanes)


def _pointer_name(call: ast.Call) -> str | None:
    return call.args[0].id if call.args and isinstance(call.args[0], ast.Name) else None
