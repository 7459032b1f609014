"""Bytes that loops move for clusters, how launches spread over compute units, and what a search makes of both."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from cluster_sources import SOURCES
from gluonize.decide.choices.chosen import Choices, choices_of
from gluonize.judge.cycles.analysis import analyze
from gluonize.judge.cycles.launch.estimate import estimate
from gluonize.judge.cycles.launch.spread import Spread, iteration_clk, spread
from gluonize.judge.cycles.prediction import KernelCycles
from gluonize.judge.cycles.traffic import Traffic, hot_traffic, needed_part, tile_bytes
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest, as_launched
from gluonize.rules.targets import TARGETS
from gluonize.rules.timing import TIMINGS
from gluonize.search.choose import best, try_candidates
from gluonize.search.cost import cost
from gluonize.trace.model.parse import parse_module

HEAD = """
#rows = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>
#whole = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[0, 0]]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0], CGALayout = [[1, 0]]}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0], CGALayout = [[0, 0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250"} {
  tt.func public @k(%p: tensor<64x32x!tt.ptr<f16>, #rows>, %q: tensor<64x32x!tt.ptr<f16>, #whole>, %n: i32) {
    %c = arith.constant 1 : i32
"""
PRODUCT = "%d = tt.dot %a, %b, %z : tensor<64x32xf16, #rows> * tensor<32x64xf16, #rows> -> tensor<64x64xf32, #rows>\n"
COPY = "%t = amdg.async_tdm_copy_global_to_local %x into %s : !tt.tensordesc<64x32xf16> -> !ttg.memdesc<64x32xf16, {}, #smem, mutable>\n"
ROWS, WHOLE = COPY.format("#shared"), COPY.format("#shared1")
OWN = "%a = tt.load %p : tensor<64x32x!tt.ptr<f16>, #rows>\n"
BOTH = "%b = tt.load %q : tensor<64x32x!tt.ptr<f16>, #whole>\n"
TILE = 64 * 32 * 2


def loop(body: str) -> str:
    return "    scf.for %i = %c to %n step %c  : i32 {\n" + body + "    }\n"


def module(*loops: str):
    return parse_module(HEAD + "".join(loops) + "    tt.return\n  }\n}\n")


@pytest.mark.parametrize(
    "body, read, received",
    [(ROWS, TILE, TILE // 2), (WHOLE, TILE, TILE), (OWN, TILE, TILE // 2), (BOTH, 2 * TILE, TILE), (ROWS + WHOLE, 2 * TILE, 3 * TILE // 2)],
    ids=["rows are copied", "a multicast", "rows are loaded", "both load all of it", "as a product needs them"],
)  # fmt: skip
def test_what_is_read_and_what_arrives(body: str, read: int, received: int):
    assert hot_traffic(module(loop(body))) == Traffic(read, received)


PLACED = COPY.replace("\n", " loc(#loc{})\n")
STORED = "%u = amdg.async_tdm_copy_local_to_global %x from %s : !ttg.memdesc<16x32xf16, #shared1, #smem, mutable> -> !tt.tensordesc<16x32xf16> loc(#loc4)\n"
PLACES = """
#loc1 = loc("/a/k.py":7:5)
#loc2 = loc("/b/helper.py":3:1)
#loc3 = loc(callsite(#loc2 at #loc1))
#loc4 = loc("/a/k.py":9:5)
"""


def test_tiles_of_the_data_mover_by_the_line_that_asks_for_them():
    """One workgroup's rows, by a helper called on line 7; what is stored on line 9; the mean of two on a line."""

    def tiles(body: str) -> dict[str, float]:
        return tile_bytes(parse_module(HEAD + loop(body) + "    tt.return\n  }\n}\n" + PLACES))

    assert tiles(PLACED.format("#shared", 3) + STORED) == {"k.py:7": TILE / 2, "k.py:9": 16 * 32 * 2}
    assert tiles(PLACED.format("#shared", 3) + PLACED.format("#shared1", 1)) == {"k.py:7": TILE * 3 / 4}


COPYING = ".L:\n\t.loc\t1 7 5 ; k.py:7:5\n\ttensor_load_to_lds s[0:3], s[4:11]\n\ts_wait_tensorcnt 0x0\n\ts_cbranch_scc1 .L\n\ts_endpgm\n"


def test_waves_share_what_a_copy_of_their_workgroup_moves():
    timing, text = TIMINGS["gfx1250"], COPYING
    known = analyze(text, "gfx1250", 4, TARGETS["gfx1250"].lds_bytes, tiles={"k.py:7": 16 * 1024})
    (found,) = known.loops
    assert found.bounds["memory unit"] == 16 * 1024 / timing.tile_bytes and not known.notes
    assert found.cycles == timing.memory_latency + 4 * 1024 / timing.tile_bytes + 2 * timing.issue
    unknown = analyze(text, "gfx1250", 4, TARGETS["gfx1250"].lds_bytes, tiles={"k.py:8": 16 * 1024})
    assert "memory unit" not in unknown.loops[0].bounds
    assert unknown.notes == (
        "tiles whose size is not known, which the tensor data mover copies, have a latency and no cost",
    )


def test_the_loop_with_products_counts_and_nothing_outside_of_it():
    assert hot_traffic(module(loop(BOTH * 3), loop(ROWS + PRODUCT), WHOLE)) == Traffic(TILE, TILE // 2)
    assert hot_traffic(module(loop(loop(ROWS + PRODUCT) + BOTH))) == Traffic(TILE, TILE // 2)
    assert hot_traffic(module(loop(ROWS), loop(BOTH))) == Traffic(2 * TILE, TILE)
    assert hot_traffic(module(ROWS)) == Traffic(0, 0)


@pytest.mark.parametrize(
    "shape, warps, size, part",
    [
        ((64, 64), (2, 2), 32, 1),
        ((64, 64), (2, 2), 16, 1),
        ((16, 64), (1, 4), 16, 1),
        ((16, 64), (1, 4), 32, 1 / 4),
        ((16, 64), (4, 1), 16, 1 / 4),
        ((96, 64), (4, 1), 32, 3 / 4),
    ],
)
def test_what_matrix_instructions_multiply_for_nobody(shape: tuple, warps: tuple, size: int, part: float):
    """Rows and columns past the product, and those that several warps have."""
    m, n = shape
    text = f"""
#mma = #ttg.amd_mfma<{{version = 4, warpsPerCTA = [{warps[0]}, {warps[1]}], instrShape = [{size}, {size}, 16], isTransposed = true}}>
#a = #ttg.dot_op<{{opIdx = 0, parent = #mma, kWidth = 8}}>
#b = #ttg.dot_op<{{opIdx = 1, parent = #mma, kWidth = 8}}>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950"}} {{
  tt.func public @k(%n: i32) {{
    scf.for %i = %n to %n step %n  : i32 {{
      %d = tt.dot %a, %b, %z : tensor<{m}x32xf16, #a> * tensor<32x{n}xf16, #b> -> tensor<{m}x{n}xf32, #mma>
    }}
    tt.return
  }}
}}
"""
    assert needed_part(parse_module(text)) == part
    assert needed_part(module(loop(PRODUCT))) == 1  # no matrix instructions


def test_loops_of_partitions_are_one():
    """One copies what the other multiplies."""
    text = f"""    ttg.warp_specialize(%n)
    default {{
{loop(PRODUCT)}      ttg.warp_yield
    }}
    partition0(%m: i32) num_warps(4) {{
{loop(ROWS)}      ttg.warp_return
    }} : (i32) -> ()
"""
    assert hot_traffic(module(text)) == Traffic(TILE, TILE // 2)


UNITS = TIMINGS["gfx1250"].units


def spread_of(programs: int, ctas: int, full: int = 2) -> Spread:
    return spread((programs,), ctas, full, TARGETS["gfx1250"], TIMINGS["gfx1250"])


def test_a_launch_pays_for_idle_compute_units():
    assert spread_of(UNITS * 2, 1) == Spread(1, 2, 2, UNITS * 2, UNITS, 0.5)
    assert spread_of(UNITS // 2, 1) == Spread(1, 1, 2, UNITS // 2, UNITS, 2)
    assert spread_of(UNITS // 2, 2) == Spread(1, 1, 2, UNITS, UNITS, 2)
    assert spread_of(UNITS * 2 + 1, 1).rounds == 2
    for endless in (spread((), 2, 2, TARGETS["gfx1250"], TIMINGS["gfx1250"]), spread_of(UNITS << 10, 2)):
        assert endless.price == 1 and endless.resident == 2


def test_rdna_has_a_workgroup_on_two_compute_units():
    row = TARGETS["gfx1100"]
    assert spread((1,), 1, 1, row, TIMINGS["gfx1100"]).units == row.compute_units / 2


MATRIX = "\tv_wmma_f32_16x16x32_f16 v[8:15], v[16:23], v[24:31], v[8:15]\n"
LOOP = f".L:\n{MATRIX * 4}\ts_cbranch_scc1 .L\n\ts_endpgm\n"


def kernel(ctas: int, read: int, received: int) -> KernelCycles:
    """A loop of one workgroup on each compute unit, whatever the number of those that share its program."""
    found = analyze(LOOP, "gfx1250", 4, TARGETS["gfx1250"].lds_bytes)
    return replace(found, ctas=ctas, traffic=Traffic(read, received))


def priced(programs: int, ctas: int, read: int, received: int) -> float:
    """The cost of a program whose workgroups execute the same instructions each, for half the work where there are two."""
    found = kernel(ctas, read, received)
    share = replace(found.loops[0], work=found.loops[0].work // ctas)
    return cost(replace(found, loops=(share,)), True, (programs,)).cycles


@pytest.mark.parametrize(
    "what, launch, timing, expected",
    [
        ("executed", (4096, 0, 0), {}, kernel(1, 0, 0).loops[0].cycles),
        ("arrives", (1, 0, 1 << 20), {"port_bytes": 32}, (1 << 20) / 32),
        ("is given to all", (UNITS, 1 << 20, 1), {"l2_bytes": 16}, (1 << 20) / 16),
        ("is given to one", (1, 1 << 20, 1), {"l2_bytes": 16}, (1 << 20) / 16 / UNITS),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_takes_longest_is_the_time_of_an_iteration(what: str, launch: tuple, timing: dict, expected: float):
    programs, read, received = launch
    found, row = kernel(1, read, received).loops[0], replace(TIMINGS["gfx1250"], **timing)
    at = spread((programs,), 1, 1, TARGETS["gfx1250"], row)
    assert iteration_clk(found, Traffic(read, received), 1, at, row) == pytest.approx(expected)


def test_few_workgroups_wait_for_memory_as_long_as_one():
    """What they no longer wait for each other makes them faster, but none faster than one that has the compute unit to itself."""
    found, row, timing = analyze(WAITS, "gfx942", 4), TARGETS["gfx942"], TIMINGS["gfx942"]
    loop, units = found.loops[0], row.compute_units
    assert loop.workgroups > 4 and loop.alone <= loop.cycles < loop.alone * loop.workgroups / 2

    def clk(each: int) -> float:
        return iteration_clk(loop, Traffic(0, 0), 1, spread((units * each,), 1, loop.workgroups, row, timing), timing)

    assert clk(1) == clk(2) == loop.alone
    assert clk(loop.workgroups) == loop.cycles


WAITS = """.L:
	buffer_load_dwordx4 v[0:3], v60, s[4:7], 0 offen
	s_waitcnt vmcnt(0)
	v_mfma_f32_16x16x16_f16 v[40:43], v[0:1], v[2:3], v[40:43]
	s_cbranch_scc1 .L
	s_endpgm
"""


def test_clusters_win_through_their_traffic_alone():
    """Two workgroups that wait as long as one take the same time; each of them takes in three quarters of what one would."""
    assert priced(UNITS // 4, 2, 0, 0) == priced(UNITS // 4, 1, 0, 0)
    tile = 1 << 16
    assert priced(UNITS // 4, 2, tile, tile * 3 // 4) < priced(UNITS // 4, 1, tile, tile)


def test_clusters_win_nothing_where_all_compute_units_are_busy():
    """Their two workgroups take in more than the one does, and memory gives as much."""
    tile = 1 << 16
    assert priced(UNITS * 64, 2, tile, tile * 3 // 4) > priced(UNITS * 64, 1, tile, tile)


def test_workgroups_without_loops_all_count():
    """A program of two workgroups costs what both of them take."""
    found = replace(kernel(1, 0, 0), loops=(), outside=100.0)
    assert cost(found, True).cycles == 100 and cost(replace(found, ctas=2), True).cycles == 200
    assert cost(found, True, (1,)).cycles == cost(replace(found, ctas=2), True, (1,)).cycles == 100 * UNITS


def test_the_estimate_of_a_launch_knows_what_has_to_arrive():
    spec = LaunchSpec("k", "k", grid=(8,))
    row, timing = TARGETS["gfx950"], TIMINGS["gfx950"]
    text = LOOP.replace(MATRIX, "\tv_mfma_f32_16x16x32_f16 v[8:11], v[4:7], v[4:7], v[8:11]\n")
    found = analyze(text, "gfx950", 4, row.lds_bytes)
    slow = estimate(replace(found, traffic=Traffic(1 << 20, 1 << 20)), {".L": 10}, spec, row, timing)
    assert slow.clk == pytest.approx(found.outside + 10 * (1 << 20) / timing.port_bytes)
    assert estimate(found, {".L": 10}, spec, row, timing).clk < slow.clk


@pytest.mark.slow
@pytest.mark.parametrize("programs, counts", [((8, 16), (2, 4)), ((64, 64), (0,))])
def test_a_product_is_a_cluster_where_compute_units_would_be_idle(tmp_path, programs: tuple, counts: tuple):
    source = SOURCES["matmul"]
    (tmp_path / "k.py").write_text(source.file)
    spec = replace(as_launched(source.launch(2), choices_of(num_ctas="2")), grid=programs)
    request = TranslateRequest(str(tmp_path / "k.py"), "gfx1250", launches=(spec,), grid=math.prod(programs))
    tries = (Choices(), *(choices_of(num_ctas=count) for count in ("2", "4")))
    with WorkerPool(1) as pool:
        tried = try_candidates(request, spec, pool, tries)
    assert all(entry.cost is not None for entry in tried), tried
    assert best(tried)["k"].number("num-ctas") in counts
