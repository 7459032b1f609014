"""Layouts as Gluon constructors (Triton 3.9.0)."""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.trace.model.layouts import (
    Bases,
    Blocked,
    DotOperand,
    Layout,
    Linear,
    Mfma,
    SharedLayout,
    Slice,
    Wmma,
    lists,
)


@dataclass(frozen=True)
class Called(Layout):
    """A layout that a function of the output gives. text: the call. about: a line for the reader, or ""."""

    text: str
    about: str = ""

    @property
    def ctas(self) -> Bases:
        return ()


def constructor(layout: Layout, names: dict[Layout, str] | None = None, top: bool = False) -> str:
    """The Gluon expression for `layout`; layouts in `names` are referred to by name (unless `top`)."""
    names = names or {}
    if isinstance(layout, Called) and (top or layout not in names):
        return layout.text
    if not top and layout in names:
        return names[layout]
    if isinstance(layout, Blocked):
        parts = (layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta, layout.order)
        return f"gl.BlockedLayout({', '.join(map(lists, parts))}{_ctas(layout.ctas)})"
    if isinstance(layout, Slice):
        return f"gl.SliceLayout({layout.dim}, {constructor(layout.parent, names)})"
    if isinstance(layout, Linear):
        parts = (layout.register, layout.lane, layout.warp, layout.block, layout.shape)
        return f"gl.DistributedLinearLayout({', '.join(map(lists, parts))})"
    if isinstance(layout, DotOperand):
        return f"gl.DotOperandLayout({layout.operand_index}, {constructor(layout.parent, names)}, {layout.k_width})"
    if isinstance(layout, Mfma):
        extra = f", element_bitwidth={layout.element_bitwidth}" if layout.element_bitwidth != 32 else ""
        if layout.tiles_per_warp and set(layout.tiles_per_warp) != {1}:
            extra += f", tiles_per_warp={lists(layout.tiles_per_warp)}"
        extra += _ctas(layout.ctas)
        return (
            f"gl.amd.AMDMFMALayout(version={layout.version}, instr_shape={lists(layout.instr_shape)}, "
            f"transposed={layout.transposed}, warps_per_cta={lists(layout.warps_per_cta)}{extra})"
        )
    if isinstance(layout, Wmma):
        extra = f", reg_bases={lists(layout.reg_bases)}" if layout.reg_bases else ""
        rank = _ctas(layout.ctas) + (f", rank={layout.tensor_rank}" if layout.tensor_rank != 2 else "")
        return (
            f"gl.amd.AMDWMMALayout(version={layout.version}, transposed={layout.transposed}, "
            f"warp_bases={lists(layout.warp_bases)}{extra}, instr_shape={lists(layout.instr_shape)}{rank})"
        )
    if isinstance(layout, SharedLayout):
        return layout.spelled()
    raise ValueError(f"layout without a Gluon constructor: {layout}")


def _ctas(bases: Bases) -> str:
    """The argument that says how the CTAs of a cluster share a tensor."""
    return f", cga_layout={lists(bases)}" if bases else ""
