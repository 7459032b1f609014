"""Layouts as the objects that Gluon's constructors make, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gluonize.trace.model.layouts import Blocked, DotOperand, Layout, Linear, Mfma, Slice, Wmma
from gluonize.trace.model.shared_layouts import Padded, SharedLinear, Swizzled
from gluonize.triton_api.gluon_language import gl


def as_gluon(layout: Layout) -> Any:
    """The object that the constructor of `layout` gives; None for classes that no rule takes, and for parts of clusters."""
    if isinstance(layout, DotOperand):
        parent = as_gluon(layout.parent)
        return None if parent is None else gl.DotOperandLayout(layout.operand_index, parent, layout.k_width)
    if getattr(layout, "ctas", ()):
        return None
    if isinstance(layout, Mfma):
        more = {"tiles_per_warp": list(layout.tiles_per_warp)} if layout.tiles_per_warp else {}
        shape, warps, bits = list(layout.instr_shape), list(layout.warps_per_cta), layout.element_bitwidth
        return gl.amd.AMDMFMALayout(layout.version, shape, layout.transposed, warps, bits, **more)
    if isinstance(layout, Wmma):
        warps, registers = _lists(layout.warp_bases), _lists(layout.reg_bases)
        rank = layout.tensor_rank
        return gl.amd.AMDWMMALayout(
            layout.version, layout.transposed, warps, registers, list(layout.instr_shape), rank=rank
        )
    if isinstance(layout, Padded):
        pairs, shape = [list(pair) for pair in layout.pairs], list(layout.shape)
        if layout.offsets:
            return gl.PaddedSharedLayout(pairs, _lists(layout.offsets), [], shape)
        return gl.PaddedSharedLayout.with_identity_for(pairs, shape, list(layout.order))
    if isinstance(layout, Blocked):
        parts = (layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta, layout.order)
        return gl.BlockedLayout(*map(list, parts))
    if isinstance(layout, Linear):
        parts = (layout.register, layout.lane, layout.warp, layout.block)
        return gl.DistributedLinearLayout(*map(_lists, parts), list(layout.shape))
    if isinstance(layout, SharedLinear):
        return gl.SharedLinearLayout(_lists(layout.offsets))
    if isinstance(layout, Swizzled):
        return gl.SwizzledSharedLayout(layout.vec, layout.per_phase, layout.max_phase, list(layout.order))
    return None


def of_gluon(value: Any) -> Layout | None:
    """The layout of an object that a rule gives; None for what is no layout."""
    if isinstance(value, gl.DistributedLinearLayout):
        parts = (value.reg_bases, value.lane_bases, value.warp_bases, value.block_bases)
        return Linear(*map(_tuples, parts), tuple(value.shape))
    if isinstance(value, gl.BlockedLayout):
        parts = (value.size_per_thread, value.threads_per_warp, value.warps_per_cta, value.order)
        return Blocked(*map(tuple, parts), _tuples(value.cga_layout or ()))
    if isinstance(value, gl.amd.AMDMFMALayout):
        tiles = tuple(value.tiles_per_warp) if set(value.tiles_per_warp) - {1} else ()
        shape, warps = tuple(value.instr_shape), tuple(value.warps_per_cta)
        return Mfma(value.version, shape, value.transposed, warps, value.element_bitwidth, tiles)
    if isinstance(value, gl.amd.AMDWMMALayout):
        warps, registers = _tuples(value.warp_bases), _tuples(value.reg_bases)
        return Wmma(value.version, value.transposed, warps, registers, tuple(value.instr_shape), value.rank)
    if isinstance(value, gl.DotOperandLayout):
        parent = of_gluon(value.parent)
        return None if parent is None else DotOperand(value.operand_index, parent, value.k_width)
    if isinstance(value, gl.SliceLayout):
        parent = of_gluon(value.parent)
        return None if parent is None else Slice(value.dim, parent)
    if isinstance(value, gl.PaddedSharedLayout):
        return Padded(_tuples(value.interval_padding_pairs), _tuples(value.offset_bases), (), tuple(value.shape))
    if isinstance(value, gl.SharedLinearLayout):
        return SharedLinear(_tuples(value.offset_bases))
    if isinstance(value, gl.SwizzledSharedLayout):
        return Swizzled(value.vec, value.per_phase, value.max_phase, tuple(value.order))
    return None


def same_places(one: Layout, other: Layout) -> bool:
    """Whether two layouts of tiles put every element in the same place: a blocked and a linear one, two padded ones, or blocked ones
    that are in another order where that says nothing."""
    for blocked, other_one in ((one, other), (other, one)):
        if isinstance(blocked, Blocked) and isinstance(other_one, Linear):
            return linear(blocked, other_one.shape) == other_one
    if isinstance(one, Padded) and isinstance(other, Padded):
        return _by_bases(one) == _by_bases(other)
    return one == in_order_of(one, other)


def in_order_of(one: Layout, other: Layout) -> Layout:
    """`other` with the order of `one`, where both have the other dimensions in one order: the place of a dimension along which a lane has
    one element, and a warp and a workgroup one lane, says nothing."""
    if not (isinstance(one, Blocked) and isinstance(other, Blocked) and one.rank == other.rank):
        return other
    spread = [d for d in range(other.rank) if max(part[d] for part in _counts(other)) > 1]
    same = [d for d in one.order if d in spread] == [d for d in other.order if d in spread]
    return replace(other, order=one.order) if same else other


def _counts(layout: Blocked) -> tuple[tuple[int, ...], ...]:
    return layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta


def _by_bases(layout: Padded) -> Layout:
    return layout if layout.offsets else of_gluon(as_gluon(layout)) or layout


def linear(layout: Layout, shape: tuple[int, ...]) -> Linear | None:
    """A blocked layout of a tile of `shape`, or one of a product, by its bases: elements of a lane first, then lanes, then warps, each along
    the fastest dimension first; what is beyond the tile is a copy, and what is left of it is repeated. None for others.
    """
    if getattr(layout, "ctas", ()):
        return None
    if isinstance(layout, Mfma):
        return _product(layout, shape)
    if not isinstance(layout, Blocked):
        return None
    tile = _Tile(shape, layout.order)
    register = tile.steps(layout.size_per_thread, False)
    lane, warp = tile.steps(layout.threads_per_warp, True), tile.steps(layout.warps_per_cta, True)
    return Linear(tuple(register + tile.left()), tuple(lane), tuple(warp), (), shape)


def _product(layout: Mfma, shape: tuple[int, ...]) -> Linear | None:
    """MFMA by its bases: of an instruction's result each lane has four elements in a row, then every eighth or those of other lanes."""
    side = layout.instr_shape[0]
    if layout.instr_shape[:2] not in ((32, 32), (16, 16)) or layout.tiles_per_warp or layout.element_bitwidth != 32:
        return None
    along, across = (1, 0) if layout.transposed else (0, 1)
    tile = _Tile(shape, (1, 0))
    register = tile.run(along, 4, True)
    lane = tile.run(across, side, True) + tile.run(along, 64 // side, True)
    register += tile.run(along, side * side // 256, True)
    warp = tile.steps(layout.warps_per_cta, True)
    return Linear(tuple(register + tile.left()), tuple(lane), tuple(warp), (), shape)


class _Tile:
    """The bases of a tile of `shape`, taken one after the other. order: of dimensions, the fastest first."""

    def __init__(self, shape: tuple[int, ...], order: tuple[int, ...]):
        self.shape, self.order, self.step = shape, order, [1] * len(shape)

    def run(self, dim: int, count: int, copies: bool) -> list[tuple[int, ...]]:
        """The next bases along a dimension, for `count` elements. copies: bases beyond the tile are those of copies, else there are none."""
        out = []
        for _ in range(count.bit_length() - 1):
            inside = self.step[dim] < self.shape[dim]
            if inside or copies:
                out.append(tuple(self.step[dim] if d == dim and inside else 0 for d in range(len(self.shape))))
            self.step[dim] *= 2
        return out

    def steps(self, counts: tuple[int, ...], copies: bool) -> list[tuple[int, ...]]:
        return [basis for dim in self.order for basis in self.run(dim, counts[dim], copies)]

    def left(self) -> list[tuple[int, ...]]:
        """The bases that are left of the tile."""
        return self.steps(tuple(max(1, size // done) for size, done in zip(self.shape, self.step)), False)


def _tuples(rows: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in rows)


def _lists(rows: Any) -> list[list[int]]:
    return [list(row) for row in rows]


__all__ = ["as_gluon", "in_order_of", "linear", "of_gluon", "same_places"]
