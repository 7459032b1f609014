"""Offsets near 2^31 and beyond 2^32 in storage that is not there: mistakes that only such inputs show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.validate.test_adversarial import B, launch, run, tensor
from gluonize.judge.inputs.bind import place_tensors
from gluonize.judge.inputs.enlarged import argument_knob
from gluonize.judge.inputs.inputs import make_inputs
from gluonize.judge.machine.hazards import Hazard, NotRunnable
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.memory.sparse import MOST, PAGE, Pages
from gluonize.judge.verdict.compare import compare
from gluonize.judge.verdict.far_offsets import BEYOND, PROMISED, far, in_large_storage

ROWS = """def kernel(x_ptr, out_ptr, n, stride, B: tl.constexpr):
    row = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + row * stride, mask=row < n, other=0.0)
    tl.store(out_ptr + row, x, mask=row < n)
"""
WIDE = ROWS.replace("row * stride", "row.to(tl.int64) * stride")
FLAT = """def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0), mask=i < n)
"""
GATHER = """def kernel(x_ptr, index_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + tl.load(index_ptr + i) * 4))
"""
TWO = {"x_ptr": tensor(512), "out_ptr": tensor(30, storage=512)}
INDICES = {"x_ptr": tensor(512), "index_ptr": tensor(B, "int32", range=[0, 99]), "out_ptr": tensor(B)}
STRIDED = launch(TWO, {"n": 30, "stride": 4}, (2,))
UNPROMISED = replace(STRIDED, attrs={})

# source, what is said there, what the other says, launch, how the variant that tells them apart begins and ends
CASES = {
    "last byte of what is promised": (ROWS, "row * stride", "row * stride * 8 // 8", STRIDED, "stride = 185", "gibibytes"),
    "one element too far": (ROWS, "row * stride", "row * stride * 4 // 4", STRIDED, "stride = 18512791,", "in storage of gibibytes"),
    "most lanes masked": (
        ROWS, "row * stride", "row * stride + (tl.min(row * stride, 0) < 0).to(tl.int32)",
        replace(STRIDED, constexprs={"B": 32}, grid=(1,)), "stride = ", "small sizes, in storage of gibibytes",
    ),
    "beyond 32 bits": (WIDE, "row.to(tl.int64) * stride", "(row.to(tl.int64) * stride).to(tl.uint32).to(tl.int64)", UNPROMISED, "stride = 148", "gibibytes"),
    "more than 31 bits": (WIDE, "row.to(tl.int64) * stride", "row * stride", UNPROMISED, "stride = 148", "gibibytes"),
    "a large grid": (FLAT, "tl.program_id(0) * B", "(tl.program_id(0) & 0xFFFFF) * B", launch(TWO, {"n": 30}, (2,)), "n = 536870", "gibibytes"),
    "indices in memory": (GATHER, "* 4)", "* 32 // 8)", launch(INDICES, {}), "index_ptr up to 134217727", "gibibytes"),
}  # fmt: skip


def refuses_negative(inputs) -> str:
    return "stride is negative" if inputs.arguments.get("stride", 0) < 0 else ""


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_found_far_away(case: str, tmp_path: Path):
    text, before, after, spec, starts, ends = CASES[case]
    assert text.count(before) == 1
    result = run(tmp_path, text, text.replace(before, after), spec, refusal=refuses_negative)
    assert result.status in ("mismatch", "hazard"), (result.variants, result.passed_over)
    assert result.variant.startswith(starts) and result.variant.endswith(ends), result.variant
    result = run(tmp_path, text, text, spec, refusal=refuses_negative)
    assert result.status == "validated" and any(one.endswith("gibibytes") for one in result.variants), result


def refuses_large(inputs) -> str:
    return "storage exceeds 2 GiB" if any(t.storage > PROMISED for t in inputs.tensors()) else ""


def test_sizes_with_which_the_source_leaves_its_tensors_are_no_start(tmp_path: Path):
    """With few rows it reads far away, where larger inputs have something."""
    text = ROWS.replace("row * stride,", "row * stride + (n < 16).to(tl.int32) * 4096,")
    result = run(tmp_path, text, text, STRIDED, refusal=refuses_negative)
    assert result.status == "validated" and any(one.endswith("gibibytes") for one in result.variants), result


def test_storage_that_is_larger_than_promised_is_for_the_launch_check_to_refuse(tmp_path: Path):
    text, before, after, spec, variant, _ = CASES["one element too far"]
    result = run(tmp_path, text, text.replace(before, after), spec, refusal=refuses_large)
    (why,) = (why for name, why in result.passed_over if name.startswith(variant))
    assert (
        result.status == "validated"
        and why == "the launch check of the translation refuses them: storage exceeds 2 GiB"
    )


def test_narrow_offsets_of_a_wide_tensor_are_tried_as_far_as_they_go(tmp_path: Path):
    """Beyond 2^31 elements the source's own offsets wrap around, so those are left out."""
    result = run(tmp_path, ROWS, ROWS, UNPROMISED, refusal=refuses_negative)
    found = [int(v.split()[2].rstrip(",")) for v in result.variants if v.startswith("stride") and "small" not in v]
    assert (2**31 - 1) // 29 in found, result.variants
    assert any(
        "out-of-bounds" in why for name, why in result.passed_over if name.startswith("stride")
    ), result.passed_over


def far_memory(extent: int, count: int = 1, recording: bool = False):
    """(memories of one large tensor, the address of its first element)"""
    inputs = in_large_storage(make_inputs(launch({"x_ptr": tensor(100)}, {})), {"x_ptr": extent})
    memories = [Memory(recording=recording) for _ in range(count)]
    addresses = [next(iter(place_tensors(memory, inputs).values())) for memory in memories]
    assert len(set(addresses)) == 1
    return memories, addresses[0]


