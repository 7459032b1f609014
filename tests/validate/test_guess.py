"""Launches of which only types are known are run with made-up values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from slow_rows import slow_but

import fixture_set
from gluonize.judge.inputs.made_up import ROOM, guesses
from gluonize.judge.inputs.strides import UsedStrides
from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.verdict.result import RACE, ValidationResult
from gluonize.judge.verdict.run import validate_pair
from gluonize.read.spec.launch import LaunchSpec, read_launches

TARGET = "gfx950"


def stripped(fixture: str, number: int = 0) -> LaunchSpec:
    launch = read_launches(str(fixture_set.ROOT / fixture / "launches.json"))[number]
    return replace(launch, values={}, grid=())


def validated(fixture: str, translation: Path, spec: LaunchSpec) -> ValidationResult:
    left = source_stage(str(fixture_set.ROOT / fixture / "kernel.py"), spec, TARGET)
    right = translated_stage(str(translation), spec, TARGET)
    return validate_pair(left.text, right.text, spec, source_names=left.names, translated_names=right.names)


@pytest.mark.one_of(2)
@pytest.mark.compile
@pytest.mark.parametrize(
    "fixture", slow_but(["softmax", "vector_add", "rms_norm", "matmul", "layer_norm", "batched_matmul"], kept=3)
)
def test_translations_validate_with_made_up_values(fixture: str):
    result = validated(fixture, fixture_set.ROOT / fixture / "golden" / f"{TARGET}.py", stripped(fixture))
    assert (result.status, result.reason) == ("validated", "")
    assert result.made_up and "made up" in result.notes[0]
    assert not [note for note in result.notes if note.startswith(RACE)]  # rows lie apart
    assert result.programs >= 2 and all(t.compared for t in result.tensors if t.name.startswith(("c_ptr", "out")))


@pytest.mark.compile
@pytest.mark.parametrize(
    "before, after",
    [
        ("async_copy.wait_group(NUM_BUFFERS - 2)", "async_copy.wait_group(NUM_BUFFERS - 1)"),
        ("< K - k_ahead * BLOCK_K", "< K"),
        ("(offs_cn[None, :] < N)", "(offs_cn[None, :] < N + 1)"),
    ],
)
def test_planted_mistakes_are_found_with_made_up_values(before: str, after: str, tmp_path: Path):
    text = (fixture_set.ROOT / "matmul" / "golden" / f"{TARGET}.py").read_text()
    assert before in text
    planted = tmp_path / "planted.py"
    planted.write_text(text.replace(before, after))
    assert validated("matmul", planted, stripped("matmul")).status in ("hazard", "mismatch")


def test_what_the_specialization_promises_is_kept():
    spec = stripped("matmul")
    for guess in guesses(spec, "%0 = tt.get_program_id x : i32"):
        numbers = {name: value for name, value in guess.values.items() if not isinstance(value, dict)}
        assert all(numbers[name] % 16 == 0 for name in numbers if "D" in spec.attrs.get(name, ""))
        assert numbers["stride_am"] == numbers["stride_bk"] == ROOM > numbers["K"]
        assert guess.grid == (4,)


def test_an_odd_size_stays_odd_and_outer_strides_leave_room_for_matrices():
    signature = {"x": "*fp32", "n": "i32", "stride_b": "i32", "stride_m": "i32", "BLOCK": "constexpr"}
    spec = LaunchSpec("one", "kernel", signature=signature, constexprs={"BLOCK": 64})
    guess = next(guesses(spec, "tt.get_program_id y"))
    assert guess.values["n"] % 16 and guess.values["stride_b"] == ROOM and guess.values["stride_m"] == 1
    assert guess.grid == (1, 2)


def test_matrices_have_room_for_a_size_that_counts_their_rows():
    """Else the rows of one head would lie among those of the next, and its stores would be a race of the source."""
    signature = {"o": "*fp16", "stride_h": "i32", "stride_t": "i32", "T": "i32", "WINDOW": "constexpr"}
    spec = LaunchSpec("one", "kernel", signature=signature, constexprs={"WINDOW": 256})
    used = UsedStrides({name: frozenset("o") for name in ("stride_h", "stride_t")}, frozenset("o"))
    values = next(guesses(spec, "", used)).values
    assert values["stride_t"] >= values["T"] > ROOM and values["stride_h"] >= values["T"] * values["stride_t"]


def test_where_no_storage_lasts_tokens_may_be_many_and_heads_few():
    """`o + token * stride_t + head * stride_h`: rows of tokens times heads, of which no storage has as many as of both."""
    signature = {"o": "*fp16", "stride_t": "i32", "stride_h": "i32", "T": "i32"}
    used = UsedStrides({name: frozenset("o") for name in ("stride_t", "stride_h")}, frozenset("o"))
    *_, last = guesses(LaunchSpec("one", "kernel", signature=signature), "", used)
    assert last.values["o"]["tensor"]["storage"] > 2 * last.values["T"] * last.values["stride_t"]


def test_descriptors_of_images_are_not_guessed():
    spec = LaunchSpec("one", "kernel", signature={"x": "tensordesc_im2col<fp16[64, 64],input_rank=4>"})
    assert not list(guesses(spec, ""))


TUPLES = """
import triton
import triton.language as tl


