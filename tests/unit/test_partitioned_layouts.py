"""Layouts of products and tiles that spread warps over the partitions of LDS."""

from __future__ import annotations

import pytest
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna5

from gluonize.decide.layouts.lds_partitions import spread, with_spread_products
from gluonize.trace.model.layouts import DotOperand, Slice, Wmma
from gluonize.trace.model.shared_layouts import Padded, Swizzled, partitioned
from gluonize.trace.passes.anchors import Anchors, PlacedOp, TensorType

PLAIN = Wmma(3, True, ((0, 1), (1, 0)), (), (16, 16, 32))


@pytest.mark.parametrize("num_warps", [4, 8])
@pytest.mark.parametrize("shape", [(128, 128), (64, 128), (256, 64), (64, 32), (256, 256)])
def test_layouts_are_those_of_gluon(shape: tuple[int, int], num_warps: int):
    m, n = shape
    a = gl.PaddedSharedLayout.with_identity_for([[256, 8]], [m, 64], [1, 0])
    b = gl.PaddedSharedLayout.with_identity_for([[256, 8]], [64, n], [1, 0])
    theirs_a, theirs_b, product = cdna5.make_partitioned_dot_layouts(m, n, a, b, num_warps, [16, 16, 32])
    made = spread(PLAIN, shape, num_warps)
    assert [list(base) for base in made.warp_bases] == product.warp_bases
    assert [list(base) for base in made.reg_bases] == product.reg_bases
    for theirs, dim, size in ((theirs_a, 0, (m, 64)), (theirs_b, 1, (64, n))):
        ours = partitioned(Padded(((256, 8),), (), (1, 0), size), dim)
        assert eval(ours.spelled(), {"cdna5": cdna5, "gl": gl}) == theirs


@pytest.mark.parametrize(
    "layout, shape, num_warps",
    [(PLAIN, (32, 128), 4), (PLAIN, (64, 16), 4), (PLAIN, (128, 128), 2), (PLAIN, (4, 64, 64), 4),
     (Wmma(2, True, ((0, 1),), (), (16, 16, 16)), (128, 128), 4)],
    ids=["few rows", "few columns", "two warps", "batch", "RDNA4"],
)  # fmt: skip
def test_products_that_stay(layout, shape, num_warps):
    assert spread(layout, shape, num_warps) is None


def test_tiles_that_stay():
    assert partitioned(Swizzled(1, 1, 1, (1, 0)), 0) is None
    assert partitioned(Padded(((256, 8),), ((0, 1), (1, 0)), (), (2, 2)), 0) is None


def anchors(*products: Wmma) -> Anchors:
    out = Anchors()
    for i, layout in enumerate(products):
        out.add(PlacedOp("tt.dot", (i,), (), (TensorType((128, 128), "f32", layout),)))
        inner = TensorType((128,), "i32", Slice(1, layout))
        out.add(PlacedOp("tt.load", (i, 1), (TensorType((128, 64), "f16", DotOperand(0, layout, 8)),), (inner,)))
    return out


def test_all_that_is_derived_from_a_product_changes_with_it():
    found = with_spread_products(anchors(PLAIN), 4)
    made = spread(PLAIN, (128, 128), 4)
    assert {ty.layout for op in found.ops for ty in op.types} == {made, DotOperand(0, made, 8), Slice(1, made)}


def test_products_in_several_layouts_stay():
    assert with_spread_products(anchors(PLAIN, Wmma(3, True, ((1, 0), (2, 0)), (), (16, 16, 32))), 4) is None


@pytest.mark.parametrize("name", ["tt.reduce", "tt.scan"])
def test_products_that_are_reduced_stay(name: str):
    found = anchors(PLAIN)
    kinds = (TensorType((128, 128), "f32", PLAIN),), (TensorType((128,), "f32", Slice(1, PLAIN)),)
    found.add(PlacedOp(name, (7,), *kinds))
    assert with_spread_products(found, 4) is None
