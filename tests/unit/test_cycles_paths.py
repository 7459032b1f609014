"""Assembly as typed lines, what each wave executes of it, and where its lanes access LDS."""

from dataclasses import replace

import pytest

from gluonize.judge.cycles.analysis import analyze
from gluonize.judge.cycles.code.assembly import Registers, read_program
from gluonize.judge.cycles.code.executed_paths import Flow, LoopPath, follow
from gluonize.judge.cycles.code.matrix import matrix_time
from gluonize.judge.cycles.code.stream import conflict_factor
from gluonize.judge.cycles.text import lines_of_loop
from gluonize.rules.targets import TARGETS
from gluonize.rules.timing import TIMINGS


def program(text):
    return read_program("\n".join(x if x.endswith(":") else f"\t{x}" for x in text.strip().splitlines()))


def executed(text, wave=0, lanes=64):
    """Mnemonics in order, those of a loop's iteration in a list; and the LDS addresses by mnemonic."""
    read = program(text)
    addresses = {}

    def names(path):
        out = []
        for item in path:
            if isinstance(item, LoopPath):
                out.append(names(item.body))
            else:
                line = read.lines[item.line]
                out.append(line.op)
                if line.op.startswith("ds_"):
                    addresses[line.op] = item.lanes
        return out

    return names(follow(Flow(read), wave, lanes)), addresses


def test_a_place_is_that_of_the_statement_and_of_the_outermost_call():
    """A helper's statement, not the call of the helper; the call, where Triton's own library has the statement."""
    frames = (
        "std.py:43:13 @[ helper.py:20:5 @[ kernel.py:51:17 ] ]",
        "std.py:43:13 @[ kernel.py:52:1 ]",
        "kernel.py:53:2",
        ":0:0",
    )
    text = '.file 2 "/lib/site-packages/triton/language" "std.py"\n.file 1 "/home/std" "kernel.py"\n'
    read = read_program(text + "".join(f"\t.loc 1 1 1 ; {frame}\n\ts_nop 0\n" for frame in frames))
    assert [line.statement for line in read.lines] == ["helper.py:20", "kernel.py:52", "kernel.py:53", ""]
    assert [line.place for line in read.lines] == ["kernel.py:51", "kernel.py:52", "kernel.py:53", ""]


def test_lines_have_typed_operands():
    read = read_program(
        "kernel:\n\t.loc 1 43 13 ; std.py:43:13 @[ kernel.py:51:17 ]\n"
        "\tbuffer_load_dwordx4 v[4:7], v1, s[0:3], 0 offen offset:16 lds ; note\n"
        "\tv_wmma_f32_16x16x32_f16 v[0:7] /*v[256:263]*/, v8 /*v264*/, -v9, 0x10\n"
        "\tv_dual_mov_b32 v1, v2 :: v_dual_add_f32 v3, v4, v5\n\t.amdhsa_next_free_vgpr 12\n\t.amdgpu_metadata\n\ts_nop 0\n"
    )
    label, load, wmma, dual = read.lines
    assert label.label == "kernel" and read.position == {"kernel": 0}
    assert load.arguments == (Registers("v", 4, 4), Registers("v", 1), Registers("s", 0, 4), 0)
    assert (load.number("offset"), load.word("lds"), load.word("off"), load.place) == (16, "", None, "kernel.py:51")
    assert wmma.arguments == (Registers("v", 256, 8), Registers("v", 264), Registers("v", 9), 16)
    assert dual.pair.op == "v_dual_add_f32" and dual.pair.arguments[0] == Registers("v", 3)
    assert read.properties == {"next_free_vgpr": 12}


@pytest.mark.parametrize("carry", ["vcc", "s[4:5]", "null"])
def test_a_carry_is_written_not_added(carry):
    """It may stand in registers of which the value before is known, and is another mask after."""
    text = f"s_mov_b32 s4, 64\nv_lshlrev_b32_e32 v1, 2, v0\nv_add_co_u32 v2, {carry}, v1, v1\nds_read_b32 v3, v2"
    assert executed(text)[1]["ds_read_b32"] == tuple(8 * n for n in range(64))


