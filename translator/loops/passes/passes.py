"""The passes over a pipelined loop: which of them a loop has, and its body once they have gone over it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

from gluonize.decide.choices.chosen import Choices
from gluonize.facts.function import FunctionFacts
from gluonize.gluon.code import Lined, code_of, joined
from gluonize.gluon.nodes import Node, Pipelined
from gluonize.gluon.printer import lines, origins
from gluonize.loops.loop.loop import FinishedLoop, Fresh, LoopBody, LoopParts, LoopPass, PipelinedLoop
from gluonize.loops.loop.site import LoopSite
from gluonize.loops.loop.trips import Rounds
from gluonize.loops.passes import alternate, l2, prefetch, repeated, slices
from gluonize.loops.passes.prefetch import FEWEST_BUFFERS
from gluonize.loops.passes.slices import SlicedDot, sliced_dot
from gluonize.loops.passes.steps import check_apart, take_steps
from gluonize.loops.passes.unroll import can_unroll
from gluonize.write.state.fresh_names import LoopNames

# The pass that choices ask for, None where they ask for none or the loop, with the passes before, cannot have it; in the order in which
# they go over the body.
Asked = Callable[[FunctionFacts, Choices, PipelinedLoop, SlicedDot | None], LoopPass | None]
PASSES: tuple[Asked, ...] = (l2.asked, alternate.asked, slices.asked, prefetch.asked, repeated.asked)


def with_passes(facts: FunctionFacts, choices: Choices, loop_names: LoopNames, loop: PipelinedLoop) -> PipelinedLoop:
    """A loop with the passes that choices ask for, where they are possible."""
    plan, fresh = loop.plan, functools.partial(loop_names.fresh, loop=loop.plan.loop)
    if choices.asks("slot-indices", "literal") and can_unroll(facts, plan):
        loop = replace(loop, trips=Rounds(fresh(f"{plan.range.index.strip('_') or 'tile'}_first")), counter="")
    sliced = sliced_dot(facts, choices, plan, fresh)
    for asked in PASSES:
        if (made := asked(facts, choices, loop, sliced)) is not None:
            loop = replace(loop, passes=(*loop.passes, made))
    return loop


def finish_loop(site: LoopSite, loop: PipelinedLoop, parts: LoopParts) -> FinishedLoop:
    """Passes over the body of a loop that has been written, whose edits are final; then its text."""
    s, source = loop.plan.loop, site.facts.source
    steps, (top, end) = take_steps(site.facts, site.reads, site.edits, s)
    if loop.alternates:
        check_apart(site.facts, steps)
    body = LoopBody(parts.top, tuple(steps), parts.end, parts.waits, parts.again)
    body = passed(loop, body, functools.partial(site.loop_names.fresh, loop=s))
    nodes = loop.trips.nodes(loop, body)
    tree = tree_of(loop, parts, nodes, loop.trips.count(site.emit, loop))
    code = joined("\n", [*lines(nodes, source.indent(s.body[0])), *lines(parts.after, source.indent(s))])
    code = code_of(code, "\n") if end > source.line_end(s) else code
    made = Lined(code, (*origins(nodes), *origins(parts.after), 0))
    site.edits.append((top, end, made))
    return FinishedLoop(tree, body)


def passed(loop: PipelinedLoop, body: LoopBody, fresh: Fresh) -> LoopBody:
    """The body of a loop as its form and its passes want it."""
    for one in (loop.form, *loop.passes):
        body = one.body(loop, body, fresh)
    return body


def tree_of(loop: PipelinedLoop, parts: LoopParts, body: tuple[Node, ...], count: str) -> Pipelined:
    """The whole of a loop; count: of its tiles, where it is written out."""
    fewest = FEWEST_BUFFERS if loop.reads_ahead else 2 if loop.copies else 1
    trips = loop.trips.known(count)
    return Pipelined(parts.before, body, parts.after, loop.buffers.text, fewest, count, trips, loop.trips.in_rounds)
