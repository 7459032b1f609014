"""Literal ring indices: one copy of the body per LDS buffer, so that no slot is computed at run time.

Before:                                         After:
    for k in range(0, gl.cdiv(K, BLOCK_K)):         for k_first in range(0, gl.cdiv(K, BLOCK_K), NUM_BUFFERS):
        slot = k % NUM_BUFFERS                          for slot in gl.static_range(NUM_BUFFERS):
        ...                                                 k = k_first + slot
                                                            ...

The last round may run past the end. Tiles there are zero, and the loop does nothing but accumulate products of tiles.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.gluon.code import code_of, line
from gluonize.gluon.nodes import ONE, Binary, Choose, Code, Node, Number
from gluonize.gluon.written import call, literal, name, operand, times
from gluonize.loops.passes.slices import accumulator_of
from gluonize.loops.plan.plan import PipelinePlan
from gluonize.write.state.writing import Emit

if TYPE_CHECKING:
    from gluonize.loops.loop.loop import PipelinedLoop


def can_unroll(facts: FunctionFacts, plan: PipelinePlan) -> bool:
    """Whether rounds past the end change nothing: zero tiles, in loops that only accumulate."""
    if plan.schedule.mechanism != "copies" or plan.schedule.stored or plan.rolled_back or plan.schedule.buffers < 2:
        return False
    if plan.asks_rest:  # a round may go past the greatest index
        return False
    loads = {load.statement: load for load in plan.loads}
    if not all(_zero_past_the_end(facts, load) for load in plan.loads):
        return False
    for atom in plan.atoms:
        if atom in plan.producer or _only_addresses(facts, plan, atom):
            continue
        if atom in loads:
            if not isinstance(atom, ast.Assign) or atom.value is not loads[atom].call:
                return False
            continue
        found = [n for n in ast.walk(atom) if callees.is_dot(facts, n)]
        if (
            len(found) != 1
            or accumulator_of(facts, plan, atom, found[0]) is None
            or not _of_tiles(facts, plan, found[0])
        ):
            return False
    return not plan.on_both_sides


def _only_addresses(facts: FunctionFacts, plan: PipelinePlan, atom: ast.stmt) -> bool:
    """Whether a statement moves a pointer that nothing but the loads of tiles uses."""
    if not isinstance(atom, ast.AugAssign) or not isinstance(atom.target, ast.Name):
        return False
    inside = {n for load in plan.loads for n in ast.walk(load.call)}
    web = facts.webs.of_definition[(atom, atom.target.id)]
    return all(n in inside for n, _ in web.uses) and all(plan.loop in loops for _, loops in web.moves)


def _zero_past_the_end(facts: FunctionFacts, load) -> bool:
    if not load.covered:
        return False
    if load.tile is not None:
        return True
    given = callees.bound(facts, load.call)
    other = given.get("other")
    if other is not None and callees.is_zero(facts, other):
        return True
    return facts.kernel.target.copies_take_buffers and load.staged.copy == "buffer"


def _of_tiles(facts: FunctionFacts, plan: PipelinePlan, dot: ast.Call) -> bool:
    """Whether both operands are staged tiles: zero times what was never loaded could be anything."""
    staged = {load.call for load in plan.loads}
    given = callees.bound(facts, dot)
    for name in (given["input"], given["other"]):
        while isinstance(name, ast.Attribute) and name.attr == "T":
            name = name.value
        made = facts.webs.definition_of(name)
        if made is None or made.value not in staged:
            return False
    return True


def header(emit: Emit, loop: "PipelinedLoop") -> Code:
    """`k_first in range(0, gl.cdiv(K, BLOCK_K), NUM_BUFFERS)`."""
    plan = loop.plan
    low = literal(0) if plan.low is None else emit(plan.low)
    step = loop.buffers if plan.step is None else times(loop.buffers, operand(emit(plan.step)))
    return code_of(f"{loop.first} in ", call("range", low, emit(plan.high), step))


def top(emit: Emit, loop: "PipelinedLoop") -> list[Node]:
    """The loop index and the slots of one copy of the body."""
    plan = loop.plan
    index = name(loop.slot) if plan.step is None else times(name(loop.slot), operand(emit(plan.step)))
    counts = any(load.tile is not None and load.tile.counts_tiles for load in plan.loads)
    used = {n.id for s in plan.loop.body for n in ast.walk(s) if isinstance(n, ast.Name)}
    lines = [line(f"{plan.index} = {loop.first} + ", index)] if counts or plan.index in used else []
    return [*lines, Choose(loop.free, last_slot(Number(loop.slot), loop.depth))]


def last_slot(number: Node, depth: Node) -> Node:
    """The slot of the tile that is as far ahead of tile `number` as can be."""
    return Binary(Binary(Binary(number, "+", depth), "-", ONE), "%", depth)
