"""Each hazard of kernels for NVIDIA GPUs: found where it is planted, not found in the kernel without it."""

from __future__ import annotations

import numpy as np
import pytest
from nvidia_machine import BLACKWELL, HOPPER, Flat, Tiles, hazard_of, run
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

N = 64
SCHEDULES = ("forward", "backward", "alternating")
rng = np.random.default_rng(1)


def tile(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((N, N)).astype(np.float16)


def two(**swizzle) -> dict:
    return {"a": Tiles(tile(1), (N, N), **swizzle), "c": Tiles(np.zeros((N, N)), (N, N), **swizzle)}


# Copies ------------------------------------------------------------------------------------------------------------------


@gluon.jit
def copies(
    a, c, WAIT: gl.constexpr, PHASE: gl.constexpr, BYTES: gl.constexpr, AGAIN: gl.constexpr, STORE_WAIT: gl.constexpr,
    INVALIDATE: gl.constexpr, REFILL: gl.constexpr,
):  # fmt: skip
    layout: gl.constexpr = gl.BlockedLayout([1, 2], [1, 32], [4, 1], [1, 0])
    x = gl.allocate_shared_memory(gl.float16, [2, 64, 64], a.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, BYTES)
    tma.async_load(a, [0, 0], bar, x.index(0))
    tma.async_load(a, [0, 0], bar, x.index(1))
    if REFILL:
        tma.async_load(a, [0, 0], bar, x.index(1))
    if INVALIDATE:
        mbarrier.invalidate(bar)
    if WAIT:
        mbarrier.wait(bar, PHASE)
    if AGAIN:
        mbarrier.wait(bar, PHASE ^ 1)
    value = x.index(0).load(layout) + x.index(1).load(layout)
    y = gl.allocate_shared_memory(gl.float16, [64, 64], c.layout)
    y.store(value)
    fence_async_shared()
    tma.async_store(c, [0, 0], y)
    if STORE_WAIT:
        tma.store_wait(0)
    y.store(value * 2)


RIGHT = {
    "WAIT": True, "PHASE": 0, "BYTES": 2 * N * N * 2, "AGAIN": False, "STORE_WAIT": True, "INVALIDATE": False, "REFILL": False,
}  # fmt: skip
COPIES = {
    "": {},
    "read before the wait": ("lds-in-flight", {"WAIT": False}),
    "waits for the other phase": ("deadlock", {"PHASE": 1}),
    "expects half of the bytes": ("lds-in-flight", {"BYTES": N * N * 2}),
    "expects more bytes than come": ("deadlock", {"BYTES": 3 * N * N * 2}),
    "expects a part of a copy": ("mbarrier-bytes", {"BYTES": N * N}),
    "a phase that nobody completes": ("deadlock", {"AGAIN": True}),
    "overwrites what a store still reads": ("lds-overwrite-source", {"STORE_WAIT": False}),
    "fills a slot that is being filled": ("lds-overwrite-in-flight", {"REFILL": True}),
}


@pytest.mark.parametrize("what", COPIES)
def test_copies(what: str):
    kind, changed = COPIES[what] or ("", {})
    assert hazard_of(copies, two(), RIGHT | changed)[0] == kind


def test_a_barrier_that_is_invalidated_in_use():
    assert hazard_of(copies, two(), RIGHT | {"INVALIDATE": True})[0] == "mbarrier-invalidated"


@gluon.jit
def unwaited_bytes(a, ROUNDS: gl.constexpr):
    x = gl.allocate_shared_memory(gl.float16, [64, 64], a.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    for _ in gl.static_range(ROUNDS):
        tma.async_load(a, [0, 0], bar, x)
        if ROUNDS == 1:
            mbarrier.expect(bar, a.nbytes_per_cta)
            mbarrier.wait(bar, 0)


def test_bytes_that_nothing_expects():
    array = {"a": Tiles(tile(), (N, N))}
    assert hazard_of(unwaited_bytes, array, {"ROUNDS": 1})[0] == ""
    kind, message = hazard_of(unwaited_bytes, array | {}, {"ROUNDS": 2})
    assert kind == "lds-overwrite-in-flight", message


@gluon.jit
def forgotten(a):
    x = gl.allocate_shared_memory(gl.float16, [64, 64], a.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    tma.async_load(a, [0, 0], bar, x)


def test_a_copy_without_an_expectation():
    kind, message = hazard_of(forgotten, {"a": Tiles(tile(), (N, N))})
    assert kind == "mbarrier-bytes" and f"{N * N * 2} bytes that nothing expects" in message


# Products ----------------------------------------------------------------------------------------------------------------


@gluon.jit
def hopper_product(a, out, RESULT_WAIT: gl.constexpr, OPERAND_WAIT: gl.constexpr):
    acc_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    x = gl.allocate_shared_memory(gl.float16, [64, 64], a.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, a.nbytes_per_cta)
    tma.async_load(a, [0, 0], bar, x)
    mbarrier.wait(bar, 0)
    acc = gl.zeros([64, 64], gl.float32, acc_layout)
    acc = warpgroup_mma(x, x, acc, is_async=True)
    acc = warpgroup_mma(x, x, acc, is_async=True)
    acc = warpgroup_mma_wait(0 if RESULT_WAIT else 1, deps=[acc])
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, acc_layout))[:, None]
    columns = gl.arange(0, 64, layout=gl.SliceLayout(0, acc_layout))[None, :]
    if OPERAND_WAIT:
        gl.store(out + rows * 64 + columns, acc)
    else:
        x.store(gl.full([64, 64], 0, gl.float16, acc_layout))


def test_products_of_warp_groups():
    def found(result: bool, operand: bool) -> str:
        arguments = {"a": Tiles(tile(), (N, N)), "out": Flat(np.zeros((N, N)), "fp32")}
        return hazard_of(hopper_product, arguments, {"RESULT_WAIT": result, "OPERAND_WAIT": operand})[0]

    assert found(True, True) == found(True, False) == ""
    assert found(False, True) == "wgmma-unwaited"
    assert found(False, False) == "lds-overwrite-source"


@gluon.jit
def blackwell_product(a, out, RESULT_WAIT: gl.constexpr, COMMIT: gl.constexpr, OPERAND_WAIT: gl.constexpr):
    acc_layout: gl.constexpr = blackwell.TensorMemoryLayout([64, 64], col_stride=1)
    x = gl.allocate_shared_memory(gl.float16, [64, 64], a.layout)
    acc = blackwell.allocate_tensor_memory(gl.float32, [64, 64], acc_layout)
    bars = mbarrier.allocate_mbarrier(batch=2)
    for i in gl.static_range(2):
        mbarrier.init(bars.index(i), count=1)
    mbarrier.expect(bars.index(0), a.nbytes_per_cta)
    tma.async_load(a, [0, 0], bars.index(0), x)
    mbarrier.wait(bars.index(0), 0)
    blackwell.tcgen05_mma(x, x, acc, use_acc=False)
    blackwell.tcgen05_mma(x, x, acc)
    if COMMIT:
        blackwell.tcgen05_commit(bars.index(1))
    if not OPERAND_WAIT:
        tma.async_load(a, [0, 0], bars.index(0), x)
    if RESULT_WAIT:
        mbarrier.wait(bars.index(1), 0)
    value = acc.load()
    layout: gl.constexpr = value.type.layout
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, layout))[:, None]
    columns = gl.arange(0, 64, layout=gl.SliceLayout(0, layout))[None, :]
    gl.store(out + rows * 64 + columns, value)


