"""The walk of a compute unit on small streams, with answers worked out by hand from the constants that the tests state."""

from dataclasses import replace

import pytest

from gluonize.judge.cycles.analysis import walk_loop, walk_once
from gluonize.judge.cycles.code.assembly import read_program
from gluonize.judge.cycles.code.executed_paths import Step
from gluonize.judge.cycles.code.stream import Translator
from gluonize.judge.cycles.losses import by_cause, matrix_losses, wave_losses
from gluonize.judge.cycles.walk import Deadlock, Wave
from gluonize.rules.targets import TARGETS
from gluonize.rules.timing import TIMINGS

# What the answers below are made of; a change of a constant must not change what is tested.
CDNA = replace(
    TIMINGS["gfx950"], issue=4, valu=4, transcendental=8, shadow=8, lds_bytes=256, lds_latency=60, lds_queue=8, write_issue=4,
    memory_clk={4: 4, 8: 16, 16: 16}, memory_queue=12, in_flight=32, memory_latency=800, barrier=8,
)  # fmt: skip
BYTES = {4: 4, 8: 8, 16: 16}  # clk of 64 lanes: 64 bytes per clk
RDNA = replace(TIMINGS["gfx1100"], issue=1, valu=1, valu_latency=5, transcendental=4, barrier=8)
MFMA16 = "v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], v[0:3]"
MFMA32 = "v_mfma_f32_32x32x16_f16 v[0:15], v[16:19], v[20:23], v[0:15]"
ADD = "v_add_u32_e32 v50, v51, v52"
LOAD = "buffer_load_dwordx4 v[60:63], v64, s[0:3], 0 offen"
READ = "ds_read_b128 v[60:63], v64"


def stream(*lines, timing=CDNA, target="gfx950", lanes=None, tiles=None):
    """Operations of instructions; lanes: addresses of all LDS accesses; tiles: bytes that the data mover copies for a wave, by line."""
    program = read_program("".join(f"\t{line}\n" for line in lines))
    steps = [Step(n, lanes if line.op.startswith("ds_") else None) for n, line in enumerate(program.lines)]
    return Translator(program.lines, TARGETS[target], timing, tiles).operations(steps)


def waves(*streams, simds=4, leads=None):
    return [Wave(n, n % simds, 0, s, lead=(leads or [0] * len(streams))[n]) for n, s in enumerate(streams)]


def cycles(*streams, timing=CDNA, simds=4, leads=None):
    return walk_loop(waves(*streams, simds=simds, leads=leads), timing, simds).cycles


def test_a_chain_of_matrix_instructions_is_bound_by_the_pipe():
    assert cycles(stream(*[MFMA16] * 8, "s_cbranch_scc1 loop")) == 8 * 16


def test_scalar_instructions_are_bound_by_issue():
    assert cycles(stream(*["s_add_u32 s0, s0, 1"] * 10)) == 10 * 4


def test_s_nop_holds_its_wave_for_as_many_slots():
    assert cycles(stream("s_nop 4")) == 5 * 4


@pytest.mark.parametrize("count, expected", [(6, 32), (7, 36)])
def test_six_vector_instructions_fit_beside_a_matrix_instruction(count, expected):
    """From clk 8 of 32, each of 4; the seventh delays the next matrix instruction."""
    assert cycles(stream(MFMA32, *[ADD] * count)) == expected


@pytest.mark.parametrize("count, expected", [(3, 32), (4, 36)])
def test_three_transcendentals_fit_beside_a_matrix_instruction(count, expected):
    """From clk 8, each holds the port for 8; the fourth issues at 32, where the matrix instruction could have."""
    assert cycles(stream(MFMA32, *["v_exp_f32_e32 v50, v51"] * count)) == expected


def test_packed_instructions_wait_for_the_matrix_pipe():
    assert cycles(stream(MFMA32, "v_pk_add_f32 v[50:51], v[52:53], v[54:55]")) == 32 + 4