@triton.jit
def k(tensors, strides, sizes, B: tl.constexpr):
    x_ptr, y_ptr = tensors
    row, o = tl.program_id(0), tl.arange(0, B)
    for start in range(0, sizes[1], B):
        inside = (row < sizes[0]) & (start + o < sizes[1])
        x = tl.load(x_ptr + row * strides[0] + start + o, mask=inside, other=0.0)
        tl.store(y_ptr + row * strides[0] + start + o, x * 2, mask=inside)
"""


def test_items_of_tuples_are_made_up_too(tmp_path: Path):
    source, wrong = tmp_path / "k.py", tmp_path / "wrong.py"
    source.write_text(TUPLES)
    wrong.write_text(TUPLES.replace("x * 2", "x * 3"))
    signature = {"tensors": ["*fp16", "*fp32"], "strides": ["i32"], "sizes": ["i32", "i32"], "B": "constexpr"}
    attrs = {"tensors": ["DS", "DS"], "strides": ["D"]}
    spec = LaunchSpec("k", "k", "", signature, {"B": 64}, attrs, {"num_warps": 1}, ())
    given = next(guesses(spec, "tt.get_program_id x")).values
    assert given["strides"][0] % 16 == 0 and [type(item) for item in given["tensors"]] == [dict, dict]
    sides = [source_stage(str(path), spec, TARGET) for path in (source, source, wrong)]
    assert [validate_pair(sides[0].text, side.text, spec).status for side in sides[1:]] == ["validated", "mismatch"]


ROWS = """
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, y_ptr, s_xb, s_xh, s_xd, s_yb, s_yh, s_yd, n, B: tl.constexpr):
    b, h, d = tl.program_id(0), tl.program_id(1), tl.arange(0, B)
    v = tl.load(x_ptr + b * s_xb + h * s_xh + d * s_xd, mask=d < n, other=0.0)
    tl.store(y_ptr + b * s_yb + h * s_yh + d * s_yd, v + 1, mask=d < n)
"""


def test_strides_that_are_only_used_as_such_leave_room_for_rows(tmp_path: Path):
    source = tmp_path / "k.py"
    source.write_text(ROWS)
    kinds = {n: "i32" for n in ("s_xb", "s_xh", "s_xd", "s_yb", "s_yh", "s_yd", "n")}
    signature = {
        "x_ptr": "*fp16",
        "y_ptr": "*fp16",
        **kinds,
        "s_xd": "constexpr",
        "s_yd": "constexpr",
        "B": "constexpr",
    }
    spec = LaunchSpec("k", "k", "", signature, {"s_xd": 1, "s_yd": 1, "B": 128}, {}, {"num_warps": 1}, (4, 8))
    side = source_stage(str(source), spec, TARGET)
    result = validate_pair(side.text, side.text, spec)
    assert result.status == "validated" and result.made_up["s_yb"] >= 8 * result.made_up["s_yh"]
    assert not [note for note in result.notes if note.startswith(RACE)]


def test_descriptors_are_made_up_too(tmp_path: Path):
    text = """
import triton
import triton.language as tl


@triton.jit
def k(x_desc, y_ptr, n, B: tl.constexpr):
    rows, cols = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, B)
    x = x_desc.load([tl.program_id(0) * B, 0])
    tl.store(y_ptr + rows[:, None] * B + cols[None, :], x.to(tl.float32), mask=rows[:, None] < n)
