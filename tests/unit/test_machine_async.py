"""Asynchronous copies, tensor copies and barriers on the reference machine: each check passes a good kernel and finds a planted bug."""

from __future__ import annotations

import numpy as np
import pytest
from machine_harness import run_kernel
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna4, cdna5

from gluonize.judge.machine.hazards import Hazard

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
def ring_of_each_tile(x_ptr, out_ptr, BARRIER: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    S: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    o = gl.arange(0, 64, gl.SliceLayout(1, L))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, L))[None, :]
    for tile in range(2):
        smem = gl.allocate_shared_memory(gl.float16, [1, 64, 64], S)
        cdna4.async_copy.buffer_load_to_shared(smem.index(0), x_ptr, o)
        cdna4.async_copy.commit_group()
        cdna4.async_copy.wait_group(0)
        cdna4.buffer_store(cdna4.async_copy.load_shared_relaxed(smem.index(0), L), out_ptr, o)
        if BARRIER:
            gl.barrier()


def test_an_allocation_in_a_loop_is_that_of_the_last_iteration():
    """Warps that are slower may read it still, when the first fills it again."""
    assert isinstance(outcome(ring_of_each_tile, "gfx950", BARRIER=True), dict)
    assert outcome(ring_of_each_tile, "gfx950", BARRIER=False) == "lds-overwrite-read"


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


@gluon.jit
def pipeline(x_ptr, out_ptr, n, EARLY: gl.constexpr, DEPTH: gl.constexpr):
    """One stage copies and reads, the other computes. `EARLY`: the wait stands right before the stage that reads."""
    L: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    S: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    o = gl.arange(0, 64, gl.SliceLayout(1, L))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, L))[None, :]
    smem = gl.allocate_shared_memory(gl.float16, [DEPTH, 64, 64], S)
    cdna4.async_copy.buffer_load_to_shared(smem.index(0), x_ptr, o)
    cdna4.async_copy.commit_group()
    cdna4.async_copy.wait_group(0)
    acc = gl.zeros([64, 64], gl.float16, L)
    for k in range(n):
        if EARLY:
            cdna4.async_copy.wait_group(0)
        with gl.amd.warp_pipeline_stage("memory"):
            x = smem.index(k % DEPTH).load(L)
            cdna4.async_copy.buffer_load_to_shared(smem.index((k + 1) % DEPTH), x_ptr, o)
            cdna4.async_copy.commit_group()
        if not EARLY:
            cdna4.async_copy.wait_group(0)
        with gl.amd.warp_pipeline_stage("compute"):
            acc += x
    cdna4.async_copy.wait_group(0)
    cdna4.buffer_store(acc, out_ptr, o)


def test_a_wait_in_a_warp_pipeline_covers_the_stage_after_the_next():
    values = {"x_ptr": X, "out_ptr": np.zeros((64, 64)), "n": 5}
    types = TYPES | {"n": "i32"}
    good = outcome(pipeline, "gfx950", types, values, EARLY=False, DEPTH=2)
    np.testing.assert_array_equal(good["out_ptr"], 5 * X)
    assert outcome(pipeline, "gfx950", types, values, EARLY=True, DEPTH=2) == "pipeline-stage"


@gluon.jit
def refill(x_ptr, out_ptr, n, STAGES: gl.constexpr):
    """A slot is read in the first stage and filled in the one `STAGES` behind it."""
    L: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    S: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    o = gl.arange(0, 64, gl.SliceLayout(1, L))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, L))[None, :]
    smem = gl.allocate_shared_memory(gl.float16, [1, 64, 64], S)
    cdna4.async_copy.buffer_load_to_shared(smem.index(0), x_ptr, o)
    cdna4.async_copy.commit_group()
    cdna4.async_copy.wait_group(0)
    acc = gl.zeros([64, 64], gl.float16, L)
    for k in range(n):
        with gl.amd.warp_pipeline_stage("read"):
            x = smem.index(0).load(L)
        with gl.amd.warp_pipeline_stage("one"):
            acc += x
            if STAGES == 1:
                cdna4.async_copy.buffer_load_to_shared(smem.index(0), x_ptr, o)
                cdna4.async_copy.commit_group()
        with gl.amd.warp_pipeline_stage("two"):
            acc += x
            if STAGES == 2:
                cdna4.async_copy.buffer_load_to_shared(smem.index(0), x_ptr, o)
                cdna4.async_copy.commit_group()
        cdna4.async_copy.wait_group(0)
        with gl.amd.warp_pipeline_stage("three"):
            acc += x
    cdna4.buffer_store(acc, out_ptr, o)


def test_a_slot_in_a_warp_pipeline_is_free_two_stages_after_its_read():
    values = {"x_ptr": X, "out_ptr": np.zeros((64, 64)), "n": 3}
    types = TYPES | {"n": "i32"}
    assert isinstance(outcome(refill, "gfx950", types, values, STAGES=2), dict)
    assert outcome(refill, "gfx950", types, values, STAGES=1) == "pipeline-stage"


@gluon.jit
def producer(x_ptr, smem, bar, done, L: gl.constexpr, COUNT: gl.constexpr):
    o = gl.arange(0, 64, gl.SliceLayout(1, L))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, L))[None, :]
    smem.store(gl.load(x_ptr + o))
    cdna5.mbarrier.arrive(bar, count=COUNT)
    cdna5.mbarrier.wait(done, 0)
    smem.store(gl.load(x_ptr + o) * 0)


