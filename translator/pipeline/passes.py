"""Passes over the body of a pipelined loop, tree -> tree, when it has been written; then its text."""

from __future__ import annotations

import ast

from translator.facts import products
from translator.facts.refusals import refuse
from translator.gluon.printer import lines
from translator.gluon.tree import Line, Node, PerSlot
from translator.numbered import numbered
from translator.pipeline import producer
from translator.pipeline.body import alternating, late_read, stage_contents
from translator.pipeline.loop import PipelinedLoop
from translator.pipeline.prefetch import Prefetched, prefetched
from translator.pipeline.prepare import fresh
from translator.pipeline.refill import refilled
from translator.pipeline.steps import Step, take_steps
from translator.rewrite.emission import Emission


def as_lines(texts: list[str]) -> tuple[Node, ...]:
    return tuple(Line(text) for text in texts)


def body_start(rw: Emission, s: ast.For) -> int:
    """The offset at which the body begins."""
    return rw.facts.source.offset(rw.facts.source.first_line(s.body[0], s.iter.end_lineno), 0)


def finish_loop(rw: Emission, loop: PipelinedLoop) -> None:
    """Passes over the body of a loop that has been written, whose edits are final; then its text."""
    s, source = loop.plan.loop, rw.facts.source
    top = body_start(rw, s)
    steps, end = take_steps(rw, s, top)
    body = lines(_passed(rw, loop, steps), source.indent(s.body[0]))
    text = "\n".join([*body, *lines(loop.after, source.indent(s))])
    rw.edits.append((top, end, text + "\n" if end > source.line_end(s) else text))


def _passed(rw: Emission, loop: PipelinedLoop, steps: list[Step]) -> tuple[Node, ...]:
    """The body of a loop as its plan and the choices want it."""
    if loop.stages:
        body = _alternating(rw, loop, steps)
    elif loop.prefetched is not None:
        body = [*loop.top, *read_ahead(rw, loop, steps).body]
    else:
        every = _refilled(rw, loop, steps) if loop.refills else [step.statements for step in steps]
        body = [*loop.top, *(s for step in every for s in step)]
    if loop.first:
        body = [PerSlot(loop.slot, loop.buffers, tuple(body))]
    return (*body, *loop.end)


def _alternating(rw: Emission, loop: PipelinedLoop, steps: list[Step]) -> list[Node]:
    """The body in stages that two groups of warps alternate in (`translator.pipeline.body`)."""
    _check_apart(rw, loop, steps)
    every = [step.statements for step in steps]
    if any(ring.load.stored for ring in loop.rings):
        every.append(as_lines([producer.store(rw, ring, loop.slot) for ring in loop.rings]))
    tiles = {ring.load.name: ring.smem for ring in loop.rings}
    contents = stage_contents(every, loop.stages, tiles, lambda name: fresh(rw, name, loop.plan.loop))
    contents[-1] += [as_lines([f"{loop.counter} += 1"])] if loop.counter else []
    loop.late_read = late_read(contents, loop.stages)
    why = Line("# The tile of the next iteration has landed: the other warps read it a stage earlier.")
    waits = (why, *loop.waits[1:]) if loop.waits else ()
    return [*(line for line in loop.top if line not in loop.waits), *alternating(contents, loop.stages, waits)]


def read_ahead(rw: Emission, loop: PipelinedLoop, steps: list[Step]) -> Prefetched | None:
    """The body with its reads at the end (`translator.pipeline.prefetch`); None where it stays as it is."""
    _check_apart(rw, loop, steps)
    multiplies = [any(rw.facts.taken(s) and products.multiplies(rw.facts, s) for s in step.sources) for step in steps]
    every = [step.statements for step in steps]
    return prefetched(every, multiplies, loop.slot, lambda name: fresh(rw, name, loop.plan.loop))


def _check_apart(rw: Emission, loop: PipelinedLoop, steps: list[Step]) -> None:
    """Raises: TranslationError where statements of the body cannot be moved one by one."""
    if any(len(step.sources) > 1 for step in steps):
        what = "statements of this loop share a line"
        raise refuse(rw.facts.frame, loop.plan.loop, "ping-pong", what, help="put each on its own")


def _refilled(rw: Emission, loop: PipelinedLoop, steps: list[Step]) -> list[tuple[Node, ...]]:
    """The body with the copies into its slots behind their last read (`translator.pipeline.refill`)."""

    def early(stem: str, taken) -> str:
        found = numbered(stem, {*rw.facts.source_names, *taken}.__contains__)
        rw.locals.add(found)
        return found

    multiplies = [any(products.multiplies(rw.facts, s) for s in step.sources) for step in steps]
    rings = {ring.smem for ring in loop.rings if not ring.held}
    every = [step.statements for step in steps]
    named = early if loop.plan.reads_early else None
    every, loop.hidden = refilled(every, multiplies, rings, loop.copies_again, named)
    return every
