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
from gluonize.gluon.nodes import Code, Node, Number
from gluonize.gluon.written import binary, name, operand
from gluonize.loops.copies import mover, multicast
from gluonize.loops.copies.producer import Producer, commit, stores
from gluonize.loops.forms.waits import wait_for
from gluonize.loops.loop.loop import PipelinedLoop
from gluonize.loops.plan.plan import PipelinePlan
from gluonize.loops.plan.tiles.tail import TailProof
from gluonize.write.state.edits import Made
from gluonize.write.state.writing import Emit


def as_branch(facts: FunctionFacts, choices: Choices, plan: PipelinePlan) -> PipelinePlan:
    """`plan` as a branch, where it may be one; else as it is."""
    simple = (
        choices.asks("slot-form", "told-apart")
        and plan.written_out is None
        and not plan.producer
        and not plan.descending
    )
    if not simple or any(load.held for load in plan.loads) or not runs_at_most_once(facts, plan):
        return plan
    rests = obligation_at(facts, plan.loop.iter, "once", "a loop as a branch", "proven")
    schedule = replace(plan.schedule, buffers=1, prologue=1, ahead=0)
    return replace(plan, once=True, schedule=schedule, assumed=plan.assumed | {rests})


def runs_at_most_once(facts: FunctionFacts, plan: PipelinePlan) -> bool:
    """Whether the loop starts less than a step before its end: at `E // step * step`, where E is the end."""
    step = step_of(facts, plan.step)
    if plan.low is None or step is None:
        return False
    proof = TailProof(facts, plan.loop, plan.low, plan.high, plan.step)
    whole, end = _whole(facts, plan.low, step), proof.polynomial(plan.high)
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


def header(emit: Emit, loop: PipelinedLoop) -> Code:
    """`if low < high`."""
    low, high = (operand(emit(e)) for e in (loop.plan.low, loop.plan.high))
    return code_of("if ", binary(low, "<", high))


def first(producer: Producer) -> tuple[Node, ...]:
    """The only tile of every load, at the top of the branch."""
    writing, loop = producer.writing, producer.loop
    lines: list[Made] = [code_of(f"{loop.plan.index} = ", writing.emit(loop.plan.low))]
    for ring in loop.rings:
        tile = ring.load.tile
        lines += mover.before(writing, loop, ring) if tile is not None else [producer.allocate(ring)]
    loop.fetch_at(name(loop.plan.index))
    lines += multicast.before_first(writing.record, loop)
    made = [
        *as_lines(lines),
        *(producer.fetch(ring, "0", loop.fetched, None) for ring in loop.rings),
        *stores(writing.convert, writing.names, loop.rings, "0", loop.fetched),
    ]
    if loop.copies:
        made += [*commit(writing.record, loop, loop.rings), *wait_for(writing.record, loop, Number("0"))]
    return tuple(made)
