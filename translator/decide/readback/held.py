"""Which loads of a loop Triton keeps ahead in registers: its pipelined loop hands their results on to the next iteration.

These are loads that feed a dot, or go with one, and have no single buffer in LDS to go to: their value is used in several
ways, or not as a matrix at all.
"""

from __future__ import annotations

from gluonize.decide.readback.staging import Staged
from gluonize.trace.model.layouts import Opaque
from gluonize.trace.model.module import Module
from gluonize.trace.model.op import Op, Region
from gluonize.trace.passes.anchors import Path, path_of

LOADS = ("amdg.buffer_load", "tt.load")


def read_held(module: Module) -> dict[Path, Staged]:
    """Loads that a pipelined TTGIR module keeps in registers, by the path of the load's visit.

    A load that the author wrote ahead is handed on as well, but stands in the loop only: what the pipeliner moves is
    loaded before the loop too.
    """
    if not module.has("scf.for"):
        return {}
    out: dict[Path, Staged] = {}
    before: set[Path] = set()
    for function in module.functions.values():
        _read_region(module, function.region, False, frozenset(), before, out)
    return out


def _read_region(
    module: Module, region: Region, loop: bool, around: frozenset[Path], before: set[Path], out: dict[Path, Staged]
) -> None:
    """around: what regions that are still open have loaded; before: what closed ones have, this one from its end on."""
    loads: dict[str, Op] = {}
    for op in (op for block in region.blocks for op in block.ops):
        if loop and op.name == "scf.yield":
            for load in (loads[name] for name in op.operands if name in loads):
                path = path_of(load)
                if (path in around or path in before) and load.type.is_tensor:
                    layout = module.layout(load.type)
                    if not isinstance(layout, Opaque):
                        out.setdefault(path, Staged(load.type.shape, None, 1, layout, None, "held"))
        elif op.name in LOADS and path_of(op):
            loads[op.results[0]] = op
        inside = around | {path_of(load) for load in loads.values()} if op.regions else around
        for inner in op.regions:
            _read_region(module, inner, op.name == "scf.for", inside, before, out)
    before |= {path_of(load) for load in loads.values()}


__all__ = ["LOADS", "read_held"]
