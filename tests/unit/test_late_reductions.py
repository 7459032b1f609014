"""Reductions that the last passes take in another layout, with what is computed for them and from them."""

from __future__ import annotations

import pytest

from printed_modules import function_of
from gluonize.decide.readback.late_reductions import with_late_reductions
from gluonize.trace.model.layouts import Blocked, Mfma, Slice
from gluonize.trace.model.module import Module
from gluonize.trace.passes.anchors import read_anchors

ALIASES = """\
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32, 8], isTransposed = true}>
#op = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
"""
LOCATIONS = "".join(f'#loc{n} = loc("gluonize":{n}:0)\n' for n in (1, 2, 3))


def module(product: str, reduced: str) -> Module:
    body = f"""\
    %y = arith.mulf %p, %q : tensor<32x32xf32, {product}> loc(#loc1)
    %s = "tt.reduce"(%y) <{{axis = 1 : i32}}> ({{
    ^bb0(%a: f32, %b: f32):
      tt.reduce.return %a : f32 loc(#loc2)
    }}) : (tensor<32x32xf32, {reduced}>) -> tensor<32xf32, #ttg.slice<{{dim = 1, parent = {reduced}}}>> loc(#loc2)
    %h = arith.mulf %s, %s : tensor<32xf32, #ttg.slice<{{dim = 1, parent = {reduced}}}>> loc(#loc3)"""
    return function_of(body, ALIASES + LOCATIONS)


def layouts(final: Module) -> list:
    anchors = read_anchors(module("#blocked", "#blocked"))
    return [op.results[0].layout for op in with_late_reductions(anchors, final).ops]


def test_what_is_reduced_lies_where_the_final_module_has_it():
    product, reduced, scaled = layouts(module("#mma", "#mma"))
    assert isinstance(product, Mfma) and reduced == scaled == Slice(1, product)


@pytest.mark.parametrize(
    "final", [module("#blocked", "#blocked"), module("#op", "#op"), function_of("", ALIASES + LOCATIONS)]
)
def test_it_stays_where_the_final_module_has_it_or_no_product_there(final: str):
    product, reduced, scaled = layouts(final)
    assert isinstance(product, Blocked) and reduced == scaled == Slice(1, product)


def test_what_is_converted_before_it_is_reduced_stays():
    product, reduced, _ = layouts(module("#blocked", "#mma"))
    assert isinstance(product, Blocked) and isinstance(reduced.parent, Mfma)
