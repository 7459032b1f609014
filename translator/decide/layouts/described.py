"""Layouts in a line of English."""

from __future__ import annotations

from gluonize.decide.layouts.constructors import Called
from gluonize.decide.layouts.parametric import Entry, EntryBases
from gluonize.trace.model.layouts import Blocked, DotOperand, Layout, Linear, Mfma, SharedLayout, Wmma


def describe(layout: Layout) -> str:
    """One line for the reader: what the layout spreads over what; "" where there is nothing to say about it."""
    if isinstance(layout, Called):
        return layout.about
    if isinstance(layout, SharedLayout):
        return layout.described()
    if isinstance(layout, Mfma):
        if any(isinstance(n, Entry) for n in (*layout.instr_shape, *layout.warps_per_cta)):
            return "Matrix cores: MFMA and warps as the tile has room for them."
        shape, warps = "x".join(map(str, layout.instr_shape)), " x ".join(map(str, layout.warps_per_cta))
        return f"Matrix cores: {shape} MFMA, warps {warps} over the tile."
    if isinstance(layout, Wmma):
        return f"Matrix cores: {'x'.join(map(str, layout.instr_shape))} WMMA."
    if isinstance(layout, DotOperand):
        return ""
    if isinstance(layout, Blocked):
        fastest = layout.order[0]
        n = layout.size_per_thread[fastest]
        where = f" along dimension {fastest}" if layout.rank > 1 else ""
        if isinstance(n, Entry):
            return f"Consecutive elements per lane{where}, as many as there are and a load takes."
        return f"{n} consecutive elements per lane{where}." if n > 1 else ""
    if isinstance(layout, Linear):
        if isinstance(layout.register, EntryBases):
            return ""
        n = 1
        fastest = next((i for i, x in enumerate(layout.register[0]) if x), 0) if layout.register else 0
        for basis in layout.register:
            if basis[fastest] == n and sum(basis) == n:
                n *= 2
        where = f" along dimension {fastest}" if layout.rank > 1 else ""
        return f"{n} consecutive elements per lane{where}." if n > 1 else ""
    return ""
