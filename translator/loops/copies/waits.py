"""Waits for the tiles of a pipelined loop."""

from __future__ import annotations

from gluonize.gluon.code import as_lines, line
from gluonize.gluon.nodes import Binary, Node, Number, Wait
from gluonize.loops.copies.multicast import before_next
from gluonize.loops.loop.loop import PipelinedLoop
from gluonize.loops.plan.schedule import Refilled
from gluonize.write.descriptors import tdm
from gluonize.write.state.gluon_modules import async_module
from gluonize.write.state.unit import Record
from gluonize.write.state.writing import Writing


def waits_of_body(writing: Writing, loop: PipelinedLoop) -> tuple[Node, ...]:
    """A comment and the waits for one tile in the body of a loop; nothing where the compiler waits."""
    if not loop.copies:
        return ()
    if isinstance(loop.plan.schedule, Refilled):
        return (line("# This tile has landed."), *wait_for(writing.record, loop, Number("0")))
    left = max((one.left(loop) for one in loop.passes), default=2)
    return _waits(writing, loop, left, max((one.groups for one in loop.passes), default=1))


def waits_before(writing: Writing, loop: PipelinedLoop) -> tuple[Node, ...]:
    """The waits for the first tile, before a loop that reads the next one in its body."""
    return _waits(writing, loop, 2, 1)[1:]


def _waits(writing: Writing, loop: PipelinedLoop, under_way: int, groups: int) -> tuple[Node, ...]:
    """under_way: how many tiles less than buffers may still be under way, of copies in so many groups for each tile how many groups."""
    every = loop.depth if groups == 1 else Binary(Number(str(groups)), "*", loop.depth)
    left = loop.trips.under_way(writing.emit, loop, Binary(every, "-", Number(str(under_way))))
    why = line("# This tile has landed, and every warp is done with the slot that the next copy fills.")
    return (why, *wait_for(writing.record, loop, left), *as_lines(before_next(writing.record, loop)))


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
