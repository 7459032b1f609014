"""Loops that run at most once, written as a branch: nothing runs ahead, so there is no ring and no prologue.

Before:                                         After:
    for n in range(N // BLOCK * BLOCK, N, BLOCK):   if N // BLOCK * BLOCK < N:
        v = tl.load(v_ptr + n + offs, mask=...)         n = N // BLOCK * BLOCK
        ...                                             tdm.async_load(v_desc, [n], v_smem.index(0))
                                                        tdm.async_wait(0)
                                                        v = v_smem.index(0).load(layout)
                                                        ...

The author's loop over what is left behind the full blocks is one of these. Integer division rounds toward zero, so what is
left is less than a block for negative sizes too.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from gluonize.decide.choices.chosen import Choices
from gluonize.facts.function import FunctionFacts
from gluonize.facts.loops.loop_range import int_of, step_of
from gluonize.facts.numbers.signs import obligation_at
from gluonize.gluon.code import as_lines, code_of
from gluonize.gluon.nodes import Current, Node, Number
from gluonize.gluon.written import binary, name, operand
from gluonize.loops.copies import multicast
from gluonize.loops.copies.producer import Producer, commit, stores
from gluonize.loops.copies.waits import wait_for
from gluonize.loops.forms.prologue import ring_lines
from gluonize.loops.forms.ring import listed
from gluonize.loops.loop.loop import LoopForm, PipelinedLoop, Ring, Statements, Trips
from gluonize.loops.loop.site import LoopSite
from gluonize.loops.plan.plan import PipelinePlan
from gluonize.loops.plan.schedule import Copied, Stored, at_once
from gluonize.loops.plan.tiles.tail import TailProof
from gluonize.write.state.edits import Made
from gluonize.write.state.function_loops import FunctionLoops


def as_branch(facts: FunctionFacts, choices: Choices, plan: PipelinePlan) -> PipelinePlan:
    """`plan` as a branch, where it may be one; else as it is."""
    simple = (
        choices.asks("slot-form", "told-apart")
        and isinstance(plan.schedule, Copied | Stored)
        and plan.written_out is None
        and not plan.runs.producer
        and not plan.range.descending
    )
    if not simple or any(load.held for load in plan.loads) or not runs_at_most_once(facts, plan):
        return plan
    rests = obligation_at(facts, plan.loop.iter, "once", "a loop as a branch", "proven")
    return replace(plan, schedule=at_once(plan.schedule), assumed=plan.assumed | {rests})


def runs_at_most_once(facts: FunctionFacts, plan: PipelinePlan) -> bool:
    """Whether the loop starts less than a step before its end: at `E // step * step`, where E is the end."""
    step = step_of(facts, plan.range.step)
    if plan.range.low is None or step is None:
        return False
    proof = TailProof(facts, plan.loop, plan.range.low, plan.range.high, plan.range.step)
    whole, end = _whole(facts, plan.range.low, step), proof.polynomial(plan.range.high)
    return whole is not None and end is not None and proof.polynomial(whole) == end


def _whole(facts: FunctionFacts, node: ast.expr, step: int) -> ast.expr | None:
    """E where `node` is `E // step * step`."""
    while (value := facts.webs.value_of(node)) is not None:
        node = value
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    for quotient, factor in ((node.left, node.right), (node.right, node.left)):
        divides = isinstance(quotient, ast.BinOp) and isinstance(quotient.op, ast.FloorDiv)
        if divides and int_of(facts, factor) == step == int_of(facts, quotient.right):
            return quotient.left
    return None


class AtMostOnce(Trips):
    """Zero iterations, or one: a branch."""

    def header(self, site: LoopSite, loop: PipelinedLoop) -> None:
        """`if low < high`."""
        s, source = loop.plan.loop, site.facts.source
        low, high = (operand(site.emit(e)) for e in (loop.plan.range.low, loop.plan.range.high))
        site.edits.append((source.span(s)[0], source.span(s.iter)[1], code_of("if ", binary(low, "<", high))))

    def known(self, count: str) -> tuple[int, ...]:
        return (0, 1)


class Branch(LoopForm):
    one_slot = True

    def placed(self, loop: PipelinedLoop) -> PipelinedLoop:
        return replace(loop, slot="0", trips=AtMostOnce())

    def fetched(self, loop: PipelinedLoop) -> Node:
        return Current()

    def where(self, choices: Choices, rings: list[Ring]) -> tuple[list[Ring], list[Ring]]:
        return [], []

    def says(self, loop: PipelinedLoop) -> str:
        tiles = listed(load.name for load in loop.plan.loads)
        return f"`for {loop.plan.range.index}` runs at most once and is a branch: {tiles} at its top"

    def before(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        return ()

    def top(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        """The only tile of every load."""
        producer = Producer(site, site.addressing, loop)
        lines: list[Made] = [code_of(f"{loop.plan.range.index} = ", site.emit(loop.plan.range.low))]
        for ring in loop.rings:
            lines += ring_lines(site, producer, ring)
        loop.fetch.be(name(loop.plan.range.index))
        lines += multicast.before_first(site.record, loop)
        nodes = [
            *as_lines(lines),
            *(producer.fetch(ring, "0", loop.fetched, None) for ring in loop.rings),
            *stores(site.convert, site.names, loop.rings, "0", loop.fetched),
        ]
        if loop.copies:
            nodes += [*commit(site.record, loop, loop.rings), *wait_for(site.record, loop, Number("0"))]
        return tuple(nodes)

    def end(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        """Inside of the branch: nothing has to be waited for where it is not taken."""
        return as_lines(multicast.after_last(site.record, loop, False))

    def after(self, site: LoopSite, loops: FunctionLoops, loop: PipelinedLoop) -> Statements:
        return ()
