"""Passes over the body of a pipelined loop, tree -> tree, when it has been written; then its text."""

from __future__ import annotations

import functools
from collections.abc import Callable

from gluonize.facts.function import FunctionFacts
from gluonize.facts.refusals import refuse
from gluonize.gluon.code import Lined, code_of, joined, line
from gluonize.gluon.nodes import Node, Pipelined, Repeat, Store
from gluonize.gluon.printer import lines, origins
from gluonize.loops.loop import counts
from gluonize.loops.loop.loop import PipelinedLoop
from gluonize.loops.loop.site import LoopSite
from gluonize.loops.passes import early_stores
from gluonize.loops.passes.early_refill import stage_of
from gluonize.loops.passes.prefetch import FEWEST_BUFFERS, Prefetched, prefetched
from gluonize.loops.passes.refill import refilled
from gluonize.loops.passes.slices import stage_contents_of
from gluonize.loops.passes.stages import alternating, late_read, stage_contents
from gluonize.loops.passes.steps import Step, take_steps

Names = Callable[..., str]  # gives a name that the function does not use


def finish_loop(site: LoopSite, loop: PipelinedLoop) -> None:
    """Passes over the body of a loop that has been written, whose edits are final; then its text."""
    s, source = loop.plan.loop, site.facts.source
    steps, (top, end) = take_steps(site.facts, site.reads, site.edits, s)
    if loop.stages:
        check_apart(site.facts, steps)
    body = passed(loop, steps, functools.partial(site.loop_names.fresh, loop=s))
    loop.round.tree = tree_of(loop, body, counts.tiles(site.emit, loop).text if loop.written_out else "")
    code = joined("\n", [*lines(body, source.indent(s.body[0])), *lines(loop.round.after, source.indent(s))])
    code = code_of(code, "\n") if end > source.line_end(s) else code
    made = Lined(code, (*origins(body), *origins(loop.round.after), 0))
    site.edits.append((top, end, made))


def read_ahead(site: LoopSite, loop: PipelinedLoop) -> Prefetched | None:
    """The body as it is so far, with its reads at the end; None where these stay where they are."""
    steps, _ = take_steps(site.facts, site.reads, site.edits.copy(), loop.plan.loop)
    check_apart(site.facts, steps)
    return _ahead(loop, steps, functools.partial(site.loop_names.fresh, loop=loop.plan.loop))


def check_apart(facts: FunctionFacts, steps: list[Step]) -> None:
    """Raises: TranslationError where statements of the body cannot be moved one by one."""
    for step in steps:
        if len(step.sources) > 1:
            what = "statements of this loop share a line"
            raise refuse(facts.frame, step.sources[0], "ping-pong", what, help="put each on its own")


def tree_of(loop: PipelinedLoop, body: tuple[Node, ...], count: str) -> Pipelined:
    """The whole of a loop; count: of its tiles, where it is written out."""
    trips = (0, 1) if loop.plan.once else (int(count),) if count.isdigit() else ()
    fewest = FEWEST_BUFFERS if loop.round.prefetched is not None else 2 if loop.copies else 1
    return Pipelined(
        loop.round.before, body, loop.round.after, loop.buffers.text, fewest, count, trips, bool(loop.first)
    )


def passed(loop: PipelinedLoop, steps: list[Step], names: Names) -> tuple[Node, ...]:
    """The body of a loop as its plan and the choices want it."""
    every, end = [step.statements for step in steps], loop.round.end
    if loop.stages:
        body, end = _alternating(loop, steps, names), ()
    elif loop.round.prefetched is not None:
        body = [*loop.round.top, *_ahead(loop, steps, names).body]
    else:
        if loop.refills:
            rings = {ring.smem for ring in loop.rings if not ring.held}
            early = names if loop.plan.reads_early else None
            multiplies = [step.multiplies for step in steps]
            every, loop.round.hidden = refilled(every, multiplies, rings, loop.round.copies_again, early)
        body = [*loop.round.top, *(s for step in every for s in step)]
    if loop.first:
        body = [Repeat(loop.slot, loop.depth, tuple(body))]
    return (*body, *end)


def _alternating(loop: PipelinedLoop, steps: list[Step], names: Names) -> list[Node]:
    """The body in stages that two groups of warps alternate in (`gluonize.loops.passes.stages`)."""
    every = [step.statements for step in steps]
    stored = tuple(s for s in loop.round.end if isinstance(s, Store))
    if loop.sliced is not None:
        number = next(i for i, step in enumerate(steps) if loop.sliced.statement in step.sources)
        contents = stage_contents_of(every, number)
        if loop.early:
            contents[stage_of(loop)].insert(0, loop.round.copies_again)
        if loop.stores_early:
            contents = early_stores.with_stores(contents, stored)
        elif stored:
            contents.append([stored])
    else:
        tiles = {ring.load.name: ring.smem for ring in loop.rings}
        contents = stage_contents([*every, stored], loop.stages, tiles, names)
    contents[-1].append(tuple(s for s in loop.round.end if s not in stored))
    loop.round.late_read = late_read(contents, loop.stages)
    why = line("# The tile of the next iteration has landed: the other warps read it a stage earlier.")
    waits = (why, *loop.round.waits[1:]) if loop.round.waits else ()
    return [
        *(s for s in loop.round.top if s not in loop.round.waits),
        *alternating(contents, loop.stages, waits),
    ]


def _ahead(loop: PipelinedLoop, steps: list[Step], names: Names) -> Prefetched | None:
    return prefetched([step.statements for step in steps], [step.multiplies for step in steps], loop.slot, names)