def test_vector_instructions_of_another_wave_run_beside_matrix_instructions():
    # 6 in each shadow of 24 clk, 8 shadows: neither wave waits for the other's whole stream."""
    both = stream(*[MFMA32] * 8, "s_barrier"), stream(*[ADD] * 48, "s_barrier")
    assert cycles(*both, simds=1) == pytest.approx(8 * 32 + 12, abs=12)


def test_a_wait_on_lds_takes_service_and_latency():
    """1024 bytes at 256 a clk, 60 clk to the registers, 4 for the wait itself."""
    assert cycles(stream(READ, "s_waitcnt lgkmcnt(0)")) == 4 + 60 + 4


def test_bank_conflicts_multiply_the_service():
    same_bank = tuple(
        256 * n for n in range(64)
    )  # every lane in banks 0 to 3: 16 words each in every phase of 16 lanes
    assert cycles(stream(READ, "s_waitcnt lgkmcnt(0)", lanes=same_bank)) == 4 * 16 + 60 + 4


def test_a_wait_leaves_the_youngest_outstanding():
    """The first of two reads is back at 64; the second (68) is not waited for."""
    assert walk_once(waves(stream(READ, READ, "s_waitcnt lgkmcnt(1)")), CDNA, 4) == 64 + 4
    assert walk_once(waves(stream(READ, READ, "s_waitcnt lgkmcnt(0)")), CDNA, 4) == 68 + 4


def test_a_full_queue_of_lds_slows_issue_to_its_service():
    """128 bytes a clk: 8 clk a read, one issued every 4. Read 16 finds 8 outstanding and issues at 72, then one every 8."""
    slow = replace(CDNA, lds_bytes=128, read_phases=TIMINGS["gfx942"].read_phases)
    assert walk_once(waves(stream(*[READ] * 24, timing=slow)), slow, 4) == 72 + 7 * 8 + 4


def test_writes_to_lds_keep_their_wave_issuing():
    """4 for the address and 4 for each of 4 registers."""
    assert walk_once(waves(stream("ds_write_b128 v64, v[60:63]", "s_nop 0")), CDNA, 4) == 20 + 4


def test_a_load_takes_processing_and_latency():
    assert cycles(stream(LOAD, "s_waitcnt vmcnt(0)")) == 16 + 800 + 4


def test_a_full_memory_queue_slows_issue_to_the_units_rate():
    """12 wait when load 17 would issue at 68: it waits for the start of load 5 at 80, then one every 16."""
    assert walk_once(waves(stream(*[LOAD] * 20)), CDNA, 4) == 80 + 2 * 16 + 4


def test_loads_beyond_32_kib_in_flight_wait_for_the_first_to_return():
    """Load 33 starts when the first is back at 816, and is itself back 816 later."""
    assert walk_once(waves(stream(*[LOAD] * 33, "s_waitcnt vmcnt(0)")), CDNA, 4) == 816 + 816 + 4


def test_spilled_registers_come_back_like_loads():
    reload = "scratch_load_dwordx4 v[60:63], off, off offset:16"
    assert cycles(stream(reload, "s_waitcnt vmcnt(0)")) == 16 + 800 + 4


def test_a_barrier_waits_for_the_slowest_of_four_waves():
    """The slow wave arrives at 40; 8 until all go on, 4 for the instruction itself."""
    quick, slow = stream("s_barrier"), stream("s_nop 9", "s_barrier")
    assert cycles(quick, quick, quick, slow) == 40 + 8 + 4


def test_signal_and_wait_of_a_barrier_are_apart():
    """What stands between the two hides the barrier's 8 clk."""
    timing = replace(RDNA, scalars_apart=True)
    split = stream("s_barrier_signal -1", "s_nop 9", "s_barrier_wait -1", timing=timing, target="gfx1201")
    assert cycles(split, split, timing=timing) == 1 + 10 + 1


def test_waves_that_do_not_meet_are_a_deadlock():
    with pytest.raises(Deadlock):
        walk_loop(waves(stream("s_barrier"), stream("s_nop 0")), CDNA, 4)


def test_a_first_wave_that_runs_on_does_not_hide_a_deadlock():
    """The others stand at a barrier for ever, however often it goes round."""
    with pytest.raises(Deadlock):
        walk_loop(waves(stream("s_nop 0"), stream("s_barrier"), stream("s_barrier"), stream("s_barrier")), CDNA, 4)