LOOP = """
s_cmp_lt_i32 s2, 1
s_cbranch_scc1 .END
.LOOP:
s_barrier
v_cmp_gt_i32_e32 vcc, s2, v0
s_and_saveexec_b64 s[4:5], vcc
s_cbranch_execnz .COPY
.BACK:
s_or_b64 exec, exec, s[4:5]
s_sub_i32 s2, s2, 64
s_cmp_lg_u32 s2, 0
s_cbranch_scc1 .LOOP
.END:
s_endpgm
.COPY:
buffer_load_dwordx4 v4, s[0:3], 0 offen lds
s_branch .BACK
"""


LOOP_OF_ONE = "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]\ns_add_i32 s3, s3, 1\ns_cmp_lt_i32 s3, s2\ns_cbranch_scc1 .LBB0_4\n"


def test_loops_are_entered_and_blocks_out_of_line_executed():
    names, _ = executed(LOOP)
    loop = next(x for x in names if isinstance(x, list))
    assert loop.count("buffer_load_dwordx4") == 1 and loop[-1] == "s_cbranch_scc1"
    assert names[-1] == "s_endpgm"


def test_no_way_is_taken_for_one_to_a_loop_that_leads_there_for_no_lanes_alone():
    """LLVM has scalar branches end in one on the lanes that are left: some always are."""
    text = (
        "s_load_dword s2, s[0:1], 0\ns_cmp_gt_i32 s2, 5\ns_cbranch_scc1 .LBB0_3\n"
        "s_nop 0\ns_cbranch_execz .LBB0_4\nv_mov_b32 v0, 0\ns_branch .LBB0_10\n.LBB0_3:\ns_nop 1\n"
        f".LBB0_4:\n{LOOP_OF_ONE}.LBB0_10:\ns_endpgm"
    )
    names, _ = executed(text)
    assert ["v_mfma_f32_32x32x8_f16", "s_add_i32", "s_cmp_lt_i32", "s_cbranch_scc1"] in names
    assert "s_cbranch_execz" not in names and "v_mov_b32" not in names


def test_a_mask_that_is_set_on_the_way_does_not_lead_past_every_loop():
    text = (
        "s_load_dword s2, s[0:1], 0\ns_cmp_gt_i32 s2, 5\ns_cbranch_scc1 .LBB0_2\n"
        "s_mov_b64 s[4:5], 0\ns_branch .LBB0_3\n.LBB0_2:\ns_mov_b64 s[4:5], -1\n"
        f".LBB0_3:\ns_andn2_b64 vcc, exec, s[4:5]\ns_cbranch_vccnz .LBB0_10\n.LBB0_4:\n{LOOP_OF_ONE}.LBB0_10:\ns_endpgm"
    )
    names, _ = executed(text)
    assert ["v_mfma_f32_32x32x8_f16", "s_add_i32", "s_cmp_lt_i32", "s_cbranch_scc1"] in names


def test_of_a_copy_and_what_fills_in_for_it_only_the_copy_is_executed():
    """A mask and its complement, as masked copies to LDS have them."""
    names, _ = executed("""
        v_cmp_le_i32_e32 vcc, s18, v4
        s_and_saveexec_b64 s[0:1], vcc
        s_xor_b64 s[0:1], exec, s[0:1]
        s_cbranch_execz .ELSE
        ds_write_b128 v0, v[4:7]
        .ELSE:
        s_or_saveexec_b64 s[8:9], s[0:1]
        s_xor_b64 exec, exec, s[8:9]
        s_cbranch_execz .DONE
        buffer_load_dwordx4 v4, s[0:3], 0 offen lds
        .DONE:
        s_endpgm
        """.replace("        ", ""))
    assert "buffer_load_dwordx4" in names and "ds_write_b128" not in names


