"""What gets its layout after the layout passes. Pipelining leaves a load with one conversion behind it, and the load is then
made in the layout that was converted to. What is computed on the way to a matrix operand is moved before that where its loads go
through LDS; Triton takes it back where they do not."""

from __future__ import annotations

from dataclasses import replace

from gluonize.decide.readback.held import LOADS
from gluonize.decide.readback.staging import Staged
from gluonize.trace.model.layouts import DotOperand, Layout, Linear
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op, is_arithmetic
from gluonize.trace.passes.anchors import Anchors, Path, PlacedOp, TensorType, path_of, tensor_type

_PASSED_ON = ("tt.fp_to_fp", "tt.trans", "ttg.convert_layout")


def with_late_layouts(anchors: Anchors, module: Module, staging: dict[Path, Staged]) -> Anchors:
    """`anchors` with the layouts that the final TTGIR has: the linear ones of loads outside of LDS rings, and those of
    elementwise operations that are no longer made as matrix operands."""
    as_operands = {op.path for op in anchors.ops if _is_computed_operand(op)}
    final: dict[Path, set[TensorType]] = {}
    computed: dict[tuple[Path, str, tuple[int, ...]], set[Layout]] = {}
    for op in module.walk():
        computes = _is_elementwise(op.name)
        if not (computes or op.name in LOADS) or not (path := path_of(op)) or not op.results or not op.type.is_tensor:
            continue
        result = tensor_type(module, op.type)
        if not computes:
            final.setdefault(path, set()).add(result)
        elif path in as_operands:
            computed.setdefault((path, op.name, result.shape), set()).add(result.layout)
    late = {
        path: next(iter(types))
        for path, types in final.items()
        if path not in staging and len(types) == 1 and all(isinstance(ty.layout, Linear) for ty in types)
    }
    if not late and not computed:
        return anchors
    tiles, twice = _made_of_tiles(anchors, staging), _also_elsewhere(anchors)
    rings = _made_of_tiles(anchors, {path: staged for path, staged in staging.items() if staged.copy != "held"})
    tiles -= {op.op for op in anchors.ops if op.op not in rings and (op.path, op.name) in twice}
    taken_back: dict[tuple[Path, str, TensorType], Layout] = {}
    for op in filter(_is_computed_operand, anchors.ops):
        result = op.results[0]
        layouts = computed.get((op.path, op.name, result.shape), set())
        if op.op not in tiles and len(layouts) == 1 and not isinstance(layout := next(iter(layouts)), DotOperand):
            # A factor is broadcast by the visit that multiplies with it.
            taken_back[op.path, op.name, result] = taken_back[op.path, "tt.broadcast", result] = layout

    def placed(op: PlacedOp) -> PlacedOp:
        if op.path in late:  # what masked lanes read is made by the same visit
            return _at(op, late[op.path].shape, late[op.path].layout)
        layout = taken_back.get((op.path, op.name, op.results[0])) if op.results and op.op not in tiles else None
        return op if layout is None else _at(op, op.results[0].shape, layout)

    return Anchors.of(map(placed, anchors.ops))


def _is_computed_operand(op: PlacedOp) -> bool:
    """Whether an elementwise operation is made as a matrix operand."""
    operand = bool(op.results) and isinstance(op.results[0].layout, DotOperand)
    return operand and _is_elementwise(op.name)


def _also_elsewhere(anchors: Anchors) -> set[tuple[Path, str]]:
    """The operations that are made as matrix operands and in another layout too: path and name."""
    places: dict[tuple[Path, str], set[bool]] = {}
    for op in anchors.ops:
        if op.results and _is_elementwise(op.name):
            places.setdefault((op.path, op.name), set()).add(isinstance(op.results[0].layout, DotOperand))
    return {key for key, kinds in places.items() if len(kinds) == 2}


def _is_elementwise(name: str) -> bool:
    return name == "tt.fp_to_fp" or is_arithmetic(name)


def _made_of_tiles(anchors: Anchors, staging: dict[Path, Staged]) -> set[Op]:
    """What is computed from tiles of rings alone: a tile is read in the layout of the operand."""
    names: set[str] = set()
    made: set[Op] = set()
    for placed in anchors.ops:
        if (op := placed.op) is None or not op.results:
            continue
        tile = placed.path in staging and op.name.endswith("load")
        passes_on = op.name in _PASSED_ON or is_arithmetic(op.name)
        if tile or passes_on and op.operands and names.issuperset(op.operands):
            names.add(op.results[0])
            made.add(op)
    return made


def _at(op: PlacedOp, shape: tuple[int, ...], layout: Layout) -> PlacedOp:
    """An operation on tensors of a shape in the late layout."""
    return op.retyped(lambda ty: replace(ty, layout=layout) if ty.shape == shape else ty)
