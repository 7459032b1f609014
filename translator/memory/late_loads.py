"""Loads that get their layout after the layout passes: pipelining leaves a load with one conversion behind it, and the load is
then made in the layout that was converted to."""

from __future__ import annotations

from dataclasses import replace

from translator.frontend.anchors import Anchors, Path, PlacedOp, TensorType, layout_reader, locations_of, tensor_types
from translator.layout.model import Linear
from translator.memory.staging import Staged

_LOADS = (" amdg.buffer_load ", " tt.load ")


def with_late_layouts(anchors: Anchors, text: str, staging: dict[Path, Staged]) -> Anchors:
    """`anchors` with the linear layouts that loads outside of LDS rings have in the final TTGIR `text`."""
    aliases, located = locations_of(text)
    reader = layout_reader(aliases)
    final: dict[Path, set[TensorType]] = {}
    for path, line in located:
        if any(name in line for name in _LOADS) and (types := tensor_types(line, reader)):
            final.setdefault(path, set()).add(types[-1])
    late = {
        path: next(iter(types))
        for path, types in final.items()
        if path not in staging and len(types) == 1 and all(isinstance(ty.layout, Linear) for ty in types)
    }
    # What masked lanes read is made by the same visit.
    return Anchors.of(_at(op, late[op.path]) if op.path in late else op for op in anchors.ops) if late else anchors


def _at(op: PlacedOp, loaded: TensorType) -> PlacedOp:
    """An operation of the load in the late layout."""

    def moved(ty: TensorType) -> TensorType:
        return replace(ty, layout=loaded.layout) if ty.shape == loaded.shape else ty

    return replace(op, operands=tuple(map(moved, op.operands)), results=tuple(map(moved, op.results)))