@pytest.mark.parametrize("wave, barriers", [(0, 0), (3, 0), (4, 1), (7, 1)])
def test_branches_that_the_number_of_the_wave_decides_are_followed(wave, barriers):
    names, _ = executed(
        "v_cmp_lt_u32_e64 s[0:1], 0xff, v0\ns_and_saveexec_b64 s[16:17], s[0:1]\ns_cbranch_execz .ON\ns_barrier\n.ON:\ns_endpgm",
        wave,
    )
    assert names.count("s_barrier") == barriers


@pytest.mark.parametrize("type_name, barriers", [("i32", 1), ("u32", 0)])
def test_lanes_are_compared_as_signed_or_not(type_name, barriers):
    """-1 is below every lane's number, or above."""
    names, _ = executed(
        f"v_cmp_gt_{type_name}_e64 s[0:1], v0, -1\ns_and_saveexec_b64 s[16:17], s[0:1]\ns_cbranch_execz .ON\ns_barrier\n"
        ".ON:\ns_endpgm"
    )
    assert names.count("s_barrier") == barriers


def test_a_loop_that_is_left_in_its_first_iteration_is_none():
    names, _ = executed("s_mov_b32 s0, 1\n.L:\ns_sub_i32 s0, s0, 1\ns_cmp_lg_u32 s0, 0\ns_cbranch_scc1 .L\ns_endpgm")
    assert names == ["s_mov_b32", "s_sub_i32", "s_cmp_lg_u32", "s_cbranch_scc1", "s_endpgm"]


def test_an_iteration_does_not_leave_its_loop_where_that_is_not_decided():
    names, _ = executed(".L:\ns_cmp_lt_i32 s0, s1\ns_cbranch_scc1 .END\ns_barrier\ns_branch .L\n.END:\ns_endpgm")
    assert names == [["s_cmp_lt_i32", "s_cbranch_scc1", "s_barrier", "s_branch"], "s_endpgm"]


def test_what_is_known_up_to_a_scalar_decides_no_branch():
    """Lane + s7 is compared: without s7 nobody is past 63, but s7 is not known, so the block is executed."""
    names, _ = executed(
        "v_add_u32_e32 v1, s7, v0\nv_or_b32_e32 v1, 0, v1\nv_cmp_lt_u32_e64 s[0:1], 63, v1\n"
        "s_and_saveexec_b64 s[16:17], s[0:1]\ns_cbranch_execz .ON\ns_barrier\n.ON:\ns_endpgm"
    )
    assert "s_barrier" in names


def test_addresses_are_known_up_to_what_is_added_for_all_lanes():
    """lane * 16 with bit 4 exchanged by bit 7, an unknown slot added, an offset; through a spill and back."""
    _, addresses = executed(
        "v_lshlrev_b32_e32 v1, 4, v0\nv_bfe_u32 v2, v0, 3, 1\nv_lshlrev_b32_e32 v2, 4, v2\nv_xor_b32_e32 v1, v1, v2\n"
        "v_add_u32_e32 v1, s7, v1\nscratch_store_dword off, v1, off offset:4\nv_mov_b32_e32 v1, 0\n"
        "scratch_load_dword v5, off, off offset:4\nds_read_b128 v[8:11], v5 offset:32\nds_write_b32 v9, v8\ns_endpgm"
    )
    assert addresses["ds_read_b128"][:10] == (32, 48, 64, 80, 96, 112, 128, 144, 176, 160)
    assert addresses["ds_write_b32"] is None  # what was read from LDS


def test_addresses_survive_what_only_reads_them():
    """Of these, the first operand is an address."""
    _, addresses = executed(
        "v_lshlrev_b32_e32 v1, 2, v0\nglobal_prefetch_b8 v1, s[0:1]\nbuffer_load_dwordx4 v1, s[0:3], 0 offen lds\n"
        "global_load_async_to_lds_b128 v1, v2, s[0:1]\nds_write_b32 v1, v3\nds_read_b32 v4, v1\ns_endpgm"
    )
    assert addresses["ds_read_b32"][:3] == (0, 4, 8)