@gluon.jit
def consumer(out_ptr, smem, bar, done, L: gl.constexpr, WAIT: gl.constexpr, LATE: gl.constexpr):
    o = gl.arange(0, 64, gl.SliceLayout(1, L))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, L))[None, :]
    if WAIT:
        cdna5.mbarrier.wait(bar, 0)
    if LATE:
        cdna5.mbarrier.arrive(done)
    gl.store(out_ptr + o, smem.load(L))
    if not LATE:
        cdna5.mbarrier.arrive(done)


@gluon.jit
def handshake(x_ptr, out_ptr, ARRIVALS: gl.constexpr, COUNT: gl.constexpr, WAIT: gl.constexpr, LATE: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    smem = gl.allocate_shared_memory(gl.float16, [64, 64], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    bar = gl.allocate_shared_memory(gl.int64, [1], cdna5.mbarrier.MBarrierLayout())
    done = gl.allocate_shared_memory(gl.int64, [1], cdna5.mbarrier.MBarrierLayout())
    cdna5.mbarrier.init(bar, ARRIVALS)
    cdna5.mbarrier.init(done, 128)
    gl.barrier()
    gl.warp_specialize(
        [(consumer, (out_ptr, smem, bar, done, L, WAIT, LATE)), (producer, (x_ptr, smem, bar, done, L, COUNT))],
        [4],
        [64],
    )


@pytest.mark.parametrize(
    "arrivals, count, wait, late, found",
    [
        (128, 1, True, False, ""),
        (256, 2, True, False, ""),
        (4, 1, True, False, "mbarrier-underflow"),
        (256, 1, True, False, "deadlock"),
        (128, 1, False, False, "lds-uninitialised"),
        (128, 1, True, True, "lds-race"),
    ],
)
def test_partitions_hand_over_shared_memory(arrivals: int, count: int, wait: bool, late: bool, found: str):
    result = outcome(handshake, "gfx1250", ARRIVALS=arrivals, COUNT=count, WAIT=wait, LATE=late)
    assert result == found if found else isinstance(result, dict)


@gluon.jit
def signals(x_ptr, out_ptr, phase, ARRIVALS: gl.constexpr, ARRIVE: gl.constexpr, AGAIN: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    S: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[64, 8]], [64, 64], [1, 0])
    o = gl.arange(0, 64, gl.SliceLayout(1, L))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, L))[None, :]
    smem = gl.allocate_shared_memory(gl.float16, [2, 64, 64], S)
    bar = gl.allocate_shared_memory(gl.int64, [1], cdna5.mbarrier.MBarrierLayout())
    cdna5.mbarrier.init(bar, ARRIVALS)
    gl.barrier()
    cdna5.async_copy.global_to_shared(smem.index(0), x_ptr + o)
    if ARRIVE:
        cdna5.async_copy.mbarrier_arrive(bar)
        if AGAIN:
            cdna5.mbarrier.init(bar, ARRIVALS)
        cdna5.mbarrier.wait(bar, phase)
    x = smem.index(0).load(L)
    d = cdna5.tdm.make_tensor_descriptor(x_ptr, [64, 64], [64, 1], [32, 64], S)
    cdna5.tdm.prefetch(d, [0, 0])
    low = smem.index(1).slice(0, 32, 0)
    high = smem.index(1).slice(32, 32, 0)
    below = cdna5.tdm.update_tensor_descriptor(d, add_offsets=[32, 0], clamp_bounds=True)
    cdna5.tdm.async_load_fused(((d, low, 3), (below, high, 12)))
    cdna5.tdm.async_wait(0)
    gl.store(out_ptr + o, x + smem.index(1).load(L))


@pytest.mark.parametrize(
    "arrivals, arrive, phase, again, found",
    [
        (128, True, 0, False, ""),
        (128, False, 0, False, "lds-in-flight"),
        (64, True, 0, False, "mbarrier-underflow"),
        (129, True, 0, False, "deadlock"),
        (128, True, 1, False, "deadlock"),
        (128, True, 2, False, "mbarrier-phase"),
        (128, True, 0, True, "mbarrier-reinitialised"),
    ],
)
def test_copies_that_arrive_at_a_barrier_and_fused_copies(
    arrivals: int, arrive: bool, phase: int, again: bool, found: str
):
    values = {"x_ptr": X, "out_ptr": np.zeros((64, 64)), "phase": phase}
    result = outcome(
        signals, "gfx1250", TYPES | {"phase": "i32"}, values, ARRIVALS=arrivals, ARRIVE=arrive, AGAIN=again
    )
    if found:
        assert result == found
    else:
        np.testing.assert_array_equal(result["out_ptr"], 2 * X)


@gluon.jit
def into_a_slot(x_ptr, out_ptr, COLUMNS: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    S: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    o = gl.arange(0, 64, gl.SliceLayout(1, L))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, L))[None, :]
    smem = gl.allocate_shared_memory(gl.float16, [1, 64, COLUMNS], S)
    cdna4.async_copy.buffer_load_to_shared(smem.index(0), x_ptr, o)
    cdna4.async_copy.commit_group()
    cdna4.async_copy.wait_group(0)
    n = gl.arange(0, 64, gl.SliceLayout(1, L))[:, None] * 64 + gl.arange(0, COLUMNS, gl.SliceLayout(0, L))[None, :]
    cdna4.buffer_store(smem.index(0).load(L), out_ptr, n)


def test_a_tile_must_fit_its_slot():
    """The compiler lets a copy of another shape through."""
    np.testing.assert_array_equal(outcome(into_a_slot, "gfx950", COLUMNS=64)["out_ptr"], X)
    assert outcome(into_a_slot, "gfx950", COLUMNS=32) == "lds-index"