def test_a_group_of_waves_one_barrier_ahead_computes_while_the_other_moves_data():
    """In step: 8 matrix instructions one after another, then 64 clk of both. Apart: 64 of one hide 64 of the other."""
    stages = stream(*[MFMA16] * 4, "s_barrier", "s_nop 15", "s_barrier")
    assert cycles(stages, stages, simds=1) == (7 * 16 + 4 + 8 + 4) + (64 + 8 + 4)
    assert cycles(stages, stages, simds=1, leads=[0, 1]) == 2 * (64 + 8 + 4)


def test_the_higher_priority_goes_first():
    plain, urgent = stream("s_nop 0", ADD), stream("s_setprio 3", ADD)
    pair = waves(plain, urgent, simds=1)
    walk_once(pair, CDNA, 1)
    assert [w.starts[1] for w in pair] == [12, 8]


def test_dependent_vector_instructions_wait_for_each_other_where_issue_does_not_cover_it():
    chain = ["v_add_nc_u32_e32 v1, v1, v2"] * 10
    free = [f"v_add_nc_u32_e32 v{n}, v20, v21" for n in range(10)]
    assert cycles(stream(*chain, timing=RDNA, target="gfx1100"), timing=RDNA) == 10 * 5
    assert cycles(stream(*free, timing=RDNA, target="gfx1100"), timing=RDNA) == 10


def test_wmma_shares_the_port_of_vector_instructions():
    wmma = "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]"
    assert (
        cycles(stream(wmma, *["v_add_nc_u32_e32 v60, v61, v62"] * 4, timing=RDNA, target="gfx1100"), timing=RDNA) == 36
    )


CDNA5 = replace(TIMINGS["gfx1250"], issue=1, valu=1, valu_latency=5, shadow=4, lds_latency=60)
WMMA8 = "v_wmma_f32_16x16x32_f16 v[0:7], v[8:15], v[16:23], v[0:7]"
WMMA4 = "v_wmma_f32_16x16x64_fp8_fp8 v[0:7], v[8:15], v[16:23], v[0:7]"


@pytest.mark.parametrize("wmma, count, expected", [(WMMA8, 4, 8), (WMMA8, 5, 9), (WMMA4, 1, 4), (WMMA4, 2, 5)])
def test_some_vector_instructions_run_beside_a_wmma_of_cdna5(wmma, count, expected):
    """From clk 4 of 8, one a clk; in the last of 4."""
    assert cycles(stream(wmma, *[ADD] * count, timing=CDNA5, target="gfx1250"), timing=CDNA5) == expected


def test_memory_instructions_run_beside_a_wmma_of_cdna5_at_any_time():
    read = "ds_load_b128 v[60:63], v64"
    beside = stream(WMMA8, *[read] * 4, "s_wait_dscnt 0x0", timing=CDNA5, target="gfx1250")
    assert walk_once(waves(beside), CDNA5, 4) == 1 + 4 * 2 + 60 + 1


def test_counters_of_gfx12_are_waited_for_apart():
    """The load of 800 clk is outstanding behind a wait for LDS, and behind the LDS half of a wait for both."""
    timing = replace(TIMINGS["gfx1201"], lds_bytes=128, lds_latency=60, issue=1, memory_latency=800, memory_clk=BYTES)
    load, read = "buffer_load_b128 v[60:63], v64, s[0:3], null offen", "ds_load_b128 v[70:73], v64"
    only_lds = stream(load, read, "s_wait_dscnt 0x0", timing=timing, target="gfx1201")
    both = stream(load, read, "s_wait_loadcnt_dscnt 0x100", timing=timing, target="gfx1201")
    assert walk_once(waves(only_lds), timing, 4) == 1 + 4 + 60 + 1
    assert walk_once(waves(both), timing, 4) == 1 + 4 + 60 + 1
    neither = stream(load, read, "s_wait_loadcnt_dscnt 0x0", timing=timing, target="gfx1201")
    assert walk_once(waves(neither), timing, 4) == 8 + 800 + 1