def test_halves_of_a_dual_issue_line_read_what_was_there_before():
    """The second half is an `and`, by its table of bits."""
    _, addresses = executed(
        "v_mov_b32_e32 v1, v0\nv_mov_b32_e32 v2, 64\nv_dual_mov_b32 v1, v2 :: v_dual_bitop2_b32 v2, 6, v1 bitop3:0x40\n"
        "ds_load_b32 v3, v2\nds_load_b64 v[4:5], v1\ns_endpgm",
        lanes=32,
    )
    assert addresses["ds_load_b32"][:9] == (0, 0, 2, 2, 4, 4, 6, 6, 0)
    assert set(addresses["ds_load_b64"]) == {64}


def test_a_slot_times_its_size_moves_all_lanes():
    _, addresses = executed(
        "v_lshlrev_b32_e32 v1, 2, v0\nv_mad_u32 v1, 0x4400, s1, v1\nds_load_b32 v2, v1\ns_endpgm", lanes=32
    )
    assert addresses["ds_load_b32"][:3] == (0, 4, 8)
    _, addresses = executed("v_mad_u32 v1, v0, s1, 4\nds_load_b32 v2, v1\ns_endpgm", lanes=32)
    assert addresses["ds_load_b32"] is None


def test_products_with_unknown_scalars_are_unknown():
    _, addresses = executed("v_mul_lo_u32 v1, v0, s7\nds_read_b32 v2, v1\ns_endpgm")
    assert addresses["ds_read_b32"] is None


STRIDES = [("gfx950", 16, 1), ("gfx950", 128, 8), ("gfx942", 16, 1), ("gfx942", 64, 4), ("gfx942", 128, 8)]


@pytest.mark.parametrize("target, stride, expected", STRIDES)
def test_conflicts_of_16_bytes_at_a_stride(target, stride, expected):
    """gfx950: 16 lanes at once on 256 bytes of banks, 2 of them apart at a stride of 128; gfx942: 8 lanes on 128 bytes."""
    lanes = tuple(stride * n for n in range(64))
    assert conflict_factor(lanes, 16, False, TIMINGS[target]) == expected


def test_lanes_that_read_the_same_word_do_not_conflict():
    assert conflict_factor((64,) * 64, 4, False, TIMINGS["gfx950"]) == 1


