"""Rows that Triton loads anew for each use are loaded once in a general kernel."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gluonize.general.layout_roles import one_each, with_rows_once
from gluonize.trace.model.layouts import Blocked, Mfma, Slice
from gluonize.trace.passes.anchors import PlacedOp, TensorType

MMA = Mfma(version=4, instr_shape=(32, 32, 16), transposed=True, warps_per_cta=(4, 1), element_bitwidth=32)


def launch(warps: int):
    return SimpleNamespace(target=SimpleNamespace(warp_size=64), num_warps=warps, num_ctas=1)


def op(name: str, visit: int, *shape: int, layout=Slice(1, MMA)) -> PlacedOp:
    return PlacedOp(name, (visit,), (), (TensorType(shape, "f32", layout),))


def test_a_short_row_is_loaded_once_as_a_long_one_is():
    ops = [
        op("tt.load", 1, 64),
        op("tt.load", 1, 64, layout=Slice(0, MMA)),
        op("arith.mulf", 2, 64),
        op("tt.dot", 3, 64, 64),
    ]
    found = with_rows_once(ops, {(1,)}, launch(4))
    assert [(o.name, o.path) for o in found] == [("tt.load", (1,)), ("tt.dot", (3,))]
    assert found[0].results[0].layout == Blocked((1,), (64,), (4,), (0,))


def test_a_long_row_is_loaded_where_triton_loads_it():
    layout = Blocked((2,), (64,), (1,), (0,))
    (found,) = with_rows_once([op("tt.load", 1, 128, layout=layout)], {(1,)}, launch(1))
    assert found.results[0].layout == layout


def test_what_the_visit_of_a_load_makes_beside_it_goes_along():
    ops = [op("tt.load", 1, 64), op("tt.splat", 1, 64), op("tt.splat", 2, 64), op("tt.reduce", 3, 64)]
    assert [(o.name, o.path) for o in with_rows_once(ops, {(1,)}, launch(4))] == [
        ("tt.load", (1,)),
        ("tt.splat", (2,)),
        ("tt.reduce", (3,)),
    ]


@pytest.mark.parametrize(
    "shape, warps, wanted",
    [
        ((16,), 4, Blocked((1,), (64,), (4,), (0,))),
        ((1, 32), 2, Blocked((1, 1), (2, 32), (2, 1), (1, 0))),
        ((1, 128), 4, Blocked((1, 1), (1, 64), (2, 2), (1, 0))),
        ((128, 1), 4, Blocked((1, 1), (64, 1), (2, 2), (0, 1))),
    ],
    ids=["vector", "short-row", "row", "column"],
)
def test_what_lanes_are_left_hold_the_same(shape, warps, wanted):
    assert one_each(shape, 64, warps) == wanted
