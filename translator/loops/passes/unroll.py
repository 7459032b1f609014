"""Literal ring indices: one copy of the body per LDS buffer, so that no slot is computed at run time.

The last round may run past the end. Tiles there are zero, and the loop does nothing but accumulate products of tiles.
"""

from __future__ import annotations

import ast

from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.loops.passes.slices import accumulator_of
from gluonize.loops.plan.plan import PipelinePlan
from gluonize.loops.plan.schedule import Copied


def can_unroll(facts: FunctionFacts, plan: PipelinePlan) -> bool:
    """Whether rounds past the end change nothing: zero tiles, in loops that only accumulate."""
    if (
        not isinstance(plan.schedule, Copied)
        or plan.schedule.stored
        or plan.runs.rolled_back
        or plan.schedule.buffers < 2
    ):
        return False
    if plan.range.asks_rest:  # a round may go past the greatest index
        return False
    loads = {load.statement: load for load in plan.loads}
    if not all(_zero_past_the_end(facts, load) for load in plan.loads):
        return False
    for atom in plan.atoms:
        if atom in plan.runs.producer or _only_addresses(facts, plan, atom):
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
    return not plan.runs.on_both_sides


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
