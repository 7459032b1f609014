"""Loads of a pipelined loop that the tensor data mover fetches: a descriptor before the loop, one copy per tile.

`before` writes the descriptor for a load, `copy` issues the copy of one tile into one slot.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from translator.rewrite import callees, descriptors, tdm

if TYPE_CHECKING:
    from translator.pipeline.loop import PipelinedLoop, Ring
    from translator.rewrite.function import FunctionRewriter


@dataclass(frozen=True)
class DescriptorTile:
    """Tiles of a descriptor of the source. fixed: by dimension, whether the offset is the same in every iteration."""

    owner: ast.expr
    offsets: tuple[ast.expr, ...]
    fixed: tuple[bool, ...]

    @property
    def counts_tiles(self) -> bool:
        """Whether a copy needs the loop index apart from the author's own expressions."""
        return False

    @property
    def permutation(self) -> tuple[int, ...]:
        """Dimension of the tile in LDS behind each dimension of the load."""
        return tuple(range(len(self.offsets)))

    def positioned(self, rw: "FunctionRewriter") -> bool:
        """Whether offsets that stay the same are worked into the descriptor before the loop."""
        return any(f and not tdm.constant_zero(rw, o) for f, o in zip(self.fixed, self.offsets))

    def before(self, rw: "FunctionRewriter", loop: "PipelinedLoop", ring: "Ring") -> list[str]:
        owner = rw.emit(self.owner)
        shape = f"[{loop.buffers}] + {owner}.block_shape"
        lines = [f"{ring.smem} = gl.allocate_shared_memory({owner}.dtype, {shape}, {owner}.layout)"]
        if not self.positioned(rw):
            return lines
        offsets = [tdm.index_text(rw, o) if f else "0" for f, o in zip(self.fixed, self.offsets)]
        return [*lines, f"{ring.tiles} = {tdm.position_text(rw, rw.emit(self.owner), offsets)}"]

    def copy(self, rw: "FunctionRewriter", loop: "PipelinedLoop", ring: "Ring", slot: str, condition: str) -> str:
        barrier = loop.ready_of(ring, slot)
        given = callees.bind(rw, ring.fetch, callees.callee_of(rw, ring.fetch))
        tdm.check_offsets(rw, descriptors.origin_of(rw, self.owner), list(self.offsets))
        moved = self.positioned(rw)
        offsets = ["0" if f and moved else tdm.index_text(rw, o) for f, o in zip(self.fixed, given["offsets"].elts)]
        name = ring.tiles if moved else rw.emit(self.owner)
        return tdm.copy_text(rw, name, offsets, f"{ring.smem}.index({slot})", condition, barrier)

    def prefetch(self, rw: "FunctionRewriter", loop: "PipelinedLoop", ring: "Ring", condition: str) -> str:
        """Ask for the tile at `loop.at` in the L2 cache."""
        given = callees.bind(rw, ring.fetch, callees.callee_of(rw, ring.fetch))
        moved = self.positioned(rw)
        offsets = ["0" if f and moved else tdm.index_text(rw, o) for f, o in zip(self.fixed, given["offsets"].elts)]
        return tdm.prefetch_text(rw, ring.tiles if moved else rw.emit(self.owner), offsets, condition)
