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

from gluonize.decide.choices.chosen import Choices
from gluonize.facts.function import FunctionFacts
from gluonize.gluon.code import code_of
from gluonize.gluon.nodes import Code
from gluonize.gluon.written import Written, binary, literal, operand
from gluonize.loops.loop.loop import LoopPass, PipelinedLoop
from gluonize.loops.loop.site import LoopSite
from gluonize.loops.passes.slices import SlicedDot
from gluonize.loops.plan.schedule import Copied


class RepeatedCopies(LoopPass):
    masks_end = False

    def says(self, loop: PipelinedLoop) -> list[str]:
        return [f"copies past the end of `for {loop.plan.range.index}` fetch its last tile once more"]

    def moved(self, site: LoopSite, loop: PipelinedLoop, move: Code, at: Written | None) -> list[Code]:
        """A pointer moves where there is a tile behind the one that is fetched. In the body a difference, which overflows where a sum would."""
        step = literal(1) if loop.plan.range.step is None else operand(site.emit(loop.plan.range.step))
        high = operand(site.emit(loop.plan.range.high))
        if at is None:
            there = binary(loop.fetch.at, "<", binary(high, "-", step))
        else:
            there = binary(binary(operand(at), "+", step), "<", high)
        return [code_of("if ", there, ":"), code_of("    ", move)]

    def moved_back(self, site: LoopSite, loop: PipelinedLoop, move: Code) -> list[Code]:
        """A pointer that was left at the last tile, if there was one, stands behind it."""
        high = operand(site.emit(loop.plan.range.high))
        return [code_of("if ", binary(high, ">", literal(0)), ":"), code_of("    ", move)]


def asked(facts: FunctionFacts, choices: Choices, loop: PipelinedLoop, sliced: SlicedDot | None) -> LoopPass | None:
    """Repeated copies, where a choice asks for them and the loop can have them."""
    return RepeatedCopies() if choices.asks("copies-past-end", "repeated") and _can_repeat(loop) else None


def _can_repeat(loop: PipelinedLoop) -> bool:
    """Whether what the loop fetches is decided by pointers that move by the same from tile to tile, and nothing else reads these."""
    plan = loop.plan
    plain = (
        plan.range.low is None and not plan.range.descending and not plan.range.asks_rest and not plan.range.asks_start
    )
    copies = isinstance(plan.schedule, Copied) and plan.written_out is None
    own = not (plan.runs.on_both_sides or plan.runs.doubled or plan.runs.guarded or loop.fetch.uses or loop.own_names)
    return (
        plain
        and copies
        and own
        and not (loop.trips.in_rounds or loop.copied_again or any(one.uses_ahead for one in loop.passes))
        and all(ring.load.copied and ring.load.tile is None for ring in loop.rings)
        and any(not ring.load.covered for ring in loop.rings)
        and bool(loop.ahead_of)
        and all(isinstance(made, ast.AugAssign) for made in loop.ahead_of.values())
    )


__all__ = ["RepeatedCopies", "asked"]
