"""Trip counts from scalar code and launch values, and the time of a whole launch made of them."""

from dataclasses import replace

import pytest

from gluonize.judge.cycles import analysis
from gluonize.judge.cycles.analysis import analyze
from gluonize.judge.cycles.code.assembly import read_program
from gluonize.judge.cycles.launch.estimate import argument_offsets, argument_words, estimate, tensor_bytes
from gluonize.judge.cycles.launch.trips import count_trips
from gluonize.judge.cycles.prediction import Estimate
from gluonize.read.spec.launch import LaunchSpec
from gluonize.rules.targets import TARGETS
from gluonize.rules.timing import TIMINGS

# (K + 63) / 64 iterations, none when that is below 1; K is the argument at byte 24.
LOOP = """
s_load_dwordx2 s[2:3], s[0:1], 0x18
s_waitcnt lgkmcnt(0)
s_add_i32 s2, s2, 63
s_ashr_i32 s2, s2, 6
s_cmp_lt_i32 s2, 1
s_cbranch_scc1 .END
.LOOP:
v_mfma_f32_16x16x32_f16 v[8:11], v[4:7], v[4:7], v[8:11]
s_add_i32 s2, s2, -1
s_cmp_lg_u32 s2, 0
s_cbranch_scc1 .LOOP
.END:
s_endpgm
"""


def assembly(text):
    return "\n".join(x if x.endswith(":") or x.startswith(".") else f"\t{x}" for x in text.strip().splitlines())


def trips(text, words):
    program = read_program(assembly(text))
    return {program.lines[header].label: n for header, n in count_trips(program, words).items()}


@pytest.mark.parametrize("size, expected", [(8192, 128), (65, 2), (64, 1), (0, 0)])
def test_loops_go_round_as_often_as_the_launch_says(size, expected):
    assert trips(LOOP, {6: size}) == {".LOOP": expected}


def test_the_end_of_a_loop_may_be_a_mask_that_a_comparison_selects():
    selected = LOOP.replace(
        "s_cmp_lg_u32 s2, 0\ns_cbranch_scc1",
        "s_cmp_lg_u32 s2, 0\ns_cselect_b64 vcc, -1, 0\nv_cndmask_b32_e32 v1, v2, v3, vcc\ns_and_b64 vcc, exec, vcc\ns_cbranch_vccnz",
    )
    assert trips(selected, {6: 8192}) == {".LOOP": 128}
    assert trips(selected.replace("-1, 0", "0, -1").replace("vccnz", "vccz"), {6: 8192}) == {".LOOP": 128}
    assert trips(selected.replace("-1, 0", "s[20:21], 0"), {6: 8192}) == {".LOOP": None}
    halved = (
        selected.replace("_b64", "_b32")
        .replace("vcc,", "vcc_lo,")
        .replace("exec", "exec_lo")
        .replace(", vcc\n", ", vcc_lo\n")
    )
    assert trips(halved + "\n.amdhsa_wavefront_size32 1", {6: 8192}) == {".LOOP": 128}


def test_what_the_launch_does_not_say_is_unknown():
    assert trips(LOOP, {}) == {".LOOP": None}
    assert trips(LOOP.replace("s_add_i32 s2, s2, 63", "s_add_i32 s2, s2, s16"), {6: 64}) == {".LOOP": None}


def test_arguments_may_be_in_registers_from_the_start():
    """Of 16 user registers the last 14 hold arguments; here the seventh is K."""
    directives = "\n.amdhsa_user_sgpr_count 16\n.amdhsa_user_sgpr_kernarg_preload_length 14"
    preloaded = LOOP.replace("s_load_dwordx2 s[2:3], s[0:1], 0x18\n", "").replace("s2", "s8") + directives
    assert trips(preloaded, {6: 640}) == {".LOOP": 10}


def test_the_pointer_to_arguments_may_stand_behind_others():
    directives = "\n.amdhsa_user_sgpr_dispatch_ptr 1\n.amdhsa_user_sgpr_queue_ptr 1"
    moved = LOOP.replace("s[0:1]", "s[4:5]")
    assert trips(moved + directives, {6: 640}) == {".LOOP": 10}
    assert trips(moved, {6: 640}) == {".LOOP": None}
    assert trips("s_mov_b32 s0, 0" + LOOP, {6: 640}) == {".LOOP": None}  # no longer the pointer


def test_a_loop_in_a_loop_counts_per_entry():
    nested = LOOP.replace(".LOOP:\n", ".OUTER:\ns_mov_b32 s5, 4\n.LOOP:\n").replace(
        "s_add_i32 s2, s2, -1\ns_cmp_lg_u32 s2, 0\ns_cbranch_scc1 .LOOP",
        "s_add_i32 s5, s5, -1\ns_cmp_lg_u32 s5, 0\ns_cbranch_scc1 .LOOP\n"
        "s_add_i32 s2, s2, -1\ns_cmp_lg_u32 s2, 0\ns_cbranch_scc1 .OUTER",
    )
    assert trips(nested, {6: 192}) == {".OUTER": 3, ".LOOP": 4}


