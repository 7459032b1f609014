"""Asynchronous copies, tensor copies and barriers on the reference machine: each check passes a good kernel and finds a planted bug."""

from __future__ import annotations

import numpy as np
import pytest
from machine_harness import run_kernel
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna4, cdna5

from translator.validate.hazards import Hazard

X = np.arange(4096, dtype=np.float16).reshape(64, 64) % 97
TYPES = {"x_ptr": "*fp16", "out_ptr": "*fp16"}


def outcome(fn, target: str, types=TYPES, values=None, **constexprs):
    """The kinds of what was found, or the arrays."""
    values = values or {"x_ptr": X, "out_ptr": np.zeros((64, 64))}
    try:
        arrays, machine = run_kernel(fn, types, values, target=target, constexprs=constexprs)
    except Hazard as hazard:
        return hazard.kind
    return machine.findings[0].kind if machine.findings else arrays


@gluon.jit
def reuse(x_ptr, out_ptr, WAIT: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    T: gl.constexpr = gl.BlockedLayout([8, 1], [8, 8], [1, 4], [0, 1])
    S: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    o = gl.arange(0, 64, gl.SliceLayout(1, L))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, L))[None, :]
    smem = gl.allocate_shared_memory(gl.float16, [2, 64, 64], S)
    cdna4.async_copy.buffer_load_to_shared(smem.index(1), x_ptr, o)
    cdna4.async_copy.commit_group()
    cdna4.async_copy.buffer_load_to_shared(smem.index(0), x_ptr, o)
    cdna4.async_copy.commit_group()
    cdna4.async_copy.wait_group(1)
    x = smem.index(1).load(T)
    if WAIT:
        cdna4.async_copy.wait_group(0)
    # Its scratch takes the place of the slots, of which nothing is read any more.
    cdna4.buffer_store(gl.convert_layout(x, L), out_ptr, o)


def test_scratch_of_an_op_must_not_lie_where_a_copy_lands():
    np.testing.assert_array_equal(outcome(reuse, "gfx950", WAIT=True)["out_ptr"], X)
    assert outcome(reuse, "gfx950", WAIT=False) == "lds-reuse-in-flight"


@gluon.jit
def second_ring(x_ptr, out_ptr, WAIT: gl.constexpr, READ: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    S: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    o = gl.arange(0, 64, gl.SliceLayout(1, L))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, L))[None, :]
    first = gl.allocate_shared_memory(gl.float16, [1, 64, 64], S)
    cdna4.async_copy.buffer_load_to_shared(first.index(0), x_ptr, o)
    cdna4.async_copy.commit_group()
    if READ:
        cdna4.async_copy.wait_group(0)
        x = cdna4.async_copy.load_shared_relaxed(first.index(0), L)
        cdna4.buffer_store(x, out_ptr, o)
    if WAIT:
        cdna4.async_copy.wait_group(0)
    second = gl.allocate_shared_memory(gl.float16, [1, 64, 64], S)
    cdna4.async_copy.buffer_load_to_shared(second.index(0), x_ptr, o)
    cdna4.async_copy.commit_group()
    cdna4.async_copy.wait_group(0)
    cdna4.buffer_store(cdna4.async_copy.load_shared_relaxed(second.index(0), L), out_ptr, o)


@pytest.mark.parametrize(
    "wait, read, found",
    [(True, True, ""), (True, False, ""), (False, True, "lds-overwrite-read"), (False, False, "lds-reuse-in-flight")],
)
def test_an_allocation_in_the_place_of_another_needs_a_wait(wait: bool, read: bool, found: str):
    result = outcome(second_ring, "gfx950", WAIT=wait, READ=read)
    assert result == found if found else isinstance(result, dict)


@gluon.jit
def ends_early(x_ptr, out_ptr, WAIT: gl.constexpr, TENSOR: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    S: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[64, 8]], [64, 64], [1, 0])
    o = gl.arange(0, 64, gl.SliceLayout(1, L))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, L))[None, :]
    smem = gl.allocate_shared_memory(gl.float16, [64, 64], S)
    if TENSOR:
        cdna5.tdm.async_load(cdna5.tdm.make_tensor_descriptor(x_ptr, [64, 64], [64, 1], [64, 64], S), [0, 0], smem)
        if WAIT:
            cdna5.tdm.async_wait(0)
    else:
        cdna5.async_copy.global_to_shared(smem, x_ptr + o)
        cdna5.async_copy.commit_group()
        if WAIT:
            cdna5.async_copy.wait_group(0)


@pytest.mark.parametrize("tensor", [True, False], ids=["tensor", "pointers"])
def test_a_kernel_for_gfx1250_waits_for_its_copies_before_it_ends(tensor: bool):
    assert isinstance(outcome(ends_early, "gfx1250", WAIT=True, TENSOR=tensor), dict)
    assert outcome(ends_early, "gfx1250", WAIT=False, TENSOR=tensor) == "lds-load-unwaited"
