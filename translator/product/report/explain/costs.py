"""What values and conversions cost: bytes, registers per lane, and how far a conversion moves data."""

from __future__ import annotations

import math

from gluonize.diagnostics import TranslationError
from gluonize.product.report.layouts.linear_map import DistributedMap
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.layouts import Ints, Layout, Opaque


class Costs:
    """Asks Triton for linear maps of one target; answers for layouts without one are vague instead of wrong."""

    def __init__(self, target: str, num_warps: int):
        from gluonize.product.report.layouts.job import LayoutAsker

        self.asker = LayoutAsker(target, num_warps)

    def map(self, layout: Layout, shape: Ints) -> DistributedMap | None:
        if isinstance(layout, Opaque) or isinstance(layout.root, Opaque) or layout.rank != len(shape):
            return None
        try:
            return self.asker.distributed(layout, shape)
        except TranslationError:
            return None

    def bytes(self, shape: Ints, dtype: str) -> int:
        """Of the whole tile, per program."""
        return math.prod(shape) * bits_of(dtype) // 8

    def registers(self, layout: Layout, shape: Ints, dtype: str) -> int | None:
        """32-bit registers per lane."""
        found = self.map(layout, shape)
        return max(1, found.registers * bits_of(dtype) // 32) if found else None

    def move(self, before: Layout, after: Layout, shape: Ints) -> str:
        """`registers only`, `between lanes of a wave` or `between waves, through LDS`."""
        a, b = self.map(before, shape), self.map(after, shape)
        if a is None or b is None:
            return "moved"
        if a.warp != b.warp:
            return "between waves, through LDS"
        return "registers only" if a.lane == b.lane else "between lanes of a wave"
