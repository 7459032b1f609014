"""What the L2 caches of XCDs fetch, by the order in which programs have tiles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gluonize.judge.cycles.analysis import analyze
from gluonize.judge.cycles.launch.estimate import estimate
from gluonize.judge.cycles.launch.shared_tiles import fetched_bytes
from gluonize.judge.cycles.text import estimate_line, fetch_line
from gluonize.judge.cycles.traffic import Traffic
from gluonize.read.spec.launch import LaunchSpec
from gluonize.rules.targets import TARGETS
from gluonize.rules.timing import TIMINGS
from gluonize.trace.model.parse import parse_module

# A product of N tiles of columns, K = 64 in one iteration: 256 rows of A and 256 columns of B.
KERNEL = """
#rows = #ttg.blocked<{{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}}>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950"}} {{
  tt.func public @k(%a_ptr: !tt.ptr<f16>, %b_ptr: !tt.ptr<f16>, %N: i32) {{
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %pid = tt.get_program_id x : i32
{order}
    %a0 = tt.splat %pid_m : i32 -> tensor<256x64xi32, #rows>
    %b0 = tt.splat %pid_n : i32 -> tensor<64x256xi32, #rows>
    %r:2 = scf.for %k = %zero to %N step %one iter_args(%ao = %a0, %bo = %b0) -> (tensor<256x64xi32, #rows>, tensor<64x256xi32, #rows>)  : i32 {{
      %x = amdg.buffer_load %a_ptr[%ao] : tensor<256x64xf16, #rows>
      %y = amdg.buffer_load %b_ptr[%bo] : tensor<64x256xf16, #rows>
      scf.yield %ao, %bo : tensor<256x64xi32, #rows>, tensor<64x256xi32, #rows>
    }}
    tt.return
  }}
}}
"""
TILE = 256 * 64 * 2
ROWS = """    %pid_m = arith.divsi {pid}, %N : i32
    %pid_n = arith.remsi {pid}, %N : i32"""
# As `remap_xcd`, of a multiple of 8 programs.
DEALT = """    %c8 = arith.constant 8 : i32
    %programs = tt.get_num_programs x : i32
    %own = arith.divsi %programs, %c8 : i32
    %xcd = arith.remsi %pid, %c8 : i32
    %first = arith.muli %xcd, %own : i32
    %nth = arith.divsi %pid, %c8 : i32
    %p = arith.addi %first, %nth : i32
"""
GROUPS = """    %g = arith.constant {rows} : i32
    %c16 = arith.constant 16 : i32
    %in = arith.muli %g, %N : i32
    %group = arith.divsi {pid}, %in : i32
    %top = arith.muli %group, %g : i32
    %left = arith.subi %c16, %top : i32
    %size = arith.minsi %left, %g : i32
    %at = arith.remsi {pid}, %in : i32
    %row = arith.remsi %at, %size : i32
    %pid_m = arith.addi %top, %row : i32
    %pid_n = arith.divsi %at, %size : i32"""


def fetched(order: str, programs: int = 256, columns: int = 16, xcds: int = 8, at_once: int = 256) -> float:
    spec = LaunchSpec("k", "k", grid=(programs,), values={"N": columns})
    return fetched_bytes(parse_module(KERNEL.format(order=order)), spec, at_once, xcds)


@pytest.mark.parametrize(
    "order, rows, columns",
    [
        (ROWS.format(pid="%pid"), 16, 2),
        (DEALT + ROWS.format(pid="%p"), 2, 16),
        (DEALT + GROUPS.format(pid="%p", rows=4), 4, 8),
        (DEALT + GROUPS.format(pid="%p", rows=8), 8, 4),
        (GROUPS.format(pid="%pid", rows=8), 2, 16),
    ],
    ids=["as numbered", "neighbours", "groups of 4", "groups of 8", "8 rows for 8 XCDs"],
)
def test_each_xcd_fetches_what_its_programs_have_once(order: str, rows: int, columns: int):
    assert fetched(order) == (rows + columns) * TILE


PUBLISHED = {  # requests beyond L2 of a 4096x4096x8192 product on MI355X, tiles of 256x256x64 (tutorials, v9 notes)
    "as numbered": (ROWS.format(pid="%pid"), 5_282_502),
    "neighbours": (DEALT + ROWS.format(pid="%p"), 6_070_335),
    **{
        f"groups of {n}": (DEALT + GROUPS.format(pid="%p", rows=n), requests)
        for n, requests in ((4, 4_100_918), (6, 4_331_455), (8, 4_362_222))
    },
}


def test_published_requests_are_up_to_two_fifths_more_and_in_order():
    predicted = {name: fetched(order) * 128 * 8 / 128 for name, (order, _) in PUBLISHED.items()}
    ratios = {name: PUBLISHED[name][1] / predicted[name] for name in PUBLISHED}
    assert 1.1 < min(ratios.values()) and max(ratios.values()) < 1.4, ratios
    for one in PUBLISHED:
        for other in PUBLISHED:
            if predicted[one] < predicted[other]:
                assert PUBLISHED[one][1] < PUBLISHED[other][1]


def test_rounds_count_with_their_mean_and_the_fullest_xcd():
    """16 programs on two XCDs, of which the second round has one left: 8 rows of 2 columns, then 1 of 1."""
    order = ROWS.format(pid="%pid")
    assert fetched(order, programs=17, columns=2, xcds=2, at_once=16) == ((8 + 1) + (1 + 1)) / 2 * TILE
    assert fetched(order, programs=16, columns=2, xcds=1, at_once=16) == (8 + 2) * TILE


def test_what_a_load_makes_of_a_number_is_a_tile_for_each_program():
    order = """    %q = tt.addptr %a_ptr, %pid : !tt.ptr<f16>, i32
    %pid_m = tt.load %q : !tt.ptr<f16>
    %pid_n = arith.constant 0 : i32"""
    assert fetched(order) == (32 + 1) * TILE


@pytest.mark.parametrize("spec", [LaunchSpec("k", "k", values={"N": 4}), LaunchSpec("k", "k", grid=(8,))])
def test_without_a_grid_or_its_numbers_nothing_is_known(spec: LaunchSpec):
    assert fetched_bytes(parse_module(KERNEL.format(order=ROWS.format(pid="%pid"))), spec, 256, 8) == 0


MATRIX = "\tv_mfma_f32_16x16x32_f16 v[8:11], v[4:7], v[4:7], v[8:11]\n"


def test_a_launch_takes_as_long_as_l2_fetches():
    row, timing = TARGETS["gfx950"], TIMINGS["gfx950"]
    found = analyze(f".L:\n{MATRIX * 4}\ts_cbranch_scc1 .L\n\ts_endpgm\n", "gfx950", 4, row.lds_bytes)
    many = replace(found, traffic=Traffic(1, 1, 1 << 20))
    spec = LaunchSpec("k", "k", grid=(256,))
    expected = found.outside + 10 * (1 << 20) / timing.fetch_bytes
    whole = estimate(many, {".L": 10}, spec, row, timing)
    assert whole.clk == pytest.approx(expected) and whole.fetch_bound and "XCDs fetch" in estimate_line(whole)
    assert not estimate(found, {".L": 10}, spec, row, timing).fetch_bound
    assert "1024 KiB" in fetch_line(many) and not fetch_line(found)
