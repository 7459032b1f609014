"""Copies past the end of a loop that fetch its last tile once more, so that no copy asks whether its tile exists.

Before:                                                          After:
    copy(a_smem.index(free_slot), a_base, mask=k_ahead < K)          copy(a_smem.index(free_slot), a_base)
    a_base += BLOCK_K                                                if k_ahead < K - BLOCK_K:
                                                                         a_base += BLOCK_K

A mask is an instruction for every vector that is copied. Pointers that stay at the last tile need a scalar comparison; what is copied
then is read by nobody. The copies before the loop are masked, as there may be no tile at all.
"""

from __future__ import annotations

import ast

from gluonize.gluon.code import code_of, line
from gluonize.gluon.nodes import Code, Node
from gluonize.gluon.written import Written, binary, literal, operand
from gluonize.loops.loop.loop import PipelinedLoop
from gluonize.write.state.writing import Emit


def can_repeat(loop: PipelinedLoop) -> bool:
    """Whether what the loop fetches is decided by pointers that move by the same from tile to tile, and nothing else reads these."""
    plan = loop.plan
    plain = plan.low is None and not plan.descending and not plan.asks_rest and not plan.asks_start
    copies = plan.schedule.mechanism == "copies" and plan.written_out is None and not plan.once and not plan.refills
    own = not (plan.on_both_sides or plan.doubled or plan.guarded or loop.index_names or loop.own_names)
    return (
        plain
        and copies
        and own
        and not (loop.first or loop.l2_ahead or loop.early)
        and all(ring.load.copied and ring.load.tile is None for ring in loop.rings)
        and any(not ring.load.covered for ring in loop.rings)
        and bool(loop.ahead_of)
        and all(isinstance(made, ast.AugAssign) for made in loop.ahead_of.values())
    )


def step_of(emit: Emit, loop: PipelinedLoop) -> Written:
    """By how much the loop's index grows."""
    return literal(1) if loop.plan.step is None else operand(emit(loop.plan.step))


def another_follows(emit: Emit, loop: PipelinedLoop) -> Written:
    """In the body: that there is a tile behind the one that is fetched. A difference, which overflows where a sum would."""
    return binary(loop.round.at, "<", binary(operand(emit(loop.plan.high)), "-", step_of(emit, loop)))


def moved_before(emit: Emit, loop: PipelinedLoop, index: Written, move: Code) -> list[Node]:
    """Before the loop: a pointer moves where there is a tile behind the one at `index`."""
    there = binary(binary(operand(index), "+", step_of(emit, loop)), "<", operand(emit(loop.plan.high)))
    return [line("if ", there, ":"), line("    ", move)]


def moved_after(emit: Emit, loop: PipelinedLoop, move: Code) -> list[Code]:
    """Behind the loop: a pointer that was left at the last tile, if there was one, stands behind it."""
    return [code_of("if ", binary(operand(emit(loop.plan.high)), ">", literal(0)), ":"), code_of("    ", move)]


__all__ = ["another_follows", "can_repeat", "moved_after", "moved_before"]