TENSOR = {"tensor": {"dtype": "float16", "shape": [64, 32], "stride": [32, 1], "storage": 2048, "offset": 0}}
SPEC = LaunchSpec(
    "k", "k", signature={"p": "*fp16", "n": "i32", "B": "constexpr", "m": "i64"}, grid=(300,),
    values={"p": TENSOR, "n": -1, "B": 4, "m": 1 << 33},
)  # fmt: skip


def test_arguments_are_found_by_their_offsets():
    text = ".amdgpu_metadata\n.args:\n  - .offset: 0\n    .size: 8\n  - .offset: 8\n  - .offset: 16\n.group_segment_fixed_size: 0"
    assert argument_offsets(text) == [0, 8, 16]
    assert argument_words(SPEC, [0, 8, 16]) == {2: 0xFFFFFFFF, 4: 0, 5: 2}
    assert tensor_bytes(SPEC) == 64 * 32 * 2


def estimated(spec, number=10, timing=TIMINGS["gfx950"], target="gfx950"):
    found = analyze(assembly(LOOP), "gfx950", 4, 160 * 1024)
    return found, estimate(found, {".LOOP": number}, spec, TARGETS[target], timing)


def test_a_launch_takes_rounds_of_what_is_outside_and_its_loops():
    """300 programs on 256 compute units that hold one each."""
    found, whole = estimated(SPEC)
    assert isinstance(whole, Estimate) and whole.rounds == 2
    assert whole.clk == found.outside + 10 * found.loops[0].cycles
    assert whole.microseconds == pytest.approx(2 * whole.clk / 2400)
    assert not whole.bandwidth_bound


def test_tensors_have_to_be_moved():
    _, whole = estimated(SPEC, timing=replace(TIMINGS["gfx950"], memory_tbs=1e-6))
    assert whole.bandwidth_bound and whole.microseconds == pytest.approx(4096 / (1e-6 * 1e6))


def test_without_a_grid_trips_or_a_clock_there_is_no_estimate():
    assert "grid" in estimated(replace(SPEC, grid=()))[1]
    assert "how often" in estimated(SPEC, number=None)[1]
    assert "not published" in estimated(SPEC, target="gfx1250")[1]


def test_the_loop_that_is_executed_most_is_the_hot_one():
    """A loop over whole blocks, and one over what is left, which is longer."""
    rest = LOOP.replace(".LOOP", ".REST").replace(".END", ".LAST").replace("s_cmp_lg", "v_mov_b32 v0, 0\ns_cmp_lg")
    found = analyze(assembly(LOOP.replace("s_endpgm\n", "") + rest), "gfx950", 4, 160 * 1024)
    assert [loop.label for loop in found.loops] == [".LOOP", ".REST"]
    hot = {0: ".REST", 1: ".REST", 2: ".LOOP", 64: ".LOOP"}
    assert {n: replace(found, trips={".LOOP": n, ".REST": 1}).hot.label for n in hot} == hot
    assert replace(found, trips={".LOOP": 64}).hot.label == ".REST"  # how often the other one goes round is not known
    assert replace(found, trips={".LOOP": 0, ".REST": 0}).hot.label == ".REST"


@pytest.mark.parametrize(
    "old, new",
    [
        ("s_add_i32 s2, s2, 63", "s_addk_i32 s2, 0x3f"),
        ("s_add_i32 s2, s2, 63", "s_addk_co_i32 s2, 0x3f"),
        ("s_add_i32 s2, s2, -1", "s_addk_i32 s2, 0xffff"),
        ("s_add_i32 s2, s2, -1", "s_movk_i32 s3, 0xffff\ns_add_i32 s2, s2, s3"),
        ("s_cmp_lt_i32 s2, 1", "s_cmpk_lt_i32 s2, 0x1"),
        ("s_cmp_lt_i32 s2, 1\ns_cbranch_scc1", "s_cmpk_gt_i32 s2, 0xff00\ns_cbranch_scc0"),
        ("s_cmp_lt_i32 s2, 1\ns_cbranch_scc1", "s_cbranch_scc0"),  # the shift before has said whether any is left
    ],
)
def test_instructions_with_a_short_number_count_too(old: str, new: str):
    assert old in LOOP
    assert trips(LOOP.replace(old, new), {6: 8192}) == {".LOOP": 128}


def test_an_iteration_takes_no_less_than_what_a_resource_needs(monkeypatch):
    """A walk that would take fewer clocks, as one with a deep ring may, counts as many, and says so."""
    loads = "".join(f"buffer_load_dwordx4 v[{n}:{n + 3}], v1, s[4:7], 0 offen\n" for n in range(16, 80, 4))
    walk = analysis.walk_loop
    monkeypatch.setattr(analysis, "walk_loop", lambda *given: replace(walk(*given), cycles=1.0))
    found = analyze(assembly(LOOP.replace(".LOOP:\n", f".LOOP:\n{loads}", 1)), "gfx950", 4, 160 * 1024)
    (loop,) = found.loops
    assert loop.cycles == loop.alone == max(loop.bounds.values()) > loop.matrix and loop.distance == 1
    assert any("waves could go round in 1 clk" in note for note in found.notes)
