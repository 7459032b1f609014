"""Which loops are split between warps that copy tiles and warps that compute.

A loop fits when its tiles travel by asynchronous copies: the pipeline's plan then already has what the copies need, and
that it does not depend on what the loop computes. What cannot be taken apart as text is found by
`gluonize.loops.specialized.partitions`.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from gluonize.facts.function import FunctionFacts
from gluonize.loops.loop.ahead import is_pure
from gluonize.loops.plan.impossible import SPLIT, why_not
from gluonize.loops.plan.partition_schedule import Partitions
from gluonize.loops.plan.plan import NotPipelined, PipelinedLoad, PipelinePlan, run_of_loads
from gluonize.loops.plan.schedule import Copied
from gluonize.loops.plan.strategies import WARP_SPECIALIZED
from gluonize.trace.front.trace import ConstFact
from gluonize.write.state.unit import Decided

# "warp-specialized kernels requires num_warps to be a multiple of 4" (Triton 3.9.0, ttgir of gfx1250).
WARPS_TOGETHER = 4
# Threads of a workgroup on all targets (isa).
MOST_THREADS = 1024


def asked_for(facts: FunctionFacts, decided: Decided, loop: ast.For) -> bool:
    """Whether the command, or else the source, asks for the partitions of this loop."""
    if decided.strategy is not None:
        return decided.strategy == WARP_SPECIALIZED.name
    options = loop.iter.keywords if isinstance(loop.iter, ast.Call) else []
    asked = [facts.fact(k.value) for k in options if k.arg == "warp_specialize"]
    return any(isinstance(fact, ConstFact) and bool(fact.value) for fact in asked)


def specialized(
    facts: FunctionFacts, decided: Decided, loop: ast.For, plan: PipelinePlan | NotPipelined
) -> PipelinePlan | str:
    """`plan` with partitions, or why this loop keeps its copies and its arithmetic in the same warps."""
    kernel = facts.kernel
    if not WARP_SPECIALIZED.serves(kernel.target):
        return f"{kernel.target.name} has no {WARP_SPECIALIZED.needs}"
    if isinstance(plan, NotPipelined):
        return plan.reason
    if kernel.num_ctas > 1:
        return "its program is a cluster, whose workgroups wait for each other with all of their warps"
    if plan.range.descending:
        return "its index goes down"
    if plan.runs.doubled:
        return f"`{plan.runs.doubled[0].name}` moves for both sides"
    if not all(is_pure(facts, s.value) for s in plan.runs.producer):
        return "an address in it comes from memory"
    if reason := why_not(facts, decided, loop.lineno, SPLIT):
        return reason
    if not isinstance(plan.schedule, Copied):
        return "its tiles travel through registers"
    if kernel.num_warps % WARPS_TOGETHER:
        return f"its {kernel.num_warps} warps are no multiple of {WARPS_TOGETHER}, as the compiler wants them"
    if 2 * kernel.num_warps * kernel.target.warp_size > MOST_THREADS:
        return f"{2 * kernel.num_warps} warps are more than a workgroup has"
    if any(n is not loop and isinstance(n, (ast.For, ast.While)) for n in ast.walk(loop)):
        return "it has a loop inside"
    groups: dict[int, list[PipelinedLoad]] = {}
    for load in plan.loads:
        groups.setdefault(run_of_loads(plan, load.statement)[0], []).append(load)
    tensor = tuple(sum(load.tile is not None for load in group) for group in groups.values())
    # One warp starts all copies of the tensor data mover; other copies are made by as many warps as their layouts have.
    warps = 1 if sum(tensor) == len(plan.loads) else kernel.num_warps
    names = tuple(tuple(load.name for load in group) for group in groups.values())
    schedule = Partitions(plan.schedule.buffers, names, warps, kernel.num_warps, kernel.target.warp_size, tensor)
    return replace(plan, schedule=schedule, written_out=None)