def test_a_swizzle_of_pairs_of_rows_conflicts_on_half_the_banks():
    """Rows of 128 bytes, 16 rows and 4 chunks of 16 bytes a wave; the chunk is exchanged by row / 2 or by row."""

    def read(per_phase):
        rows = [(lane % 16, lane // 16) for lane in range(64)]
        return tuple(128 * row + 16 * (chunk ^ (row // per_phase % 8)) for row, chunk in rows)

    assert conflict_factor(read(1), 16, False, TIMINGS["gfx942"]) == 1
    assert conflict_factor(read(2), 16, False, TIMINGS["gfx942"]) == 2
    assert conflict_factor(read(2), 16, False, TIMINGS["gfx950"]) == 1


MATRIX = [
    ("gfx950", "v_mfma_f32_16x16x32_f16", 16),
    ("gfx950", "v_mfma_f32_32x32x16_bf16", 32),
    ("gfx950", "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3]", 32),
    ("gfx950", "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:7], v[8:11], v[0:3] cbsz:4 blgp:4", 16),
    ("gfx950", "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:7], v[8:11], v[0:3] cbsz:4", 32),
    ("gfx950", "v_mfma_scale_f32_32x32x64_f8f6f4 v[0:3], v[4:7], v[8:11], v[0:3], v1, v2 cbsz:4 blgp:4", 32),
    ("gfx942", "v_mfma_f32_16x16x16_f16", 16),
    ("gfx942", "v_mfma_f32_16x16x8_xf32", 16),
    ("gfx942", "v_mfma_f32_16x16x4_f32", 32),
    ("gfx942", "v_mfma_f32_32x32x16_fp8_bf8", 32),
    ("gfx942", "v_smfmac_f32_16x16x32_f16", 16),
    ("gfx942", "v_mfma_i32_16x16x32_i8", 16),
    ("gfx1201", "v_wmma_f32_16x16x16_fp8_fp8", 8),
    ("gfx1100", "v_wmma_i32_16x16x16_iu8", 32),
    ("gfx1250", "v_wmma_f32_16x16x32_bf16", 8),
    ("gfx1250", "v_wmma_f32_16x16x64_fp8_bf8", 4),
    ("gfx1250", "v_wmma_i32_16x16x64_iu8", 16),
    (
        "gfx1250",
        "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:15], v[16:23], v[0:7], v24, v25 matrix_a_fmt:MATRIX_FMT_FP4",
        8,
    ),
    (
        "gfx1250",
        "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:15], v[16:23], v[0:7], v24, v25 matrix_a_fmt:MATRIX_FMT_FP4 matrix_b_fmt:MATRIX_FMT_FP4",
        4,
    ),
]


@pytest.mark.parametrize("target, text, cycles", MATRIX, ids=lambda x: str(x).partition(" ")[0])
def test_matrix_instructions_take_the_cycles_of_their_row(target, text, cycles):
    (line,) = program(text).lines
    found = matrix_time(line, TARGETS[target])
    assert (found.cycles, found.exact, found.scaled) == (cycles, True, "scale" in text)


def test_a_shape_without_a_row_is_timed_in_proportion():
    found = matrix_time(program("v_mfma_f32_4x4x4_16b_f16").lines[0], TARGETS["gfx942"])
    assert not found.exact


MATMUL = (
    ".LOOP:\n.loc\ns_barrier\nbuffer_load_dwordx4 v4, s[0:3], 0 offen lds\nds_read_b128 v[4:7], v1\ns_waitcnt lgkmcnt(0)\n"
    + "v_mfma_f32_16x16x32_f16 v[8:11], v[4:7], v[4:7], v[8:11]\n" * 8
    + "s_waitcnt vmcnt(0)\ns_cmp_lg_u32 s2, 0\ns_cbranch_scc1 .LOOP\ns_endpgm"
)


def assembly(text):
    return "\n".join(x if x.endswith(":") else f"\t{x}" for x in text.splitlines())


def test_a_kernel_is_analyzed_as_a_whole():
    text = assembly("v_lshlrev_b32_e32 v1, 7, v0\n" + MATMUL)
    found = analyze(text, "gfx950", 4, lds_bytes=160 * 1024)
    (loop,) = found.loops
    assert (loop.waves, loop.workgroups, loop.instructions, loop.matrix, loop.unknown) == (4, 1, 15, 128, 0)
    assert loop.conflicts == (("ds_read_b128", "", 8.0),)
    assert loop.bound == "matrix" and loop.bounds["LDS"] == 4 * 4 * 8
    assert loop.efficiency == pytest.approx(128 / loop.cycles)
    assert sum(loop.causes.values()) == pytest.approx(loop.cycles - 128)
    assert max(loop.causes, key=loop.causes.get) == "memory data"
    assert len(loop.lanes) == 4 and found.as_json()["hot"] == ".LOOP"


def test_workgroups_that_fit_share_the_compute_unit():
    text = assembly(MATMUL)
    alone, shared = (analyze(text, "gfx950", 4, lds_bytes=n * 1024).loops[0] for n in (160, 80))
    assert (alone.workgroups, shared.workgroups) == (1, 2)
    assert shared.per_workgroup < alone.per_workgroup  # each hides the other's waits
    assert alone.unknown == 1  # v1 is not known here


def test_groups_of_waves_that_are_a_barrier_apart_are_walked_apart():
    """Half of the waves pass a barrier more before the loop, and compute while the others do something else."""
    ahead = (
        "v_cmp_lt_u32_e64 s[0:1], 0xff, v0\ns_and_saveexec_b64 s[16:17], s[0:1]\ns_cbranch_execz .ON\ns_barrier\n.ON:\n"
    )
    stages = ".LOOP:\n" + "v_mfma_f32_16x16x32_f16 v[8:11], v[4:7], v[4:7], v[8:11]\n" * 4 + "s_barrier\ns_nop 15\n"
    stages += "s_barrier\ns_cmp_lg_u32 s2, 0\ns_cbranch_scc1 .LOOP\ns_endpgm"
    together, apart = (analyze(assembly(x + stages), "gfx950", 8, 160 * 1024).loops[0].cycles for x in ("", ahead))
    assert apart < 0.85 * together


def test_a_longer_latency_makes_a_loop_that_waits_for_it_longer():
    text = assembly(MATMUL)
    timing = TIMINGS["gfx950"]
    short, long = (
        analyze(text, "gfx950", 4, 160 * 1024, replace(timing, memory_latency=n)).loops[0].cycles for n in (500, 600)
    )
    assert long - short == 100


def test_every_target_has_a_timing():
    assert TIMINGS.keys() == TARGETS.keys()


def test_waves_that_do_not_meet_in_a_loop_are_walked_however_far_apart_they_begin():
    """Half of the waves pass a barrier more before it."""
    ahead = (
        "v_cmp_lt_u32_e64 s[0:1], 0xff, v0\ns_and_saveexec_b64 s[16:17], s[0:1]\ns_cbranch_execz .ON\ns_barrier\n.ON:\n"
    )
    loop = (
        ".L:\nv_mfma_f32_16x16x32_f16 a[0:3], v[4:7], v[4:7], a[0:3]\ns_cmp_lg_u32 s2, 0\ns_cbranch_scc1 .L\ns_endpgm"
    )
    (found,) = analyze(assembly(ahead + loop), "gfx950", 8, 160 * 1024).loops
    assert found.waves == 8 and found.cycles == 2 * 16


def test_the_hottest_loop_alone_costs_what_it_costs_among_others():
    """By matrix work, or by how often the launch has loops go round; what it is lost to is not asked for."""
    one, two = ("v_mfma_f32_16x16x32_f16 v[8:11], v[4:7], v[4:7], v[8:11]\n" * n for n in (1, 2))
    loops = (
        f".A:\n{one}s_cmp_lg_u32 s2, 0\ns_cbranch_scc1 .A\n.B:\n{two}s_cmp_lg_u32 s2, 0\ns_cbranch_scc1 .B\ns_endpgm"
    )
    every = analyze(assembly(loops), "gfx950", 4, 160 * 1024)
    for trips, label in (({}, ".B"), ({".A": 9, ".B": 1}, ".A")):
        found = analyze(assembly(loops), "gfx950", 4, 160 * 1024, hottest_with=trips)
        (alone,) = found.loops
        (same,) = (x for x in every.loops if x.label == label)
        assert alone == replace(same, causes={}, losses=(), lanes=()) and found.outside == every.outside


def test_clocks_are_told_of_one_workgroup_and_files_by_their_own_names():
    text = ".L:\n\t.loc 1 7 5 ; old.py:7:5\n\tv_mfma_f32_16x16x32_f16 v[8:11], v[4:7], v[4:7], v[8:11]\n\ts_nop 15\n\ts_cbranch_scc1 .L\n\ts_endpgm\n"
    found = analyze(text, "gfx950", 4, 80 * 1024).named({"old.py": "new.py"})
    (loop,) = found.loops
    assert loop.workgroups > 1 and loop.place == "new.py:7" and {x.place for x in loop.losses} == {"new.py:7"}
    inside = text.replace("old.py:7:5", "old.py:7:5 @[ old.py:20:3 ]")
    assert analyze(inside, "gfx950", 4, 80 * 1024).named({"old.py": "new.py"}).loops[0].place == "new.py:7 (call 20)"
    told = loop.as_json()
    assert told["cycles"] == round(loop.cycles / loop.workgroups, 1) and told["together"] == round(loop.cycles, 1)
    assert sum(told["lost"].values()) + loop.of_one.matrix == pytest.approx(told["cycles"], abs=1)
    first, *rest = lines_of_loop(loop)
    assert (
        f"{loop.cycles / loop.workgroups:.0f} clk for a workgroup ({loop.cycles:.0f} clk for the {loop.workgroups} that"
        in first
    )
    axis = next(line for line in rest if line.startswith("clk "))
    assert axis.split()[1] == "0" and 0 < float(axis.split()[-1]) < max(x.spans[-1].end for x in loop.lanes)
