"""Arguments that are views of one storage: mistakes that only such inputs show, and sources that mean nothing with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.validate.test_adversarial import launch, run, tensor
from gluonize.judge.inputs.bind import place_tensors
from gluonize.judge.inputs.inputs import make_inputs
from gluonize.judge.inputs.overlaps import as_views, distances
from gluonize.judge.machine.memory.guarded import Memory

# Only one element of two is read through x and written through out: no call with one tensor for both shows an order.
BESIDE = """def kernel(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + 2 * i)
    y = tl.load(x_ptr + 2 * i) * 3.0
    tl.store(out_ptr + 2 * i, x * 2.0)
    tl.store(out_ptr + 2 * i + 4 * B, y)
"""
# A part behind what is read.
PART = """def kernel(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    y = tl.load(x_ptr + i) * 3.0
    tl.store(out_ptr + 256 + i, x * 2.0)
    tl.store(out_ptr + 4 * B + i, y)
"""
LATE = "    y = tl.load(x_ptr + {at}) * 3.0\n"
# In tiles of one program: what is stored lies before what is read next.
LOOP = """def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(0, n, B):
        x = tl.load(x_ptr + k + i, mask=k + i < n, other=0.0)
        tl.store(out_ptr + k + i, x + 1.0, mask=k + i < n)
"""
TWO = {"x_ptr": tensor(512), "out_ptr": tensor(512)}


def late(text: str, at: str) -> str:
    """The kernel with its second load behind the first store."""
    load, store = LATE.format(at=at), next(line for line in text.splitlines(True) if "tl.store" in line)
    assert load in text
    return text.replace(load, "").replace(store, store + load)


def unpromised(spec):
    return replace(spec, attrs={})


CASES = {
    "beside": (
        BESIDE.replace("2 * i + 4", "2 * i + 1 + 4").replace("+ 2 * i, x", "+ 2 * i + 1, x"),
        "2 * i",
        "1 element ",
    ),
    "row": (
        BESIDE.replace("2 * i + 4 * B", "31 * i + 18")
        .replace("out_ptr + 2 * i", "out_ptr + 31 * i + 16")
        .replace("2 * i", "31 * i"),
        "31 * i",
        "16 elements before",
    ),
    "half": (PART, "i", "256 elements before"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_load_behind_a_store_is_found_where_views_overlap(case: str, tmp_path: Path):
    text, at, variant = CASES[case]
    spec = unpromised(launch(TWO, {}))
    result = run(tmp_path, text, late(text, at), spec)
    assert result.status == "mismatch" and variant in result.variant and "in one storage" in result.variant, result
    result = run(tmp_path, text, text, spec)
    assert result.status == "validated" and any(variant in one for one in result.variants), result


def test_a_source_that_reads_what_it_stored_is_passed_over_with_the_reason(tmp_path: Path):
    """One element before: the tile that is stored is what the next tile begins with, or the other way about."""
    text = LOOP.replace("out_ptr + k", "out_ptr + 2 * B + k")
    result = run(tmp_path, text, text, launch(TWO | {"out_ptr": tensor(1024)}, {"n": 48}))
    assert result.status == "validated", result
    reasons = [why for variant, why in result.passed_over if "in one storage" in variant]
    assert reasons and all("a program reads what it has stored itself" in why for why in reasons), result.passed_over


def test_programs_that_overlap_in_one_tensor_are_run_in_both_orders(tmp_path: Path):
    """In order, no program reads what another one stored: each writes what the one before has read."""
    text = """def kernel(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i + 1))
"""
    result = run(tmp_path, text, text, launch(TWO, {}, (4,)))
    why = dict(result.passed_over)["out_ptr is x_ptr"]
    assert result.status == "validated" and "a program reads what another one stored in x_ptr" in why


def test_views_keep_to_promised_alignment():
    inputs = make_inputs(launch(TWO, {}))
    one, other = inputs.tensors()
    assert distances(launch(TWO, {}), one, other) == [4, 16, 256]
    assert distances(unpromised(launch(TWO, {})), one, other) == [1, 16, 256]


@pytest.mark.parametrize("distance", [-3, 5])
def test_views_share_what_both_reach(distance: int):
    inputs = make_inputs(launch(TWO, {}))
    x, out = inputs.tensors()
    shared = as_views(inputs, x, out, distance)
    memory = Memory()
    addresses = place_tensors(memory, shared)
    first, second = (addresses[id(view)] for view in shared.tensors())
    assert len(memory.buffers) == 1 and second - first == 4 * distance
    memory.store(np.array([second]), np.array([7.0], np.float32), None, "f32")
    assert memory.load(np.array([first + 4 * distance]), None, None, "f32", (1,)).tolist() == [7.0]
    # What x holds is what it held.
    held = memory.load(first + 4 * np.arange(512), None, None, "f32", (512,))
    expected = x.data.copy()
    if distance >= 0:
        expected[distance] = 7.0
    assert np.array_equal(held, expected)
