"""What passes after the layout passes change about loads: their layout, and the order of elements before a store to LDS."""

from __future__ import annotations

import pytest

from printed_modules import function_of
from gluonize.decide.readback.late_loads import with_late_layouts
from gluonize.decide.readback.operands import read_operands
from gluonize.decide.readback.staging import Staged
from gluonize.trace.model.layouts import Blocked, DotOperand, Linear
from gluonize.trace.model.module import Module
from gluonize.trace.passes.anchors import read_anchors

ALIASES = """\
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
#rows = #ttg.blocked<{sizePerThread = [4, 8], threadsPerWarp = [8, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
#linear = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [0, 8], [0, 16], [0, 32]], warp = [], block = []}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [0, 1]}>
"""
RING, HELD = (Staged((8, 64), None, 2, None, None, copy) for copy in ("buffer", "held"))
LOCATION = '#loc1 = loc("gluonize":7:0)\n'


def module(*lines: str) -> Module:
    return function_of("\n".join(f"    {line} loc(#loc1)" for line in lines), ALIASES + LOCATION)


def load(layout: str) -> str:
    return f"%x = tt.load %p : tensor<8x64x!tt.ptr<f16>, {layout}>"


def late(final: Module, staging: dict = {}):
    (op,) = with_late_layouts(read_anchors(module(load("#blocked"))), final, staging).ops
    return op.results[0].layout


def test_a_load_has_the_linear_layout_of_the_final_module():
    final = module("%x = amdg.buffer_load %p[%o] : !tt.ptr<f16> -> tensor<8x64xf16, #linear>")
    assert isinstance(late(final), Linear)


@pytest.mark.parametrize("layouts", [("#rows",), ("#linear", "#blocked"), ()])
def test_other_loads_keep_the_layout_of_the_layout_passes(layouts):
    final = module(*(f"%x = amdg.buffer_load %p[%o] : !tt.ptr<f16> -> tensor<8x64xf16, {x}>" for x in layouts))
    assert late(final) == Blocked((1, 8), (8, 8), (1, 1), (1, 0))


def test_a_load_through_a_ring_keeps_it():
    final = module("%x = amdg.buffer_load %p[%o] : !tt.ptr<f16> -> tensor<8x64xf16, #linear>")
    assert isinstance(late(final, {(7,): RING}), Blocked)


def test_an_operand_is_transposed_within_lanes_before_it_is_stored():
    alloc = "ttg.local_alloc %{} : (tensor<8x64xf16, {}>) -> !ttg.memdesc<8x64xf16, #shared, #smem>"
    text = module(
        "%t = amdg.in_thread_transpose %x : tensor<8x64xf16, #rows> -> tensor<8x64xf16, #linear>",
        "%a = " + alloc.format("t", "#linear"),
        "%b = " + alloc.format("x", "#rows"),
    )
    transposed, plain = read_operands(text)[7,]
    assert transposed.loaded == Blocked((4, 8), (8, 8), (1, 1), (1, 0)) and isinstance(transposed.stored, Linear)
    assert plain.loaded is None and plain.stored is None


OPERAND = "#ttg.dot_op<{opIdx = 0, parent = #blocked}>"
BEFORE = (load("#blocked"), f"%c = ttg.convert_layout %x : tensor<8x64xf16, #blocked> -> tensor<8x64xf16, {OPERAND}>")


def computed(final: Module, staging: dict = {}, *more: str):
    anchors = read_anchors(module(*BEFORE, *more, f"%y = math.exp2 %c : tensor<8x64xf16, {OPERAND}>"))
    return with_late_layouts(anchors, final, staging).ops[-1].results[0].layout


def test_what_is_computed_lies_where_the_final_module_has_it():
    blocked, operand = (f"%y = math.exp2 %c : tensor<8x64xf16, {x}>" for x in ("#blocked", OPERAND))
    assert computed(module(blocked)) == Blocked((1, 8), (8, 8), (1, 1), (1, 0))
    for lines in ((operand,), (blocked, operand), ()):
        assert isinstance(computed(module(*lines)), DotOperand)


def test_what_is_computed_from_a_tile_of_a_ring_stays_an_operand():
    final = module("%y = math.exp2 %c : tensor<8x64xf16, #blocked>")
    assert isinstance(computed(final, {(7,): RING}), DotOperand)
    assert isinstance(computed(final, {(7,): HELD}), DotOperand)


def test_what_is_also_made_elsewhere_from_a_tile_in_registers_lies_there():
    blocked = "%z = math.exp2 %x : tensor<8x64xf16, #blocked>"
    assert isinstance(computed(module(blocked), {(7,): HELD}, blocked), Blocked)
    assert isinstance(computed(module(blocked), {(7,): RING}, blocked), DotOperand)


def test_a_factor_is_broadcast_where_it_is_multiplied():
    factor = f"%f = tt.broadcast %r : tensor<8x1xf16, {OPERAND}> -> tensor<8x64xf16, {OPERAND}>"
    anchors = read_anchors(module(*BEFORE, factor, f"%y = arith.mulf %c, %f : tensor<8x64xf16, {OPERAND}>"))
    for layout, lies in (("#blocked", Blocked), (OPERAND, DotOperand)):
        ops = with_late_layouts(anchors, module(f"%y = arith.mulf %c, %f : tensor<8x64xf16, {layout}>"), {}).ops
        assert all(isinstance(op.results[0].layout, lies) for op in ops[-2:])
