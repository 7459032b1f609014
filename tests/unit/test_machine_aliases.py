"""Shared memory reinterpreted as another type, shape or layout: the bytes are those that the layouts say."""

from __future__ import annotations

import numpy as np
import pytest
from machine_harness import run_kernel
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna4

from gluonize.judge.machine.hazards import Hazard, NotRunnable
from gluonize.judge.machine.memory.aliases import slot_offsets
from gluonize.trace.model.attributes import parse_attribute

X = np.arange(64 * 64, dtype=np.int16).reshape(64, 64)
TYPES = {"x_ptr": "*i16", "out_ptr": "*i16"}
PLAIN = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
SWIZZLED = gl.SwizzledSharedLayout(8, 2, 4, [1, 0])
PADDED = gl.PaddedSharedLayout.with_identity_for([[64, 8]], [64, 64], [1, 0])
ROW, COLUMN = np.indices((64, 64))


@gluon.jit
def as_bytes(x_ptr, out_ptr, S: gl.constexpr, SLOT: gl.constexpr, COUNT: gl.constexpr):
    """A tile stored with layout S and read back as a row of 16-bit words."""
    L: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    F: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    o = gl.arange(0, 64, gl.SliceLayout(1, L))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, L))[None, :]
    smem = gl.allocate_shared_memory(gl.int16, [2, 64, 64], S)
    smem.index(SLOT).store(gl.load(x_ptr + o))
    words = smem.index(SLOT).reinterpret(gl.int16, [COUNT], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    gl.store(out_ptr + gl.arange(0, COUNT, F), words.load(F))


@pytest.mark.parametrize(
    "layout, place",
    [
        (PLAIN, ROW * 64 + COLUMN),
        (SWIZZLED, ROW * 64 + (COLUMN // 8 ^ ROW // 2 % 4) * 8 + COLUMN % 8),
    ],
    ids=["plain", "swizzled"],
)
@pytest.mark.parametrize("slot", [0, 1])
def test_words_lie_where_the_layout_puts_them(layout, place, slot: int):
    constexprs = {"S": layout, "SLOT": slot, "COUNT": 4096}
    out = run_kernel(as_bytes, TYPES, {"x_ptr": X, "out_ptr": np.zeros(4096)}, constexprs=constexprs)[0]["out_ptr"]
    expected = np.zeros(4096, np.int16)
    expected[place] = X
    np.testing.assert_array_equal(out, expected)


@gluon.jit
def as_padded(x_ptr, out_ptr, S: gl.constexpr, T: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    o = gl.arange(0, 64, gl.SliceLayout(1, L))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, L))[None, :]
    smem = gl.allocate_shared_memory(gl.int16, [64, 64], S)
    smem.store(gl.load(x_ptr + o))
    gl.store(out_ptr + o, smem.reinterpret(gl.int16, [64, 64], T).load(L))


def test_padding_stays_where_it_is():
    columns = gl.PaddedSharedLayout.with_identity_for([[64, 8]], [64, 64], [0, 1])
    values, constexprs = {"x_ptr": X, "out_ptr": np.zeros((64, 64))}, {"S": PADDED, "T": columns}
    np.testing.assert_array_equal(run_kernel(as_padded, TYPES, values, constexprs=constexprs)[0]["out_ptr"], X.T)


def test_offsets_of_layouts_given_by_bases():
    linear = parse_attribute("#ttg.shared_linear<{offset = [[1, 0], [0, 1]]}, alignment = 16>")
    np.testing.assert_array_equal(slot_offsets(linear, (2, 2)), [[0, 2], [1, 3]])
    padded = parse_attribute("#ttg.padded_shared<[2:+1] {offset = [[0, 1], [1, 0]], block = []}>")
    np.testing.assert_array_equal(slot_offsets(padded, (2, 2)), [[0, 1], [3, 4]])
    rotating = parse_attribute("#ttg.amd_rotating_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [1, 0]}>")
    with pytest.raises(NotRunnable):
        slot_offsets(rotating, (2, 2))


@gluon.jit
def both_ways(x_ptr, out_ptr, WAIT: gl.constexpr):
    """A copy through the one type, a read and a store through the other, a read through the first."""
    L: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    H: gl.constexpr = gl.BlockedLayout([1, 4], [8, 8], [4, 1], [1, 0])
    S: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    o = gl.arange(0, 64, gl.SliceLayout(1, L))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, L))[None, :]
    smem = gl.allocate_shared_memory(gl.int16, [64, 64], S)
    cdna4.async_copy.buffer_load_to_shared(smem, x_ptr, o)
    cdna4.async_copy.commit_group()
    if WAIT:
        cdna4.async_copy.wait_group(0)
    wide = smem.reinterpret(gl.int32, [64, 32], S)
    wide.store(wide.load(H) ^ 0x00010001)
    cdna4.async_copy.wait_group(0)
    gl.store(out_ptr + o, smem.load(L))


def test_stores_through_one_type_are_read_through_the_other():
    out = run_kernel(both_ways, TYPES, {"x_ptr": X, "out_ptr": np.zeros((64, 64))}, constexprs={"WAIT": True})[0]
    np.testing.assert_array_equal(out["out_ptr"], X ^ 1)


def test_a_copy_under_way_is_seen_through_the_other_type():
    with pytest.raises(Hazard) as raised:
        run_kernel(both_ways, TYPES, {"x_ptr": X, "out_ptr": np.zeros((64, 64))}, constexprs={"WAIT": False})
    assert raised.value.kind == "lds-in-flight"
