"""Prefetches into the L2 cache: the tensor data mover asks for tiles further ahead than the LDS ring has room for.

    tdm.async_load(a_tiles, [0, k_ahead * BLOCK_K], a_smem.index(free_slot))
    tdm.prefetch(a_tiles, [0, (k_ahead + 2) * BLOCK_K], pred=k_ahead + 2 < gl.cdiv(K, BLOCK_K))

They change no result: what lies outside of a tensor is not asked for, and nothing at all past the loop's end.
"""

from __future__ import annotations


from gluonize.facts.function import FunctionFacts
from gluonize.gluon.written import Written, binary, grouped, literal, name, operand
from gluonize.loops.copies import mover
from gluonize.loops.loop import counts
from gluonize.loops.loop.loop import PipelinedLoop, Ring
from gluonize.write.state.unit import Record
from gluonize.write.state.writing import Emit


def can_prefetch(loop: PipelinedLoop) -> bool:
    """Whether all that says where a tile lies is the loop's index, a 32-bit number, and a ring is filled ahead."""
    plan = loop.plan
    rolling = not (loop.specialized or plan.once or plan.written_out is not None or loop.first or plan.asks_rest)
    return rolling and loop.copies and plan.index_dtype == "int32" and not plan.producer


def prefetches(
    facts: FunctionFacts, emit: Emit, record: Record, loop: PipelinedLoop, fetched: list[Ring]
) -> list[Written]:
    """One prefetch for each of the tiles `fetched` that the data mover copies."""
    rings = [ring for ring in fetched if ring.load.tile is not None]
    if not loop.l2_ahead or not rings:
        return []
    step = loop.plan.step
    further = literal(loop.l2_ahead)
    further = further if step is None else binary(further, "*", operand(emit(step)))
    index = binary(name(loop.ahead), "+", further)
    condition = counts.condition(emit, loop, index)
    loop.fetch_at(grouped(index))
    lines = [mover.prefetch(facts, emit, record, loop, ring, condition) for ring in rings]
    loop.fetch_at(name(loop.ahead))
    return lines
