"""Whether a layout that formulas give is one: every lane and warp has its part, and the parts are the whole tile."""

from __future__ import annotations

import math

from gluonize.trace.model.layouts import Bases, Blocked, DotOperand, Ints, Layout, Linear, Mfma, Slice, Wmma
from gluonize.trace.model.shared_layouts import Padded, Swizzled


def is_complete(layout: Layout, lanes: int, warps: int) -> bool:
    """Whether `layout` is for warps of `lanes` lanes, `warps` of them, and has all elements of its tile once it has a shape."""
    if isinstance(layout, (Slice, DotOperand)):
        return is_complete(layout.parent, lanes, warps)
    if isinstance(layout, Blocked):
        return math.prod(layout.threads_per_warp) == lanes and math.prod(layout.warps_per_cta) == warps
    if isinstance(layout, Mfma):
        return math.prod(layout.warps_per_cta) == warps
    if isinstance(layout, Wmma):
        return 2 ** len(layout.warp_bases) == warps
    if isinstance(layout, Linear):
        bases = (*layout.register, *layout.lane, *layout.warp, *layout.block)
        counts = 2 ** len(layout.lane), 2 ** len(layout.warp)
        return counts == (lanes, warps) and _all_elements(bases, layout.shape)
    if isinstance(layout, Swizzled):
        return min(layout.vec, layout.per_phase, layout.max_phase) > 0
    if isinstance(layout, Padded) and layout.offsets and not layout.ctas:
        return len(set(layout.offsets)) == len(layout.offsets) and _all_elements(layout.offsets, layout.shape)
    return True


def _all_elements(bases: Bases, shape: Ints) -> bool:
    """Whether bases along single dimensions reach every element of a tile and none outside."""
    reached = [sorted({basis[d] for basis in bases} - {0}) for d in range(len(shape))]
    return reached == [[1 << i for i in range(size.bit_length() - 1)] for size in shape]


__all__ = ["is_complete"]
