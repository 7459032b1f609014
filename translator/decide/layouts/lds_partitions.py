"""Products whose warps read both partitions of the LDS of gfx1250 at the same time.

Warps that issue together read the same rows of A or columns of B in the layouts of Triton's passes, so from one partition
of LDS, one after the other. Here the first two warps are half a tile apart in M and in N. The layout is that of
`cdna5.make_partitioned_dot_layouts` of Triton 3.9.0 for a product that is not sliced.
"""

from __future__ import annotations

from dataclasses import replace

from gluonize.trace.model.layouts import DotOperand, Layout, Slice, Wmma
from gluonize.trace.model.shared_layouts import PARTITIONS
from gluonize.trace.passes.anchors import Anchors

_REDUCE = ("tt.reduce", "tt.scan")
ROWS_PER_PIECE, COLUMNS_PER_PIECE = 2, 1  # instructions of a piece, at least


def spread(layout: Layout, shape: tuple[int, ...], num_warps: int) -> Wmma | None:
    """The layout of a product of `shape` whose warps are spread over partitions; None where the tile is too small."""
    if not isinstance(layout, Wmma) or layout.version != 3 or layout.ctas or len(shape) != 2 or num_warps not in (4, 8):
        return None
    rows, columns = layout.instr_shape[1::-1] if layout.transposed else layout.instr_shape[:2]
    m, n = shape[0] // rows, shape[1] // columns
    if m < PARTITIONS * ROWS_PER_PIECE or n < PARTITIONS * COLUMNS_PER_PIECE:
        return None
    piece_m, piece_n = m // (PARTITIONS * ROWS_PER_PIECE), n // (PARTITIONS * COLUMNS_PER_PIECE)
    warps = [(m // 2, piece_n), (piece_m, 0)]
    repeats = [(0, 1 << i) for i in range(piece_n.bit_length() - 1)]
    repeats += [(1 << i, 0) for i in range(piece_m.bit_length() - 1)]
    (warps if num_warps == 8 else repeats).append((2 * piece_m, 0))
    return replace(layout, warp_bases=tuple(warps), reg_bases=tuple(repeats))


def with_spread_products(anchors: Anchors, num_warps: int) -> Anchors | None:
    """`anchors` with the one layout of all products spread; None where there are several, or it cannot be.

    Triton reduces no tensor whose warps are apart in both dimensions by one bit of their number.
    """
    products = {ty for op in anchors.ops if op.name == "tt.dot" for ty in op.results}
    if len(products) != 1:
        return None
    (product,) = products
    made = spread(product.layout, product.shape, num_warps)
    if made is None:
        return None
    if any(op.name in _REDUCE and any(ty.layout == product.layout for ty in op.operands) for op in anchors.ops):
        return None
    types = {ty for op in anchors.ops for ty in op.types}
    swaps = {ty: replace(ty, layout=_with_root(ty.layout, product.layout, made)) for ty in types}
    return anchors.with_types({old: new for old, new in swaps.items() if old != new})


def _with_root(layout: Layout, old: Layout, new: Layout) -> Layout:
    if layout == old:
        return new
    if isinstance(layout, (DotOperand, Slice)):
        return replace(layout, parent=_with_root(layout.parent, old, new))
    return layout
