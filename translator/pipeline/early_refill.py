"""An operand that is read in full before the other one, and copied again at once where groups of warps alternate.

memory (copy a of tile k + N - 1, read b, a_0) | compute | memory (copy b of tile k + N, read a_1) | compute

Both groups have read `b` two stages after the first one began to: its slot is free while that of `a` is not. Its copy then stands in
a later stage than that of `a`, so that stages are of one length, and has an iteration more to land. Each operand has commit groups of
its own: two for a tile.
"""

from __future__ import annotations

import ast

from translator.facts import products
from translator.facts.definitions import names_read
from translator.facts.function import FunctionFacts
from translator.gluon.tree import ONE, Binary, Choose, Current, Line, Node, Number
from translator.gluon.written import binary, literal, name, operand
from translator.pipeline import counts
from translator.pipeline.loop import PipelinedLoop, Ring
from translator.pipeline.loop_site import LoopSite
from translator.pipeline.producer import Producer, close_group


def early_ring(facts: FunctionFacts, loop: PipelinedLoop) -> Ring | None:
    """The operand of a sliced product that can be copied again before the other one is read in full; None where none can.

    Where what one of them needs moves or is used for anything else too, they cannot be a tile apart.
    """
    plan, sliced = loop.plan, loop.sliced
    plain = plan.low is None and plan.step is None and not plan.descending and not plan.asks_rest
    copies = plan.schedule.mechanism == "copies" and plan.written_out is None and not loop.first and not loop.l2_ahead
    if sliced is None or not loop.stages or not plain or not copies or len(loop.rings) != 2:
        return None
    if not all(ring.load.copied for ring in loop.rings):
        return None
    if plan.rolled_back or plan.on_both_sides or plan.doubled or plan.guarded or loop.own_names:
        return None
    made = products.DotPlan(facts, sliced.dot)
    read_first = made.b if sliced.parts[0] > 1 else made.a
    definition = facts.webs.definition_of(read_first) if isinstance(read_first, ast.Name) else None
    ring = next((r for r in loop.rings if definition is not None and r.load.call is definition.value), None)
    return ring if ring is not None and _apart(facts, loop) else None


def _apart(facts: FunctionFacts, loop: PipelinedLoop) -> bool:
    """Whether every variable that moves from tile to tile is one that only one of the loads needs."""
    moving = [_target(made) for made in loop.ahead_of.values()]
    needed = [{n.id for n in names_read(facts, ring.fetch)} for ring in loop.rings]
    moves = all(isinstance(made, ast.AugAssign) for made in loop.ahead_of.values())
    steps = [{n.id for n in names_read(facts, made.value)} for made in loop.ahead_of.values()]
    return (
        moves
        and all(sum(name in names for names in needed) == 1 for name in moving)
        and not any(names & {*moving} for names in steps)
    )


def _target(made: ast.stmt) -> str:
    return made.target.id  # type: ignore[attr-defined]


def stage_of(loop: PipelinedLoop) -> int:
    """The number of the stage, among all, in which the operand is copied again: the memory stage behind its last read."""
    rows, columns = loop.sliced.parts
    return 2 * (columns if rows > 1 else 1)


def again(producer: Producer) -> tuple[Node, ...]:
    """In that stage: the copy of the tile that comes into the slot which was read."""
    writing, loop = producer.writing, producer.loop
    loop.fetch_at(operand(binary(name(loop.ahead), "+", literal(1))))
    condition = counts.condition(writing.emit, loop, loop.at)
    tile = Binary(Current(), "+", loop.depth)
    return (
        Line("# Both groups have read this operand: its next tile takes its place."),
        producer.fetch(loop.early, loop.slot, tile, condition),
        close_group(writing.record),
    )


def first(site: LoopSite, producer: Producer) -> tuple[Node, ...]:
    """Before the loop: one tile more than of the other operand, and what moves with it."""
    loop = producer.loop
    last = site.loop_names.fresh("last_slot", loop.plan.loop)
    loop.fetch_at(name(last))
    fetched = producer.fetch(loop.early, last, Number(last), counts.condition(site.emit, loop, loop.at))
    needed = {n.id for n in names_read(site.facts, loop.early.fetch)}
    own = [(atom, made) for atom, made in loop.ahead_of.items() if _target(made) in needed]
    moves = [site.statement_text(made).replace("\n" + site.facts.source.indent(atom), "\n") for atom, made in own]
    return (
        Choose(last, Binary(loop.depth, "-", ONE)),
        fetched,
        close_group(site.record),
        *(Line(move) for move in moves),
    )


__all__ = ["again", "early_ring", "first", "stage_of"]
