"""Reductions whose layout changes after the layout passes: once products are in their final layouts, Triton takes what is reduced
with them there.

before: %y = arith.mulf %p, %q : #blocked    tt.reduce %y : #blocked    (%p converted from #mma)
after:  %y = arith.mulf %p, %q : #mma        tt.reduce %y : #mma
"""

from __future__ import annotations

from dataclasses import replace

from gluonize.trace.model.layouts import Blocked, Layout, Mfma, Slice, Wmma
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import is_arithmetic
from gluonize.trace.passes.anchors import Anchors, PlacedOp, TensorType, read_anchors

_FOLLOWS = ("tt.fp_to_fp", "tt.broadcast", "tt.reduce")
Moves = dict[tuple[tuple[int, ...], Layout], Layout]  # (shape, layout) -> the later layout


def with_late_reductions(anchors: Anchors, module: Module) -> Anchors:
    """`anchors` with the layouts that reductions, and what is computed for and from them, have in the final TTGIR."""
    reductions = [op for op in anchors.ops if op.name == "tt.reduce" and isinstance(op.operands[0].layout, Blocked)]
    if not reductions:
        return anchors
    final = read_anchors(module)
    moves: Moves = {}
    for op in reductions:
        before, after = op.operands[0], _final_layout(final, op, op.operands[0])
        if after is None:
            continue
        moves[before.shape, before.layout] = after
        for ty in op.results:
            if isinstance(ty.layout, Slice) and ty.layout.parent == before.layout:
                moves[ty.shape, ty.layout] = Slice(ty.layout.dim, after)
    if not moves:
        return anchors
    return Anchors.of(_moved(op, moves, final) for op in anchors.ops)


def _final_layout(final: Anchors, op: PlacedOp, ty: TensorType) -> Layout | None:
    """A product's layout, where `op` has it in the end; from one layout of lines to another, less is not always moved."""
    found = _final_layouts(final, op, ty)
    layout = next(iter(found)) if len(found) == 1 else None
    return layout if isinstance(layout, (Mfma, Wmma)) else None


def _final_layouts(final: Anchors, op: PlacedOp, ty: TensorType) -> set[Layout]:
    """The layouts of tensors of the shape of `ty` in the operation that `op` is in the end."""
    return {
        t.layout
        for o in final.at(op.path, op.name, inner=False)
        for t in (*o.operands, *o.results)
        if t.shape == ty.shape
    }


def _moved(op: PlacedOp, moves: Moves, final: Anchors) -> PlacedOp:
    """An operation in its final layout, if that is the one in which its values are reduced."""
    first = op.operands[0] if op.name == "tt.reduce" else op.results[0] if op.results else None
    follows = op.name in _FOLLOWS or is_arithmetic(op.name)
    after = moves.get((first.shape, first.layout)) if first is not None and follows else None
    if after is None or _final_layouts(final, op, first) != {after}:
        return op

    return op.retyped(lambda ty: replace(ty, layout=moves.get((ty.shape, ty.layout), ty.layout)))


__all__ = ["with_late_reductions"]
