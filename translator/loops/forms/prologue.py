"""What stands before a pipelined loop: LDS rings and barriers, and the first tiles."""

from __future__ import annotations

import ast

from gluonize.facts.function import FunctionFacts
from gluonize.gluon.code import code_of, line
from gluonize.gluon.nodes import Node
from gluonize.gluon.written import name
from gluonize.loops.copies import mover
from gluonize.loops.copies.producer import Producer, commit, stores
from gluonize.loops.loop import counts
from gluonize.loops.loop.loop import PipelinedLoop, Ring, Statements
from gluonize.loops.loop.moved_twice import start_lines
from gluonize.loops.loop.site import LoopSite
from gluonize.loops.loop.tile_names import own_names
from gluonize.trace.front.trace import TensorFact
from gluonize.write.state.edits import Made

# How comments at the head of a loop begin. What they say is said once in a function, not of each loop that is alike.
HEADS = "# A ring of ", "# Prologue: "


def ring_lines(site: LoopSite, producer: Producer, ring: Ring) -> list[Made]:
    """A ring in LDS, and the descriptor of its tiles where it has one."""
    return mover.before(site, producer.loop, ring) if ring.load.tile is not None else [producer.allocate(ring)]


def made_first(site: LoopSite, producer: Producer) -> list[Made]:
    """The rings of a loop, what tiles wait in, and where what both sides move starts."""
    loop, lines = producer.loop, []
    for ring in loop.rings:
        if ring.held:
            lines += [] if loop.only_holds else [code_of(ring.next, " = ()")]
        else:
            lines += ring_lines(site, producer, ring)
    return lines + [line for _, ahead in loop.doubled for line in start_lines(site, ahead)]


def fetched_first(site: LoopSite, producer: Producer, first: Node) -> Statements:
    """What fetches a tile before the loop; first: its number."""
    loop = producer.loop
    plan = loop.plan
    index = counts.prologue_index(site.emit, loop)
    loop.fetch.be(index)
    body: list[Node] = []
    if loop.fetch.uses and not _plain_index(site.facts, loop):
        text = counts.index_value(site.facts, loop, index)
        index = name(site.loop_names.fresh(f"{plan.range.index}_{loop.tile}", plan.loop))
        body.append(line(index, " = ", text))
        loop.fetch.be(index)
    condition = counts.condition(site.emit, loop, index)
    fetched: list[Ring] = []
    with own_names(site.facts, site.loop_names, loop, loop.tile):
        for atom in plan.atoms:
            if atom in loop.ahead_of:
                move = site.line_ahead(loop.ahead_of, atom)
                moved = loop.asked(lambda one: one.moved(site, loop, move.code, index))  # noqa: B023
                body += [move] if moved is None else map(line, moved)
            for ring in loop.rings:
                if ring.load.statement is atom:
                    body += [producer.fetch(ring, loop.tile, first, condition)]
                    body += commit(site.record, loop, [ring])
                    fetched.append(ring)
    return (*body, *stores(site.convert, site.names, fetched, loop.tile, first))


def _plain_index(facts: FunctionFacts, loop: PipelinedLoop) -> bool:
    """Whether the producer's copies take a compile-time number for the loop index."""
    if loop.plan.range.dtype != "int32":
        return False
    names = set(loop.fetch.uses)

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


def _has_run_time(facts: FunctionFacts, node: ast.AST, index_uses: set[ast.Name]) -> bool:
    """Whether part of `node` is a run-time value whatever the loop index is."""
    if isinstance(node, (ast.Name, ast.Call)) and isinstance(facts.fact(node), TensorFact):
        return node not in index_uses and not any(n in index_uses for n in ast.walk(node))
    return any(_has_run_time(facts, child, index_uses) for child in ast.iter_child_nodes(node))