"""
    source, wrong = tmp_path / "k.py", tmp_path / "wrong.py"
    source.write_text(text)
    wrong.write_text(text.replace("x.to(tl.float32)", "x.to(tl.float32) + 1"))
    signature = {"x_desc": "tensordesc<fp16[32, 32]>", "y_ptr": "*fp32", "n": "i32", "B": "constexpr"}
    spec = LaunchSpec("k", "k", "", signature, {"B": 32}, {"y_ptr": "DS"}, {"num_warps": 1}, ())
    sides = [source_stage(str(path), spec, TARGET) for path in (source, source, wrong)]
    found = [validate_pair(sides[0].text, side.text, spec, source_names=side.names) for side in sides[1:]]
    assert [result.status for result in found] == ["validated", "mismatch"], found


SCATTERED = """
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, to_ptr, y_ptr, stride, n, B: tl.constexpr):
    row, o = tl.program_id(0), tl.arange(0, B)
    x = tl.load(x_ptr + row * stride + o, mask=o < n, other=0.0)
    tl.store(y_ptr + AT * stride + o, x, mask=o < n)
"""


@pytest.mark.parametrize(
    "at, races", [("tl.load(to_ptr + row)", False), ("tl.load(to_ptr + row) // 2", True), ("row // 2", True)]
)
def test_made_up_indices_make_no_race_of_a_scatter(tmp_path: Path, at: str, races: bool):
    source = tmp_path / "k.py"
    source.write_text(SCATTERED.replace("AT", at))
    signature = {"x_ptr": "*fp16", "to_ptr": "*i64", "y_ptr": "*fp16", "stride": "i32", "n": "i32", "B": "constexpr"}
    spec = LaunchSpec("k", "k", "", signature, {"B": 128}, {}, {"num_warps": 1}, (8,))
    side = source_stage(str(source), spec, TARGET)
    result = validate_pair(side.text, side.text, spec)
    assert result.status == "validated"
    assert any(note.startswith(RACE) for note in result.notes) == races


SEGMENTS = """
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, starts_ptr, y_ptr, n, B: tl.constexpr):
    row, o = tl.program_id(0), tl.arange(0, B)
    first = tl.load(starts_ptr + row)
    if tl.load(starts_ptr + row + 1) - first <= 0:
        return
    if first > 1:
        tl.store(y_ptr + row * B + o, tl.load(x_ptr + first * B + o))
"""


def test_starts_of_segments_are_made_up_where_others_are_of_no_use(tmp_path: Path):
    source, wrong = tmp_path / "k.py", tmp_path / "wrong.py"
    source.write_text(SEGMENTS)
    wrong.write_text(SEGMENTS.replace("first * B + o)", "first * B + o) + 1"))
    signature = {"x_ptr": "*fp16", "starts_ptr": "*i64", "y_ptr": "*fp16", "n": "i32", "B": "constexpr"}
    spec = LaunchSpec("k", "k", "", signature, {"B": 128}, {}, {"num_warps": 1}, (8,))
    sides = [source_stage(str(path), spec, TARGET) for path in (source, source, wrong)]
    assert [validate_pair(sides[0].text, side.text, spec).status for side in sides[1:]] == ["validated", "mismatch"]


HEADS = """import triton
import triton.language as tl


@triton.jit
def k(x_ptr, y_ptr, heads, kv_heads, n, B: tl.constexpr):
    at = tl.program_id(0)
    group = heads // kv_heads
    head = at % heads // group
    i = tl.arange(0, B)
    tl.store(y_ptr + at * n + i, tl.load(x_ptr + head * n + i, mask=i < n), mask=i < n)
"""


@pytest.mark.parametrize("divisible", ["", "D"])
def test_sizes_whose_quotient_divides_are_multiples(tmp_path: Path, divisible: str):
    (tmp_path / "m.py").write_text(HEADS)
    types = {"x_ptr": "*fp32", "y_ptr": "*fp32", "heads": "i32", "kv_heads": "i32", "n": "i32", "B": "constexpr"}
    attrs = {"x_ptr": "D", "y_ptr": "D", "kv_heads": divisible}
    spec = LaunchSpec("k", "k", str(tmp_path / "m.py"), types, {"B": 64}, attrs, {"num_warps": 4})
    stage = source_stage(spec.source, spec, TARGET)
    result = validate_pair(stage.text, stage.text, spec, source_names=stage.names, translated_names=stage.names)
    made = result.made_up
    assert result.status == "validated", result.reason
    assert made["heads"] > made["kv_heads"] > 1 and made["heads"] % made["kv_heads"] == 0
    assert made["kv_heads"] % 16 == 0 or not divisible
