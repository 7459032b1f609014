"""Masks that the compiler would make far ahead of what they select from.

    b = tl.where(rows[:, None] >= cols[None, :], b, 0)    ->    hint.sched_barrier()
                                                                b = gl.where(rows[:, None] >= cols[None, :], b, 0)

A comparison of indices waits for nothing, so LLVM makes it at the top of its block, before what it selects from is there. Until
then a mask holds a scalar register for each register of the tile, where warps have 32 lanes, of the 106 that there are; those
that are spilled go to lanes of vector registers, and loads wait for each other.

Ahead of the first product every mask is kept back, unless a loop follows. Behind it those of at least half of the scalar registers
are, in loops too, and all that stand beside tiles of a loop that is written out.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from translator.frontend.trace import TensorFact
from translator.pipeline.span import runs_once
from translator.rewrite import callees, dots

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter

_WHY = "# The mask is made here: LLVM would make it before the values are there, and run out of scalar registers."
MANY = 64  # of the 106 scalar registers: a mask of so many is kept back wherever it stands


def keep_back(rw: "FunctionRewriter", s: ast.stmt) -> None:
    """Put what keeps its masks from being made early before a statement that selects, or before the one that makes them."""
    if rw.unit.target.has_few_registers or not rw.unit.multiplies or dots.multiplies(rw, s):
        return
    for mask, made in _masks(rw, s):
        place = _place(rw, s, mask, made)
        if place is not None:
            rw.barrier_before(place, _WHY)


def _masks(rw: "FunctionRewriter", s: ast.stmt) -> Iterator[tuple[TensorFact, ast.stmt]]:
    """The masks by which a statement selects elements of a tile, made by comparing, and the statements that make them."""
    for call in ast.walk(s):
        callee = callees.callee_of(rw, call) if isinstance(call, ast.Call) else None
        if callee is None or callee.row is None or callee.row.name != "where" or not call.args:
            continue
        mask, made = call.args[0], s
        if (value := rw.webs.value_of(mask)) is not None:
            mask, made = value, rw.webs.definition_of(mask).node
        compared = (rw.tensor(n) for n in ast.walk(mask) if isinstance(n, ast.Compare))
        if (fact := next((f for f in compared if f is not None and f.rank > 1), None)) is not None:
            yield fact, made


def _place(rw: "FunctionRewriter", s: ast.stmt, mask: TensorFact, made: ast.stmt) -> ast.stmt | None:
    """What the mask is kept behind of: the statement that makes it, or `s` where products stand between; None if it is not."""
    running = [loop for loop in rw.loops if not _written_out(rw, loop)]
    every = list(_straight(rw, (running[-1] if running else rw.tree).body))
    if s not in every or made not in every:
        return None
    at, first = every.index(s), every.index(made)
    before = [x for x in every[:at] if dots.multiplies(rw, x)]
    few = math.prod(mask.shape) < MANY * 32 * rw.unit.num_warps  # a mask of 64 lanes takes two scalar registers
    if rw.unit.target.warp_size == 64 and (few or not _spills_with_64_lanes(rw, s, made, before, running)):
        return None
    ahead = not (running or rw.path or before)
    if _before_a_loop(rw, every[at + 1 :]):
        return _behind_tiles(rw, every[: at + 1]) if ahead else None
    if ahead:
        return s if made is s else None
    if few and (running or not any(loop in rw.pipelined_loops for loop in rw.loops)):
        return None
    return s if any(x in before for x in every[first:at]) else made


def _behind_tiles(rw: "FunctionRewriter", before: list[ast.stmt]) -> ast.stmt | None:
    """What follows the last load of a tile ahead of the selection `before` ends with, if anything does."""
    for s, following in zip(reversed(before[:-1]), reversed(before)):
        if any(_loads_tile(rw, n) for n in ast.walk(s)):
            return following if following is not before[-1] else None
    return None


def _loads_tile(rw: "FunctionRewriter", node: ast.AST) -> bool:
    fact = rw.tensor(node) if isinstance(node, ast.Call) and callees.kind_of(rw, node) == "load" else None
    return fact is not None and fact.rank > 1


def _spills_with_64_lanes(rw, s: ast.stmt, made: ast.stmt, before: list[ast.stmt], running: list[ast.AST]) -> bool:
    """Where a mask of 64 lanes is kept back: behind a loop one that several statements may select by, and within a pipelined
    one whose tiles wait in registers if the target copies tiles to LDS, or do not if it has no copies.

    No reason in the hardware is known for the second: fewer registers were spilled where it was measured.
    """
    if not running:
        return made is not s and any(isinstance(x, ast.For) for x in before)
    loop = rw.pipelined_loops.get(running[-1])
    waits = loop is not None and any(load.held for load in loop.plan.loads)
    return loop is not None and waits == rw.unit.target.copies_take_buffers


def _written_out(rw: "FunctionRewriter", loop: ast.AST) -> bool:
    """Whether a loop is written out, by the author or here, or runs once."""
    plan = rw.pipelined_loops.get(loop)
    if plan is not None and plan.written_out:
        return True
    return isinstance(loop, ast.For) and (rw.unrolled(loop) or runs_once(rw, loop))


def _straight(rw: "FunctionRewriter", body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run once, and loops as a whole, in the order in which they run."""
    for s in body:
        if not rw.taken(s):
            continue
        if isinstance(s, ast.If):
            yield from _straight(rw, s.body)
            yield from _straight(rw, s.orelse)
        elif isinstance(s, ast.For) and _written_out(rw, s):
            yield from _straight(rw, s.body)
        else:
            yield s


def _before_a_loop(rw: "FunctionRewriter", rest: list[ast.stmt]) -> bool:
    """Whether a loop comes before the next product: the tile is one of its values, made as it suits the loop's registers."""
    for s in rest:
        if isinstance(s, (ast.For, ast.While)):
            return True
        if dots.multiplies(rw, s):
            return False
    return False
