"""Rows of a launch, tiles with one dimension longer than one, that are loaded once, and computed where they are used.

Where a row has fewer elements than a workgroup has lanes, Triton's passes take it for cheap: it is loaded and computed anew in the layout of
each use, so launches with other sizes have other loads. Here it is loaded once, as rows that are long enough are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Set
from dataclasses import replace

from translator.frontend.anchors import Path, PlacedOp, TensorType
from translator.memory.traced_launch import TracedLaunch
from translator.ttgir.layouts import Blocked

_COMPUTED = ("arith.", "math.")


def with_rows_once(ops: Iterable[PlacedOp], loads: Set[Path], launch: TracedLaunch) -> list[PlacedOp]:
    """The operations without what computes rows, and each row loaded once. loads: the visits that load."""
    out, seen = [], set()
    for op in ops:
        shape = op.results[0].shape if op.results else ()
        if not shape or not _is_row(shape):
            out.append(op)
        elif op.name == "tt.load":
            if (op.path, shape) not in seen:
                out.append(_as_long(op, shape, launch))
            seen.add((op.path, shape))
        elif not op.name.startswith(_COMPUTED) and op.path not in loads:
            out.append(op)
    return out


def _is_row(shape: tuple[int, ...]) -> bool:
    return sum(length > 1 for length in shape) <= 1


def _as_long(op: PlacedOp, shape: tuple[int, ...], launch: TracedLaunch) -> PlacedOp:
    """A load of a row with fewer elements than lanes in the layout of one with as many: an element per lane."""
    lanes = launch.target.warp_size
    if math.prod(shape) >= lanes * launch.num_warps or launch.num_ctas > 1:
        return op
    layout = one_each(shape, lanes, launch.num_warps)

    def placed(ty: TensorType) -> TensorType:
        return replace(ty, layout=layout) if ty.shape == shape else ty

    return op.retyped(placed)


def one_each(shape: tuple[int, ...], lanes: int, warps: int) -> Blocked:
    """The layout of a row of which each lane has one element; what lanes and warps are left hold the same."""
    along = max(range(len(shape)), key=lambda d: (shape[d] > 1, d))
    order = (along, *(d for d in reversed(range(len(shape))) if d != along))
    lanes_of, warps_of = [1] * len(shape), [1] * len(shape)
    if len(shape) == 1:
        return Blocked((1,), (lanes,), (warps,), order)
    lanes_of[along] = min(lanes, shape[along])
    warps_of[along] = min(warps, max(shape[along] // lanes_of[along], 1))
    lanes_of[order[-1]] = lanes // lanes_of[along]
    warps_of[order[-1]] = warps // warps_of[along]
    return Blocked((1,) * len(shape), tuple(lanes_of), tuple(warps_of), order)


__all__ = ["one_each", "with_rows_once"]
