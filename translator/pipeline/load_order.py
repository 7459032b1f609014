"""Where the loads of tiles that go through registers stand in a pipelined loop: before the reads of LDS or after them."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from translator.pipeline.loop import PipelinedLoop, Ring
from translator.rewrite import callees
from translator.ttgir.elements import bits_of
from translator.ttgir.layouts import Blocked

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter

FEWEST_SCATTERED = 32  # accesses of a lane
MOST_WAITING = 64  # registers of a lane, a quarter of them


def loads_first(rw: "FunctionRewriter", loop: PipelinedLoop) -> bool:
    """Whether tiles that go through registers are loaded before they are read from LDS, as in Triton's loop."""
    stored = [ring for ring in loop.rings if ring.load.stored]
    return _scales_operands(rw, loop) or _of_one_warp(rw, loop, stored) or any(_scattered(rw, loop, r) for r in stored)


def _scales_operands(rw: "FunctionRewriter", loop: PipelinedLoop) -> bool:
    """Whether operands are brought to a wider type and scaled after they are read from LDS.

    Loads before the reads, as in Triton's loop, stay there; LLVM moves others down to their stores, where all that the
    operands have grown to is held too. Other loops hold less with loads after the reads, or as much.
    """
    for node in ast.walk(loop.plan.loop):
        callee = callees.callee_of(rw, node) if isinstance(node, ast.Call) else None
        if callee is not None and callee.row is not None and callee.row.kind == "dot_scaled":
            return not rw.placed(node, "tt.dot_scaled")
    return False


def _of_one_warp(rw: "FunctionRewriter", loop: PipelinedLoop, stored: list[Ring]) -> bool:
    """Whether the one warp of a kernel with few registers loads several tiles into other slots than it reads, of few
    registers together.

    It has all of every tile and of every operand in its registers; loaded first, it computes no offsets beside the operands.
    Tiles that fill half of the registers would wait in them for longer.
    """
    target = rw.unit.target
    if not target.has_few_registers or rw.unit.num_warps > 1 or loop.plan.schedule.buffers < 2 or len(stored) < 2:
        return False
    bits = sum(math.prod(r.load.staged.shape) * bits_of(rw.tensor(r.fetch).dtype) for r in stored)
    return bits <= 32 * target.warp_size * MOST_WAITING


def _scattered(rw: "FunctionRewriter", loop: PipelinedLoop, ring: Ring) -> bool:
    """Whether a tile is loaded element by element, many of them, at offsets that the loop computes for each tile.

    With few registers all tiles are loaded before they are read then: offsets, a register each, are not held beside operands.
    """
    source, made = ring.load.staged.source, {*loop.ahead_of, *loop.ahead_of.values()}
    if not rw.unit.target.has_few_registers or not isinstance(source, Blocked):
        return False
    lanes = rw.unit.num_warps * rw.unit.target.warp_size
    if math.prod(source.size_per_thread) > 1 or math.prod(ring.load.staged.shape) < FEWEST_SCATTERED * lanes:
        return False
    pointer = callees.bind(rw, ring.fetch, callees.callee_of(rw, ring.fetch)).get("pointer")
    names = [n for n in ast.walk(pointer) if isinstance(n, ast.Name)] if pointer is not None else []
    return any(
        d.node in made and (fact := rw.tensor(n)) is not None and len(fact.shape) > 1
        for n in names
        if n in rw.webs.of_use
        for d in rw.webs.of_use[n].definitions
    )


def loads_meet(rw: "FunctionRewriter", loop: PipelinedLoop) -> bool:
    """Whether all tiles ahead are loaded after the last read, so that fewer registers wait for the end of the body.

    Where there are 256: two operands and a result of attention fill them. Addresses must not change between the reads.
    """
    if loop.copies or not rw.unit.target.has_few_registers:
        return False
    atoms, statements = loop.plan.atoms, [load.statement for load in loop.plan.loads]
    places = [atoms.index(s) for s in statements]
    between = atoms[min(places) : max(places)]
    same_block = len({s.col_offset for s in statements}) == 1
    return same_block and statements[-1] is atoms[max(places)] and not any(s in loop.ahead_of for s in between)
