"""Prefetches into the L2 cache: the tensor data mover asks for tiles further ahead than the LDS ring has room for.

    tdm.async_load(a_tiles, [0, k_ahead * BLOCK_K], a_smem.index(free_slot))
    tdm.prefetch(a_tiles, [0, (k_ahead + 2) * BLOCK_K], pred=k_ahead + 2 < gl.cdiv(K, BLOCK_K))

They change no result: what lies outside of a tensor is not asked for, and nothing at all past the loop's end.
"""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.decide.choices.chosen import Choices
from gluonize.facts.function import FunctionFacts
from gluonize.gluon.code import as_lines
from gluonize.gluon.nodes import Node
from gluonize.gluon.written import binary, grouped, literal, name, operand
from gluonize.loops.copies import mover
from gluonize.loops.loop import counts
from gluonize.loops.loop.loop import LoopPass, PipelinedLoop, Ring
from gluonize.loops.loop.site import LoopSite
from gluonize.loops.passes.slices import SlicedDot
from gluonize.loops.plan.schedule import Copied, Refilled


def asked(facts: FunctionFacts, choices: Choices, loop: PipelinedLoop, sliced: SlicedDot | None) -> LoopPass | None:
    """Tiles that are asked for in L2, where a choice says how many."""
    further = choices.number("l2-prefetch")
    return AskedOfL2(further) if further and _can_prefetch(loop) else None


def _can_prefetch(loop: PipelinedLoop) -> bool:
    """Whether all that says where a tile lies is the loop's index, a 32-bit number, and a ring is filled ahead."""
    plan = loop.plan
    plain = isinstance(plan.schedule, Copied | Refilled) and not (loop.trips.written_out or loop.trips.in_rounds)
    return plain and not plan.range.asks_rest and plan.range.dtype == "int32" and not plan.runs.producer


@dataclass(frozen=True)
class AskedOfL2(LoopPass):
    """tiles: how many beyond those that are copied are asked for in the L2 cache."""

    tiles: int

    uses_ahead = True

    def beside(self, site: LoopSite, loop: PipelinedLoop, copied: list[Ring]) -> tuple[Node, ...]:
        """One prefetch for each of the tiles that the data mover copies."""
        rings = [ring for ring in copied if ring.load.tile is not None]
        if not rings:
            return ()
        step = loop.plan.range.step
        further = literal(self.tiles)
        further = further if step is None else binary(further, "*", operand(site.emit(step)))
        index = binary(name(loop.ahead), "+", further)
        condition = counts.condition(site.emit, loop, index)
        loop.fetch.be(grouped(index))
        lines = [mover.prefetch(site.facts, site.emit, site.record, loop, ring, condition) for ring in rings]
        loop.fetch.be(name(loop.ahead))
        return as_lines(lines)
