"""What stands before a pipelined loop: LDS rings and barriers, and the first tiles."""

from __future__ import annotations

import ast

from gluonize.facts.function import FunctionFacts
from gluonize.gluon.code import as_lines, code_of, line
from gluonize.gluon.nodes import Node, Number, Repeat
from gluonize.gluon.written import name
from gluonize.loops.copies import mover, multicast
from gluonize.loops.copies.producer import Producer, commit, stores
from gluonize.loops.forms import repeated
from gluonize.loops.forms.waits import waits_of_body
from gluonize.loops.loop import counts
from gluonize.loops.loop.loop import PipelinedLoop, Ring
from gluonize.loops.loop.moved_twice import start_lines
from gluonize.loops.loop.site import LoopSite
from gluonize.loops.loop.tile_names import own_names
from gluonize.loops.passes import early_refill, slices
from gluonize.trace.front.trace import TensorFact
from gluonize.write.state.edits import Made
from gluonize.write.state.gluon_modules import barrier_module

# How comments at the head of a loop begin. What they say is said once in a function, not of each loop that is alike.
HEADS = "# A ring of ", "# Prologue: "


def shared_state(producer: Producer) -> list[Made]:
    """What the partitions of a loop share: rings, and two barriers for each slot."""
    writing, loop = producer.writing, producer.loop
    schedule, module = loop.plan.schedule, barrier_module(writing.record)
    lines: list[Made] = []
    for ring in loop.rings:
        lines += [producer.allocate(ring)] if ring.load.tile is None else mover.before(writing, loop, ring)
    lines += ["", "# A slot is ready when all copies into it have landed, and empty when every lane has read it."]
    for pair in loop.barriers:
        lines += [
            f"{name} = gl.allocate_shared_memory(gl.int64, [{loop.buffers}, 1], {module}.MBarrierLayout())"
            for name in pair
        ]
    lines.append(f"for {loop.tile} in gl.static_range({loop.buffers}):")
    for group, (ready, empty) in enumerate(loop.barriers):
        lines.append(f"    {module}.init({ready}.index({loop.tile}), {schedule.ready_count(group)})")
        lines.append(f"    {module}.init({empty}.index({loop.tile}), {schedule.consumer_warps} * {schedule.lanes})")
    return [*lines, "gl.barrier()"]


def prologue(site: LoopSite, producer: Producer) -> tuple[Node, ...]:
    loop = producer.loop
    plan = loop.plan
    lines: list[Made] = []
    for ring in loop.rings:
        tile = ring.load.tile
        if ring.held:
            lines += [] if loop.only_holds else [code_of(ring.next, " = ()")]
        else:
            lines += mover.before(site, loop, ring) if tile is not None else [producer.allocate(ring)]
    lines += [line for _, ahead in loop.doubled for line in start_lines(site, ahead)]
    what = "fetched" if loop.mixed else "copied" if loop.copies else "loaded"
    tail = " Tiles past the end are masked out and still counted." if loop.copies and not loop.written_out else ""
    if loop.only_holds:
        lines.append("# Prologue: each tile is loaded an iteration before it is used, the first ones here.")
    else:
        lines += multicast.before_first(site.record, loop)
        lines.append("")
        if loop.copies and not (loop.specialized or loop.refills or loop.written_out or loop.mixed or loop.stages):
            slots = str(loop.buffers)
            ahead = int(slots) - 1 if slots.isdigit() else f"{slots} - 1"
            lines.append(f"{HEADS[0]}{slots} slots: tile k is read while tile k + {ahead} is copied.")
        lines.append(f"{HEADS[1]}the first tiles are {what} before the loop.{tail}")
    index = counts.prologue_index(site.emit, loop)
    loop.fetch_at(index)
    body: list[Node] = []
    first = Number("0") if loop.only_holds else Number(loop.tile)
    if loop.index_names and not _plain_index(site.facts, loop):
        text = counts.index_value(site.facts, loop, index)
        index = name(site.loop_names.fresh(f"{plan.index}_{loop.tile}", plan.loop))
        body.append(line(index, " = ", text))
        loop.fetch_at(index)
    condition = counts.condition(site.emit, loop, index)
    fetched: list[Ring] = []
    with own_names(site.facts, site.loop_names, loop, loop.tile):
        for atom in plan.atoms:
            if atom in loop.ahead_of:
                move = site.line_ahead(loop.ahead_of, atom)
                body += repeated.moved_before(site.emit, loop, index, move.code) if loop.repeats else [move]
            for ring in loop.rings:
                if ring.load.statement is atom:
                    body += [producer.fetch(ring, loop.tile, first, condition)]
                    body += commit(site.record, loop, [ring])
                    fetched.append(ring)
    body += stores(site.convert, site.names, fetched, loop.tile, first)
    made = [*as_lines(lines)]
    made += body if loop.only_holds else [Repeat(loop.tile, counts.fetched_before(site.emit, loop), tuple(body))]
    if loop.early:
        made += early_refill.first(site, producer)
    if loop.stages:
        made += waits_of_body(site, loop)[1:]
    if loop.sliced is not None:
        m, n = loop.sliced.parts
        site.record.choose(f"`{loop.sliced.web.name}` is kept in {m} x {n} slices")
        made += as_lines(slices.take_apart(site.facts, site.state, loop.sliced))
    return (*made, line(f"{loop.counter} = 0")) if loop.counter else tuple(made)


def _plain_index(facts: FunctionFacts, loop: PipelinedLoop) -> bool:
    """Whether the producer's copies take a compile-time number for the loop index."""
    if loop.plan.index_dtype != "int32":
        return False
    names = set(loop.index_names)

    def plain(node: ast.AST, meets: bool) -> bool:
        """`meets`: the value of `node` is combined with a run-time value."""
        if node in names:
            return meets
        if isinstance(node, (ast.BinOp, ast.Compare)):
            sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.left, *node.comparators]
            run_time = [_has_run_time(facts, side, names) for side in sides]
            return all(plain(x, meets or any(run_time[:i] + run_time[i + 1 :])) for i, x in enumerate(sides))
        return all(plain(child, False) for child in ast.iter_child_nodes(node))

    # The data mover takes numbers as they are; what is called may not.
    tiles = [ring.fetch for ring in loop.rings if ring.load.tile is not None]
    if any(n is not tile and isinstance(n, ast.Call) for tile in tiles for n in ast.walk(tile)):
        return False
    made = [*loop.ahead_of.values(), *(ring.fetch for ring in loop.rings if ring.load.tile is None)]
    return all(plain(s.value if isinstance(s, ast.stmt) else s, False) for s in made)


def _has_run_time(facts: FunctionFacts, node: ast.AST, index_names: set[ast.Name]) -> bool:
    """Whether part of `node` is a run-time value whatever the loop index is."""
    if isinstance(node, (ast.Name, ast.Call)) and isinstance(facts.fact(node), TensorFact):
        return node not in index_names and not any(n in index_names for n in ast.walk(node))
    return any(_has_run_time(facts, child, index_names) for child in ast.iter_child_nodes(node))