def test_a_large_storage_takes_what_is_touched_of_it():
    (memory,), x = far_memory(BEYOND)
    at = x + 4 * np.array([0, 1 << 29, (1 << 30) - 1])
    assert memory.load(at, None, None, "f32", (3,)).size == 3 and len(memory.buffers[0].data) == 3 * PAGE
    memory.store(at, np.float32([1, 2, 3]), None, "f32")
    assert memory.load(at[::-1], None, None, "f32", (3,)).tolist() == [3, 2, 1]
    with pytest.raises(Hazard, match=r"leave x_ptr \(1073741824 x f32\); the first at element 1073741824"):
        memory.load(np.array([x + BEYOND]), None, None, "f32", (1,))
    with pytest.raises(Hazard, match="leave x_ptr"):
        memory.load(np.array([x - 4]), None, None, "f32", (1,))


def test_rows_of_a_large_storage_differ():
    (memory,), x = far_memory(BEYOND)
    rows = memory.load(x + (np.arange(64)[:, None] << 22) + 4 * np.arange(8), None, None, "f32", (64, 8))
    assert len(np.unique(rows, axis=0)) > 32


def test_memories_of_the_same_inputs_hold_the_same_whoever_touches_it_first():
    (one, other), x = far_memory(BEYOND, 2, recording=True)
    near, away = np.array([x + 8]), np.array([x + BEYOND - 4])
    a = one.load(np.concatenate([near, away]), None, None, "f32", (2,))
    b = other.load(np.concatenate([away, near]), None, None, "f32", (2,))
    assert a.tolist() == b[::-1].tolist()
    assert one.buffers[0].used() == other.buffers[0].used() == BEYOND


def test_a_store_far_away_is_compared():
    (one, other), x = far_memory(BEYOND, 2)
    for memory, at in ((one, 1 << 20), (other, 1 << 20), (other, 1 << 31)):
        memory.store(np.array([x + at]), np.float32([9]), None, "f32")
    (found,) = compare(one, other, 1, "f32")
    assert (found.compared, found.wrong, found.first) == (2, 1, 1 << 29)


def test_what_the_source_never_read_is_not_a_number_on_the_other_side():
    inputs = in_large_storage(make_inputs(launch({"x_ptr": tensor(100)}, {})), {"x_ptr": BEYOND})
    source = Memory(recording=True)
    (x,) = place_tensors(source, inputs).values()
    source.load(np.array([x + (1 << 31)]), None, None, "f32", (1,))
    other = Memory()
    place_tensors(other, inputs, source)
    values = other.load(x + np.array([1 << 31, (1 << 31) + 4, 1 << 20]), None, None, "f32", (3,))
    assert np.isfinite(values).tolist() == [True, False, False]


def test_too_many_pages_are_no_hazard_and_no_number():
    pages = Pages(1 << 40, np.zeros(4, np.float32))
    with pytest.raises(NotRunnable, match="more than 32 MiB of a large storage are used"):
        pages.places(np.arange(MOST + 1) * PAGE)


def test_nothing_far_away_is_tried_where_it_is_not_known_what_is_refused(tmp_path: Path):
    result = run(tmp_path, ROWS, ROWS, STRIDED)
    assert not [variant for variant, _ in result.passed_over if "gibibytes" in variant]
    assert result.variants and not [variant for variant in result.variants if "gibibytes" in variant]


@pytest.mark.slow
def test_a_launch_of_gibibytes_of_its_own_is_validated_and_a_mistake_in_its_last_program_is_found(tmp_path: Path):
    """Row offsets in 32 bits are right in the first programs of such a launch and wrong in its last."""
    text = """def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    tl.store(out_ptr + row * B + i, tl.load(x_ptr + row.to(tl.int64) * n + i) * 2.0)
"""
    count, size = 1 << 16, 40_000
    x = {"dtype": "float32", "shape": [count, size], "stride": [size, 1], "storage": count * size, "offset": 0}
    spec = launch({"x_ptr": {"tensor": x}, "out_ptr": tensor(count * B)}, {"n": size}, (count,))
    spec = replace(spec, attrs={"x_ptr": "D", "out_ptr": "DS"})
    result = run(tmp_path, text, text, spec)
    assert result.status == "validated" and result.programs >= 2, result
    other = run(tmp_path, text, text.replace("row.to(tl.int64) * n", "row * n"), spec)
    assert other.status in ("mismatch", "hazard") and other.variant == "", other


def test_a_grid_that_is_large_already_grows_no_further_than_a_launch_may(tmp_path: Path):
    """4097 times such a grid has more programs than 31 bits count."""
    count = (1 << 29) - 1024
    x = {"dtype": "float32", "shape": [count], "stride": [1], "storage": count, "offset": 0}
    spec = launch({"x_ptr": {"tensor": x}, "out_ptr": {"tensor": x}}, {"n": count}, (count // 1024,))
    spec = replace(spec, constexprs={"B": 1024})
    result = run(tmp_path, FLAT, FLAT, spec, refusal=refuses_large)
    assert result.status == "validated", result


class Reaching:
    """A source that can be run with large inputs and with no others."""

    def reach(self, inputs) -> dict[str, int]:
        if "gibibytes" not in inputs.variant:
            raise NotRunnable("tt.load", "with these sizes")
        return {"x_ptr": 1 << 20}


def test_nothing_far_away_is_tried_where_the_source_cannot_be_run_with_what_it_has():
    inputs = make_inputs(STRIDED)
    knob = argument_knob(STRIDED, "stride")
    assert not list(far(STRIDED, inputs, Reaching(), [replace(knob, now=inputs.arguments["stride"])], ()))
