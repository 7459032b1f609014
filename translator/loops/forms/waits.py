"""Waits for the tiles of a pipelined loop."""

from __future__ import annotations


from gluonize.gluon.code import as_lines, line
from gluonize.gluon.nodes import ONE, Binary, Current, Least, Node, Number, Wait
from gluonize.loops.copies.multicast import before_next
from gluonize.loops.loop import counts
from gluonize.loops.loop.loop import PipelinedLoop
from gluonize.loops.passes.prefetch import FEWEST_BUFFERS
from gluonize.write.descriptors import tdm
from gluonize.write.state.gluon_modules import async_module
from gluonize.write.state.unit import Record
from gluonize.write.state.writing import Emit, Writing


def waits(emit: Emit, record: Record, loop: PipelinedLoop, under_way: int = 2, groups: int = 1) -> tuple[Node, ...]:
    """A comment and the waits for one tile; nothing where the compiler waits.

    under_way: how many tiles less than buffers may still be under way, of copies in so many groups for each tile how many groups.
    """
    if not loop.copies:
        return ()
    if loop.refills:
        return (line("# This tile has landed."), *wait_for(record, loop, Number("0")))
    every = loop.depth if groups == 1 else Binary(Number(str(groups)), "*", loop.depth)
    left: Node = Binary(every, "-", Number(str(under_way)))
    if loop.written_out:
        left = Least(left, Binary(Binary(Number(counts.tiles(emit, loop)), "-", ONE), "-", Current(loop.tile)))
    why = line("# This tile has landed, and every warp is done with the slot that the next copy fills.")
    return (why, *wait_for(record, loop, left), *as_lines(before_next(record, loop)))


def waits_of_body(writing: Writing, loop: PipelinedLoop) -> tuple[Node, ...]:
    """The waits for one tile in the body of a loop."""
    if loop.early:
        # Two groups for each tile that follows, and one of the operand that is a tile further ahead.
        return waits(writing.emit, writing.record, loop, under_way=3, groups=2)
    return waits(writing.emit, writing.record, loop, under_way=2 if loop.round.prefetched is None else FEWEST_BUFFERS)


def wait_for(record: Record, loop: PipelinedLoop, left: Node) -> list[Node]:
    """The waits after which the copies of at most `left` tiles are under way."""
    schedule, found = loop.plan.schedule, []
    if schedule.grouped:
        found.append(Wait(f"{async_module(record)}.wait_group", left, True))
    if schedule.tensor_loads:
        none = schedule.tensor_loads == 1 or left == Number("0")
        copies = left if none else Binary(left, "*", Number(str(schedule.tensor_loads)))
        found.append(Wait(f"{tdm.module(record)}.async_wait", copies, False))
    return found
