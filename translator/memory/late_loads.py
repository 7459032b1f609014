"""What gets its layout after the layout passes. Pipelining leaves a load with one conversion behind it, and the load is then
made in the layout that was converted to. What is computed on the way to a matrix operand is moved before that where its loads go
through LDS; Triton takes it back where they do not."""

from __future__ import annotations

import re
from dataclasses import replace

from translator.frontend.anchors import Anchors, Path, PlacedOp, TensorType, layout_reader, locations_of, tensor_types
from translator.memory.staging import Staged
from translator.ttgir.layouts import DotOperand, Layout, Linear

_LOADS = (" amdg.buffer_load ", " tt.load ")
_NAME = re.compile(r"%[\w$.]+")
_PASSED_ON = re.compile(r"arith\.\w+|math\.\w+|tt\.fp_to_fp|tt\.trans|ttg\.convert_layout")
_ELEMENTWISE = re.compile(r"((?:arith|math)\.\w+|tt\.fp_to_fp)")


def with_late_layouts(anchors: Anchors, text: str, staging: dict[Path, Staged]) -> Anchors:
    """`anchors` with the layouts that the final TTGIR `text` has: the linear ones of loads outside of LDS rings, and those of
    elementwise operations that are no longer made as matrix operands."""
    aliases, located = locations_of(text)
    reader = layout_reader(aliases)
    as_operands = {op.path for op in anchors.ops if _is_computed_operand(op)}
    final: dict[Path, set[TensorType]] = {}
    computed: dict[tuple[Path, str, tuple[int, ...]], set[Layout]] = {}
    for path, line in located:
        is_load = any(name in line for name in _LOADS)
        name = None if is_load or path not in as_operands else _ELEMENTWISE.search(line)
        if not (is_load or name) or not (types := tensor_types(line, reader)):
            continue
        if is_load:
            final.setdefault(path, set()).add(types[-1])
        else:
            computed.setdefault((path, name.group(1), types[-1].shape), set()).add(types[-1].layout)
    late = {
        path: next(iter(types))
        for path, types in final.items()
        if path not in staging and len(types) == 1 and all(isinstance(ty.layout, Linear) for ty in types)
    }
    if not late and not computed:
        return anchors
    tiles, twice = _made_of_tiles(anchors, staging), _also_elsewhere(anchors)
    rings = _made_of_tiles(anchors, {path: staged for path, staged in staging.items() if staged.copy != "held"})
    tiles -= {op.text for op in anchors.ops if op.text not in rings and (op.path, op.name) in twice}
    taken_back: dict[tuple[Path, str, TensorType], Layout] = {}
    for op in filter(_is_computed_operand, anchors.ops):
        result = op.results[0]
        layouts = computed.get((op.path, op.name, result.shape), set())
        if op.text not in tiles and len(layouts) == 1 and not isinstance(layout := next(iter(layouts)), DotOperand):
            # A factor is broadcast by the visit that multiplies with it.
            taken_back[op.path, op.name, result] = taken_back[op.path, "tt.broadcast", result] = layout

    def placed(op: PlacedOp) -> PlacedOp:
        if op.path in late:  # what masked lanes read is made by the same visit
            return _at(op, late[op.path].shape, late[op.path].layout)
        layout = taken_back.get((op.path, op.name, op.results[0])) if op.results and op.text not in tiles else None
        return op if layout is None else _at(op, op.results[0].shape, layout)

    return Anchors.of(map(placed, anchors.ops))


def _is_computed_operand(op: PlacedOp) -> bool:
    """Whether an elementwise operation is made as a matrix operand."""
    operand = bool(op.results) and isinstance(op.results[0].layout, DotOperand)
    return operand and _ELEMENTWISE.fullmatch(op.name) is not None


def _also_elsewhere(anchors: Anchors) -> set[tuple[Path, str]]:
    """The operations that are made as matrix operands and in another layout too: path and name."""
    places: dict[tuple[Path, str], set[bool]] = {}
    for op in anchors.ops:
        if op.results and _ELEMENTWISE.fullmatch(op.name):
            places.setdefault((op.path, op.name), set()).add(isinstance(op.results[0].layout, DotOperand))
    return {key for key, kinds in places.items() if len(kinds) == 2}


def _made_of_tiles(anchors: Anchors, staging: dict[Path, Staged]) -> set[str]:
    """The lines of what is computed from tiles of rings alone: a tile is read in the layout of the operand."""
    names: set[str] = set()
    lines: set[str] = set()
    for op in anchors.ops:
        result, *operands = _NAME.findall(op.text) or [""]
        if (
            op.path in staging
            and op.name.endswith("load")
            or _PASSED_ON.fullmatch(op.name)
            and operands
            and names.issuperset(operands)
        ):
            names.add(result)
            lines.add(op.text)
    return lines


def _at(op: PlacedOp, shape: tuple[int, ...], layout: Layout) -> PlacedOp:
    """An operation on tensors of a shape in the late layout."""

    def moved(ty: TensorType) -> TensorType:
        return replace(ty, layout=layout) if ty.shape == shape else ty

    return replace(op, operands=tuple(map(moved, op.operands)), results=tuple(map(moved, op.results)))