def test_products_of_the_tensor_core():
    def found(result: bool, commit: bool, operand: bool) -> str:
        arguments = {"a": Tiles(tile(), (N, N)), "out": Flat(np.zeros((N, N)), "fp32")}
        wanted = {"RESULT_WAIT": result, "COMMIT": commit, "OPERAND_WAIT": operand}
        return hazard_of(blackwell_product, arguments, wanted, target=BLACKWELL)[0]

    assert found(True, True, True) == ""
    assert found(False, True, True) == "lds-in-flight"
    assert found(True, False, True) == "deadlock"
    assert found(True, True, False) == "lds-overwrite-source"


# Partitions --------------------------------------------------------------------------------------------------------------


@gluon.jit
def fill(a, slots, full, empty, STEPS: gl.constexpr, WAIT: gl.constexpr, SLOTS: gl.constexpr):
    for k in range(STEPS):
        slot = k % SLOTS
        if WAIT:
            mbarrier.wait(empty.index(slot), ((k // SLOTS) & 1) ^ 1)
        mbarrier.expect(full.index(slot), a.nbytes_per_cta)
        tma.async_load(a, [0, 0], full.index(slot), slots.index(slot))


@gluon.jit
def add_up(c, slots, full, empty, STEPS: gl.constexpr, WAIT: gl.constexpr, EARLY: gl.constexpr, ARRIVE: gl.constexpr,
           SLOTS: gl.constexpr, FENCE: gl.constexpr, out, stored):  # fmt: skip
    layout: gl.constexpr = gl.BlockedLayout([1, 2], [1, 32], [4, 1], [1, 0])
    total = gl.zeros([64, 64], gl.float16, layout)
    for k in range(STEPS):
        slot = k % SLOTS
        if WAIT:
            mbarrier.wait(full.index(slot), (k // SLOTS) & 1)
        if EARLY:
            mbarrier.arrive(empty.index(slot), count=1)
        total += slots.index(slot).load(layout)
        if ARRIVE and not EARLY:
            mbarrier.arrive(empty.index(slot), count=1)
    out.store(total)
    if FENCE:
        fence_async_shared()
    mbarrier.arrive(stored, count=1)


@gluon.jit
def write_back(c, out, stored):
    mbarrier.wait(stored, 0)
    tma.async_store(c, [0, 0], out)
    tma.store_wait(0)


@gluon.jit
def specialized(
    a, c, STEPS: gl.constexpr, PRODUCER_WAIT: gl.constexpr, CONSUMER_WAIT: gl.constexpr, EARLY: gl.constexpr,
    ARRIVE: gl.constexpr, FENCE: gl.constexpr, SLOTS: gl.constexpr, COUNT: gl.constexpr,
):  # fmt: skip
    slots = gl.allocate_shared_memory(gl.float16, [SLOTS, 64, 64], a.layout)
    out = gl.allocate_shared_memory(gl.float16, [64, 64], c.layout)
    full, empty = mbarrier.allocate_mbarrier(batch=SLOTS), mbarrier.allocate_mbarrier(batch=SLOTS)
    stored = mbarrier.allocate_mbarrier()
    for i in gl.static_range(SLOTS):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=COUNT)
    mbarrier.init(stored, count=1)
    gl.warp_specialize(
        [
            (add_up, (c, slots, full, empty, STEPS, CONSUMER_WAIT, EARLY, ARRIVE, SLOTS, FENCE, out, stored)),
            (fill, (a, slots, full, empty, STEPS, PRODUCER_WAIT, SLOTS)),
            (write_back, (c, out, stored)),
        ],
        [1, 1],
        [24, 24],
    )


PARTITIONS = {
    "STEPS": 5, "PRODUCER_WAIT": True, "CONSUMER_WAIT": True, "EARLY": False, "ARRIVE": True, "FENCE": True, "SLOTS": 2, "COUNT": 1,
}  # fmt: skip
WRONG = {
    "consumer does not wait": ({"CONSUMER_WAIT": False}, {"lds-race", "lds-in-flight", "lds-uninitialised"}),
    "producer does not wait": ({"PRODUCER_WAIT": False}, {"lds-race", "lds-overwrite-in-flight", "mbarrier-underflow"}),
    "released before it is read": ({"EARLY": True}, {"lds-race"}),
    "never released": ({"ARRIVE": False}, {"deadlock"}),
    "one arrival more is asked for": ({"COUNT": 2}, {"deadlock"}),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_partitions_that_are_right(schedule: str):
    arrays, machine = run(specialized, two(), PARTITIONS, schedule=schedule)
    assert not machine.findings
    assert np.allclose(arrays["c"], 5 * tile(1).astype(np.float32), atol=0.02)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("what", WRONG)
def test_partitions_that_are_wrong(what: str, schedule: str):
    changed, kinds = WRONG[what]
    kind, message = hazard_of(specialized, two(), PARTITIONS | changed, schedule=schedule)
    assert kind in kinds, message


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_stores_of_another_partition_are_fenced(schedule: str):
    kind, message = hazard_of(specialized, two(), PARTITIONS | {"FENCE": False}, schedule=schedule)
    assert kind == "missing-fence" and "partition 0 stored at line" in message


# What a source is told ---------------------------------------------------------------------------------------------------


def test_a_source_goes_on_in_the_order_of_its_program():
    for what, (kind, changed) in ((w, COPIES[w]) for w in COPIES if w.startswith(("read", "overwrites", "fills"))):
        arrays, machine = run(copies, two(), RIGHT | changed, in_program_order=True)
        assert {finding.kind for finding in machine.noted.values()} >= {kind}, what
        assert all(finding.line for finding in machine.noted.values())
        assert np.array_equal(arrays["c"], 2 * tile(1)) or "store" in what
    arguments = {"a": Tiles(tile(), (N, N)), "out": Flat(np.zeros((N, N)), "fp32")}
    wanted = {"RESULT_WAIT": False, "OPERAND_WAIT": True}
    arrays, machine = run(hopper_product, arguments, wanted, in_program_order=True, target=HOPPER)
    assert {finding.kind for finding in machine.noted.values()} == {"wgmma-unwaited"}
    x = tile().astype(np.float32)
    assert np.allclose(arrays["out"], 2 * x @ x, atol=1e-3)


@gluon.jit
def read_back(a, c, c_ptr):
    layout: gl.constexpr = gl.BlockedLayout([1, 2], [1, 32], [4, 1], [1, 0])
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, layout))[:, None]
    place = rows * 64 + gl.arange(0, 64, layout=gl.SliceLayout(0, layout))[None, :]
    x = gl.allocate_shared_memory(gl.float16, [64, 64], a.layout)
    x.store(gl.full([64, 64], 1.0, gl.float16, layout))
    fence_async_shared()
    tma.async_store(a, [0, 0], x)
    gl.store(c_ptr + place, gl.load(c + place))
    tma.store_wait(0)


def test_a_copy_of_a_source_to_global_memory_is_done_where_it_stands():
    """A translation is held to the latest moment that its wait allows."""
    shared = tile(3)
    for in_program_order, expected in ((True, np.ones((N, N))), (False, shared)):
        arguments = {"a": Tiles(shared, (N, N)), "c": Flat(shared), "c_ptr": Flat(np.zeros((N, N)))}
        arrays, _ = run(read_back, arguments, same=("a", "c"), in_program_order=in_program_order)
        assert (arrays["c_ptr"] == expected).all()
