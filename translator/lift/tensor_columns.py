"""The columns of tensor memory that a type takes, and what lies in them when they are seen as another type."""

from __future__ import annotations

from dataclasses import replace

from translator.lift.symbolic_machine import Run
from translator.lift.slots import Blocks, Columns
from translator.lift.tensor_values import View
from translator.ttgir.attributes import TENSOR_MEMORY_SCALES
from translator.ttgir.elements import bits_of
from translator.ttgir.types import Type


def columns(run: Run, kind: Type) -> Columns | None:
    """How a type counts the columns of tensor memory; None for one of which that is not known.

    Rows beyond those of a block would lie in further columns.
    """
    layout = run.module.attribute(kind)
    block, stride = layout.get("blockM"), layout.get("colStride")
    rows = (kind.shape or (0, 0))[-2:][0] // run.module.clusters
    if None in (block, stride) or layout.get("fp4Padded") or rows > block:
        return None
    return Columns(kind.element, bits_of(kind.element) * stride // 8)


def tensor_memory(run: Run, view: View, kind: Type) -> View | None:
    """Tensor memory seen as another type, from the same column on; None where the columns of either are not known."""
    shape, tag = kind.shape or (), view.tag
    if not isinstance(tag, Columns) or view.steps or len(shape) != 2 or len(view.box) != 2:
        return None
    start = view.box[1][0] * tag.bytes
    layout = run.module.attribute(kind)
    if layout.kind == TENSOR_MEMORY_SCALES:
        # Chunks of 32 rows lie beside each other; a CTA of a cluster has those of its own rows.
        rows = shape[0] >> sum(basis[0] > 0 for basis in layout.get("CGALayout", ()))
        held = Blocks(kind.element, shape, start, -(-rows // 32) * shape[1])
        return replace(view, box=tuple((0, n) for n in shape), shape=shape, element=kind.element, tag=held)
    seen = columns(run, kind)
    if seen is None or view.box[0] != (0, shape[0]) or start % seen.bytes:
        return None
    first = start // seen.bytes
    return replace(view, box=((0, shape[0]), (first, first + shape[1])), shape=shape, element=kind.element, tag=seen)
