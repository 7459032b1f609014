"""LDS that Triton's loops use beside their rings, read from its pipelined module, and the bytes of padded slots."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from printed_modules import function_of
from gluonize.decide.readback.loop_lds import read_loop_lds
from gluonize.decide.readback.traced_launch import trace_launch
from gluonize.judge.lower.jobs import lower_file
from gluonize.read.kernels.load import load_for_launch
from gluonize.read.spec.launch import read_launches
from gluonize.trace.model.shared_layouts import Padded, Swizzled, slots_bytes

FIXTURES = Path(__file__).parents[2] / "fixtures"

MODULE = """
    %r:4 = scf.for %i = %a to %b step %c iter_args(%acc = %z, %older = %first, %newer = %second, %h = %hz) -> (f32) : i32 {
      %next = amdg.buffer_load %p[%o2] : !tt.ptr<f16> -> tensor<64x32xf16, #blocked> loc(#loc1)
      %moved = tt.trans %older {order = array<i32: 1, 0>} : tensor<64x32xf16, #blocked> -> tensor<32x64xf16, #blocked1> loc(#loc2)
      %own = ttg.local_alloc %moved : (tensor<32x64xf16, #blocked1>) -> !ttg.memdesc<32x64xf16, #shared, #smem> loc(#loc2)
      %x = ttg.local_load %own : !ttg.memdesc<32x64xf16, #shared, #smem> -> tensor<32x64xf16, #dot> loc(#loc2)
      %s = ttg.local_alloc %acc : (tensor<64x64xf32, #mma>) -> !ttg.memdesc<64x64xf32, #shared, #smem> loc(#loc2)
      %y = ttg.local_load %s : !ttg.memdesc<64x64xf32, #shared, #smem> -> tensor<64x64xf32, #dot> loc(#loc2)
      scf.if %condition {
        %t = ttg.local_alloc %h : (tensor<16x16xbf16, #mma>) -> !ttg.memdesc<16x16xbf16, #shared, #smem> loc(#loc2)
        %w = ttg.local_load %t : !ttg.memdesc<16x16xbf16, #shared, #smem> -> tensor<16x16xbf16, #dot> loc(#loc2)
      } loc(#loc3)
      scf.yield %acc2, %newer, %next, %h : f32 loc(#loc3)
    } loc(#loc3)
"""
LOCATIONS = "".join(f'#loc{n} = loc("gluonize":{n + 6}:0)\n' for n in (1, 2, 3))
LATER = (
    "      scf.yield",
    "      %l = ttg.local_load %s : !ttg.memdesc<64x64xf32> -> tensor<64x64xf32> loc(#loc2)\n      scf.yield",
)


@pytest.mark.parametrize(
    "module, expected",
    [
        (MODULE, 64 * 64 * 4),
        (MODULE.replace(*LATER), 64 * 64 * 4 + 16 * 16 * 2),
        (MODULE.replace("local_alloc %acc", "local_alloc %newer"), 16 * 16 * 2),
        (MODULE.replace("%acc2, %newer, %next", "%acc2, %newer, %newer").replace(*LATER), 64 * 64 * 4 + 16 * 16 * 2),
        (MODULE.replace("scf.yield %acc2, %newer, %next", "scf.yield %acc2, %x, %next"), 64 * 64 * 4),
    ],
    ids=["the largest", "two at once", "all but a branch handed on", "nothing handed on", "own values"],
)
def test_what_a_loop_uses_at_once(module, expected):
    assert read_loop_lds(function_of(module, LOCATIONS)) == {(7,): expected}


def test_a_tile_that_is_not_handed_on_counts():
    small = MODULE.replace("64x64xf32", "4x4xf32").replace("scf.yield %acc2, %newer, %next", "scf.yield %acc2, %x, %x")
    assert read_loop_lds(function_of(small, LOCATIONS)) == {(7,): 32 * 64 * 2}


def test_no_loop():
    assert read_loop_lds(function_of("")) == {}


@pytest.mark.parametrize(
    "shared, shape, slots, expected",
    [
        (Padded(((128, 8),), (), (1, 0), (32, 64)), (32, 64), 1, 4336),
        (Padded(((256, 8),), (), (1, 0), (32, 64)), (32, 64), 1, 4208),
        (Padded(((128, 8),), (), (1, 0), (16, 64)), (16, 64), 2, 4336),
        (Swizzled(8, 1, 8, (1, 0)), (32, 64), 2, 8192),
    ],
)
def test_padding_stands_between_elements(shared, shape, slots, expected):
    assert slots_bytes(shared, shape, 16, slots) == expected


@pytest.mark.compile
def test_triton_s_lds_is_known_before_its_code_is():
    spec, *_ = read_launches(str(FIXTURES / "attention_backward" / "launches.json"))
    source = str(FIXTURES / "attention_backward" / "kernel.py")
    spec = replace(spec, source=source)
    loaded = load_for_launch(spec, source, (), False)
    traced = trace_launch(loaded.fn, spec, "gfx1250", loaded.load_jit)
    assert traced.lds_bytes == lower_file(source, spec, "gfx1250", (), False, False).metrics.lds_bytes > 0
