"""An operand that is read in full before the other one, and copied again at once where groups of warps alternate.

memory (copy a of tile k + N - 1, read b, a_0) | compute | memory (copy b of tile k + N, read a_1) | compute

Both groups have read `b` two stages after the first one began to: its slot is free while that of `a` is not. Its copy then stands in
a later stage than that of `a`, so that stages are of one length, and has an iteration more to land. Each operand has commit groups of
its own: two for a tile. The scales of an operand are read and copied with it.
"""

from __future__ import annotations

import ast

from gluonize.facts.function import FunctionFacts
from gluonize.facts.products import products
from gluonize.facts.syntax import target_of
from gluonize.facts.variables.definitions import names_read
from gluonize.gluon.code import line
from gluonize.gluon.nodes import ONE, Binary, Choose, Current, Node, Number
from gluonize.gluon.written import Written, binary, literal, name, operand
from gluonize.loops.copies.producer import Producer, commit
from gluonize.loops.loop import counts
from gluonize.loops.loop.loop import PipelinedLoop, Ring
from gluonize.loops.loop.site import LoopSite
from gluonize.loops.loop.tile_names import own_names
from gluonize.loops.passes.slices import SlicedDot
from gluonize.loops.plan.schedule import Copied


def early_rings(facts: FunctionFacts, loop: PipelinedLoop, sliced: SlicedDot) -> list[Ring]:
    """The operand of a sliced product, and its scales, that can be copied again before the other one is read in full; none where none can.

    Where what one of them needs moves or is used for anything else too, they cannot be a tile apart.
    """
    plan = loop.plan
    plain = (
        plan.range.low is None and plan.range.step is None and not plan.range.descending and not plan.range.asks_rest
    )
    copies = isinstance(plan.schedule, Copied) and not (loop.trips.written_out or loop.trips.in_rounds)
    copies &= not any(one.uses_ahead for one in loop.passes)
    if not plain or not copies or not all(ring.load.copied for ring in loop.rings):
        return []
    if plan.runs.rolled_back or plan.runs.on_both_sides or plan.runs.doubled or plan.runs.guarded:
        return []
    sides = [_rings_of(facts, loop, side) for side in _sides(facts, sliced)]
    if not all(sides) or sum(map(len, sides)) != len(loop.rings):
        return []
    return sides[sliced.parts[0] > 1] if _apart(facts, loop, sides) else []


def _sides(facts: FunctionFacts, sliced: SlicedDot) -> list[list[ast.expr]]:
    """Either operand of the product, and its scales."""
    made = sliced.product
    if made is None:
        plain = products.DotPlan(facts, sliced.dot)
        return [[plain.a], [plain.b]]
    return [[x for x in side if x is not None] for side in zip(made.operands, made.scales)]


def _rings_of(facts: FunctionFacts, loop: PipelinedLoop, side: list[ast.expr]) -> list[Ring]:
    """The rings of the tiles that one side of the product is; none where part of it is anything else."""
    made = [facts.webs.definition_of(x) if isinstance(x, ast.Name) else None for x in side]
    rings = [ring for ring in loop.rings if any(d is not None and d.value is ring.load.call for d in made)]
    return rings if len(rings) == len(side) else []


def _apart(facts: FunctionFacts, loop: PipelinedLoop, sides: list[list[Ring]]) -> bool:
    """Whether every variable that moves from tile to tile is one that only one side's loads need, and moves by what does not."""
    moving = {target_of(made).id for made in loop.ahead_of.values() if isinstance(made, ast.AugAssign)}
    anew = {target_of(made).id for made in loop.ahead_of.values()} - moving
    own = {web.name for _, web in loop.own_names}
    steps = [_read(facts, made.value) for made in loop.ahead_of.values() if isinstance(made, ast.AugAssign)]
    needed = [_needed(facts, loop, rings) for rings in sides]
    return (
        anew <= own
        and not moving & own
        and all(sum(name in names for names in needed) == 1 for name in moving)
        and not any(names & (moving | anew) for names in steps)
    )


def _needed(facts: FunctionFacts, loop: PipelinedLoop, rings: list[Ring]) -> set[str]:
    """The variables that fetches read, and those that what each tile computes anew for them reads."""
    names = {name for ring in rings for name in _read(facts, ring.fetch)}
    for made in reversed(loop.ahead_of.values()):  # what a statement reads is computed above it
        if isinstance(made, ast.Assign) and target_of(made).id in names:
            names |= _read(facts, made.value)
    return names


def _read(facts: FunctionFacts, node: ast.AST) -> set[str]:
    return {n.id for n in names_read(facts, node)}


def stage_of(sliced: SlicedDot) -> int:
    """The number of the stage, among all, in which the operand is copied again: the memory stage behind its last read."""
    rows, columns = sliced.parts
    return 2 * (columns if rows > 1 else 1)


def again(site: LoopSite, producer: Producer, rings: tuple[Ring, ...]) -> tuple[Node, ...]:
    """In that stage: the copy of the tile that comes into the slot which was read."""
    loop = producer.loop
    at, tile = operand(binary(name(loop.ahead), "+", literal(1))), Binary(Current(), "+", loop.depth)
    why = line("# Both groups have read this operand: its next tile takes its place.")
    return why, *_copy(site, producer, rings, at, loop.slot, tile, "next")


def first(site: LoopSite, producer: Producer, rings: tuple[Ring, ...]) -> tuple[Node, ...]:
    """Before the loop: one tile more than of the other operand, and what moves with it."""
    loop = producer.loop
    last = site.loop_names.fresh("last_slot", loop.plan.loop)
    copy = _copy(site, producer, rings, name(last), last, Number(last), "last")
    moves = _statements(site, loop, rings, ast.AugAssign)
    return Choose(last, Binary(loop.depth, "-", ONE)), *copy, *moves


def _copy(
    site: LoopSite, producer: Producer, rings: tuple[Ring, ...], at: Written, slot: str, tile: Node, suffix: str
) -> tuple[Node, ...]:
    """The copies of the tile at the index `at`, with what it computes anew under names with `suffix`."""
    loop = producer.loop
    loop.fetch.be(at)
    with own_names(site.facts, site.loop_names, loop, suffix):
        anew = _statements(site, loop, rings, ast.Assign)
        condition = counts.condition(site.emit, loop, at)
        fetched = [producer.fetch(ring, slot, tile, condition) for ring in rings]
    return *anew, *fetched, *commit(site.record, loop, [*rings])


def _statements(site: LoopSite, loop: PipelinedLoop, rings: tuple[Ring, ...], kind: type[ast.stmt]) -> list[Node]:
    """The statements of a kind that the operand's fetches need, as they are where it is fetched."""
    needed = _needed(site.facts, loop, rings)
    own = [s for s, made in loop.ahead_of.items() if isinstance(made, kind) and target_of(made).id in needed]
    return [site.line_ahead(loop.ahead_of, s) for s in own]


__all__ = ["again", "early_rings", "first", "stage_of"]