def test_asynchronous_copies_have_a_counter_of_their_own():
    timing = replace(TIMINGS["gfx1250"], issue=1, memory_latency=800, memory_clk=BYTES)
    copy = "global_load_async_to_lds_b128 v1, v2, s[0:1]"
    kept = stream(copy, "s_wait_loadcnt 0x0", timing=timing, target="gfx1250")
    waited = stream(copy, "s_wait_asynccnt 0x0", timing=timing, target="gfx1250")
    assert walk_once(waves(kept), timing, 4) == 2
    assert walk_once(waves(waited), timing, 4) == 8 + 800 + 1
    tile = stream("tensor_load_to_lds s[0:3], s[4:11]", "s_wait_tensorcnt 0x0", timing=timing, target="gfx1250")
    assert walk_once(waves(tile), timing, 4) == 800 + 1


MOVER = replace(
    TIMINGS["gfx1250"], issue=1, memory_latency=800, memory_clk=BYTES, in_flight=32, memory_queue=12, tile_bytes=64
)
TILE, TILES_THERE = "tensor_load_to_lds s[0:3], s[4:11]", "s_wait_tensorcnt 0x0"


def moved(*lines: str, tiles: dict[int, int]) -> float:
    return walk_once(waves(stream(*lines, timing=MOVER, target="gfx1250", tiles=tiles)), MOVER, 4)


@pytest.mark.parametrize(
    "kib, clk",
    [(4, 4 * 16 + 800), (32, 32 * 16 + 800), (48, 16 + 800 + 16 * 16 + 800)],
    ids=[
        "four requests",
        "as many as are in flight",
        "more than are in flight, of which each waits for one to be back",
    ],
)
def test_a_tile_arrives_as_fast_as_its_bytes_do(kib: int, clk: int):
    assert moved(TILE, TILES_THERE, tiles={0: kib * 1024}) == clk + 1


def test_a_wave_goes_on_while_its_tile_arrives():
    assert moved(TILE, "s_nop 0", tiles={0: 4096}) == 2
    assert moved(TILE, *["s_nop 0"] * 1000, TILES_THERE, tiles={0: 4096}) == 1002


def test_tiles_and_vector_loads_take_turns_at_what_memory_gives():
    load = "global_load_async_to_lds_b128 v1, v2, s[0:1]"
    assert moved(TILE, load, "s_wait_asynccnt 0x0", tiles={0: 4096}) == 4 * 16 + 8 + 800 + 1
    assert moved(load, TILE, TILES_THERE, tiles={1: 4096}) == 8 + 4 * 16 + 800 + 1
    assert moved(TILE, TILE, TILES_THERE, tiles={0: 4096, 1: 2048}) == 6 * 16 + 800 + 1


@pytest.mark.parametrize("timing", TIMINGS.values(), ids=list(TIMINGS))
def test_vector_memory_is_as_fast_as_its_basis_says(timing):
    """Lanes that are apart may take longer than their bytes."""
    rates = {width: width * 64 / clk for width, clk in timing.memory_clk.items()}
    assert max(rates.values()) == 64 and rates[16] == 64


def test_idle_time_of_the_pipe_is_accounted_for():
    body = stream(MFMA16, MFMA16, READ, "s_waitcnt lgkmcnt(0)")
    found = walk_loop(waves(body), CDNA, 4)
    losses = matrix_losses(found.waves, 4)
    assert sum(x.clk for x in losses) == found.cycles - 2 * 16
    # The pipe is idle from 32 on; the data is there at 24 + 4 + 60, the wait itself takes 4.
    assert by_cause(losses) == {"LDS data": 88 - 32, "issue": 4}
    assert [x.line for x in losses] == [3, 3]


def test_time_of_waves_is_accounted_for():
    found = walk_loop(waves(stream("s_nop 1", READ, "s_waitcnt lgkmcnt(0)")), CDNA, 4)
    assert by_cause(wave_losses(found.waves)) == {"LDS data": 60, "issue": 16}
    assert found.cycles == 76
