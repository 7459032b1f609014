"""The reference machine accepts good pipelined kernels and finds every bug planted in them, at the right line."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted import KERNELS, Planted, run_matmul
from slow_rows import slow_but_crossed

GOOD = {target: (KERNELS / f"matmul_{target}.py").read_text() for target in ("gfx942", "gfx950", "gfx1250")}
SPECIALIZED = (KERNELS / "matmul_gfx1250_specialized.py").read_text()
SIZES = [(272, 208, 144), (256, 256, 256), (128, 128, 64), (144, 160, 16), (272, 208, 208)]


RINGS = [("gfx942", None), ("gfx950", 2), ("gfx950", 3), ("gfx1250", 2), ("gfx1250", 4)]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("size, ring", slow_but_crossed(SIZES, RINGS, 3), ids=str)
def test_good_kernel_validates(tmp_path: Path, size, ring: tuple[str, int | None]):
    target, buffers = ring
    result = run_matmul(GOOD[target], target, tmp_path, size, buffers)
    assert (result.status, result.reason) == ("validated", "")
    assert result.bitwise and result.programs == result.grid
    assert "ragged sizes" in result.variants or size[2] == 16
    assert "K = 0" in result.variants
    assert result.notes == ()


READ_A = "a = async_copy.load_shared_relaxed"
READ_B = "b = async_copy.load_shared_relaxed"
PROLOGUE = """        async_copy.buffer_load_to_shared(a_smem.index(t), a_ptr, a_offs, mask=offs_k_a[None, :] < K - t * BLOCK_K)
        async_copy.buffer_load_to_shared(b_smem.index(t), b_ptr, b_offs, mask=offs_k_b[:, None] < K - t * BLOCK_K)
        async_copy.commit_group()
"""
GFX950 = {
    "wait-count-too-high": Planted("wait_group(NUM_BUFFERS - 2)", "wait_group(NUM_BUFFERS - 1)", ("lds-in-flight",), READ_A),
    "wait-deleted": Planted("async_copy.wait_group(NUM_BUFFERS - 2)", "pass", ("lds-in-flight",), READ_A),
    "reads-the-next-slot": Planted(
        "load_shared_relaxed(a_smem.index(k %", "load_shared_relaxed(a_smem.index((k + 1) %", ("lds-in-flight", "mismatch"), READ_A
    ),
    "prefetch-into-the-slot-being-read": Planted(
        "a_smem.index(ahead % NUM_BUFFERS)", "a_smem.index(k % NUM_BUFFERS)", ("lds-in-flight",), READ_A
    ),
    "prefetch-of-b-into-the-slot-being-read": Planted(
        "b_smem.index(ahead % NUM_BUFFERS)", "b_smem.index(k % NUM_BUFFERS)", ("lds-in-flight",), READ_B
    ),
    "tail-mask-lost": Planted(
        "a_ptr, a_offs, mask=offs_k_a[None, :] < K - ahead * BLOCK_K\n", "a_ptr, a_offs\n", ("out-of-bounds",),
        "async_copy.buffer_load_to_shared(\n            a_smem.index(ahead",
    ),
    "tail-mask-off-by-one": Planted(
        "offs_k_a[None, :] < K - ahead * BLOCK_K", "offs_k_a[None, :] <= K - ahead * BLOCK_K", ("out-of-bounds", "mismatch")
    ),
    "prologue-removed": Planted(PROLOGUE, "        pass\n", ("lds-uninitialised", "lds-in-flight"), READ_A),
    "prologue-commit-removed": Planted(PROLOGUE, PROLOGUE.replace("async_copy.commit_group()", "pass"), ("lds-in-flight",), READ_A),
    "loop-commit-removed": Planted(
        "        async_copy.commit_group()\n        a = async", "        a = async", ("lds-in-flight",), READ_A
    ),
    "pointer-not-advanced": Planted(
        "a_ptr += BLOCK_K * stride_ak\n        b_ptr += BLOCK_K * stride_bk\n    #", "b_ptr += BLOCK_K * stride_bk\n    #", ("mismatch",)
    ),
    "store-mask-lost": Planted("c_offs, mask=c_mask)", "c_offs)", ("out-of-bounds", "store-conflict"), "cdna4.buffer_store"),
    "one-tile-too-few": Planted("range(0, gl.cdiv(K, BLOCK_K))", "range(0, K // BLOCK_K)", ("mismatch",)),
    "ring-index-out-of-range": Planted("ahead % NUM_BUFFERS", "ahead % (NUM_BUFFERS + 1)", ("lds-index",), times=2),
    "rows-not-wrapped": Planted("gl.SliceLayout(1, a_load))) % M", "gl.SliceLayout(1, a_load)))", ("out-of-bounds",)),
    "negative-offset": Planted("a_offs = offs_am", "a_offs = -offs_am", ("buffer-offset",)),
}  # fmt: skip

GFX1250 = {
    "tdm-wait-too-high": Planted(
        "async_wait((NUM_BUFFERS - 1) * 2)", "async_wait(NUM_BUFFERS * 2)", ("lds-in-flight",), "a = a_smem"
    ),
    "tdm-wait-for-one-only": Planted(
        "async_wait((NUM_BUFFERS - 1) * 2)", "async_wait((NUM_BUFFERS - 1) * 2 + 1)", ("lds-in-flight",), "b = b_smem"
    ),
    "tdm-wait-deleted": Planted("tdm.async_wait((NUM_BUFFERS - 1) * 2)", "pass", ("lds-in-flight",), "a = a_smem"),
    "reads-the-next-slot": Planted(
        "a_smem.index(k %", "a_smem.index((k + 1) %", ("lds-in-flight", "lds-uninitialised"), "a = a_smem"
    ),
    "fills-the-slot-being-read": Planted(
        "a_smem.index(ahead %", "a_smem.index(k %", ("lds-in-flight", "lds-overwrite-in-flight")
    ),
    "prologue-short": Planted(
        "static_range(NUM_BUFFERS - 1)", "static_range(NUM_BUFFERS - 2)", ("lds-uninitialised", "lds-in-flight")
    ),
    "wrong-bounds": Planted("[M, K], [stride_am, 1]", "[M + 128, K], [stride_am, 1]", ("out-of-bounds",)),
    "wrong-column": Planted("[ahead * BLOCK_K, pid_n * BLOCK_N]", "[ahead * BLOCK_K, pid_m * BLOCK_N]", ("mismatch",)),
}

GFX942 = {
    "store-into-the-slot-just-read": Planted("a_smem.index((k + 1) % 2).store(a_next)", "a_smem.index(k % 2).store(a_next)", ("mismatch", "lds-uninitialised")),
    "first-store-missing": Planted("    b_smem.index(0).store(cdna3", "    b_smem.index(1).store(cdna3", ("lds-uninitialised",), "b = b_smem"),
    "tail-mask-lost": Planted("b_ptr, b_offs, mask=offs_k_b[:, None] < left)", "b_ptr, b_offs)", ("out-of-bounds",), "b_next ="),
    "tail-mask-of-the-last-tile": Planted("left = K - (k + 1)", "left = K - k", ("out-of-bounds", "mismatch")),
}  # fmt: skip

CASES = [
    pytest.param(
        target,
        planted,
        buffers,
        id=f"{target}-{name}-{buffers}",
        marks=pytest.mark.slow if (i + (buffers or 0)) % 2 else (),
    )
    for target, table, depths in (("gfx950", GFX950, (2, 3)), ("gfx1250", GFX1250, (2, 3)), ("gfx942", GFX942, (None,)))
    for i, (name, planted) in enumerate(table.items())
    for buffers in depths
]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target, planted, buffers", CASES)
def test_planted_bug_is_found(tmp_path: Path, target: str, planted: Planted, buffers: int | None):
    good = GOOD[target]
    assert good.count(planted.before) == planted.times
    text = good.replace(planted.before, planted.after)
    result = run_matmul(text, target, tmp_path, buffers=buffers)
    found = result.hazards[0].kind if result.hazards else result.status
    assert found in planted.kinds, result.reason
    if planted.at and result.hazards:
        line = text[: text.index(planted.at)].count("\n") + 1
        assert line <= result.hazards[0].line <= line + 1
        assert result.hazards[0].file.endswith("translated.py")


PRODUCER_WAIT = "mbarrier.wait(empty.index(slot), ((k // NUM_BUFFERS) & 1) ^ 1)"
CONSUMER_WAIT = "mbarrier.wait(ready.index(slot), (k // NUM_BUFFERS) & 1)"
READS = """        a = a_smem.index(slot).load(a_operand)
        b = b_smem.index(slot).load(b_operand)
        acc = cdna5.wmma(a, b, acc)
"""
ARRIVAL = "        mbarrier.arrive(empty.index(slot))\n"
WARP_SPECIALIZED = {
    "consumer-wait-deleted": Planted(CONSUMER_WAIT, "pass", ("lds-in-flight", "lds-uninitialised"), "a = a_smem"),
    "producer-wait-deleted": Planted(PRODUCER_WAIT, "pass", ("lds-overwrite-in-flight", "mbarrier-underflow", "mismatch", "deadlock", "lds-race")),
    "arrival-before-the-reads": Planted(READS + ARRIVAL, ARRIVAL + READS, ("lds-race", "lds-in-flight", "lds-overwrite-in-flight")),
    "producer-waits-for-the-wrong-phase": Planted("& 1) ^ 1)", "& 1))", ("deadlock",)),
    "consumer-waits-for-the-wrong-phase": Planted(CONSUMER_WAIT, CONSUMER_WAIT.replace("& 1)", "& 1 ^ 1)"), ("lds-in-flight", "lds-uninitialised", "deadlock")),
    "arrival-deleted": Planted("mbarrier.arrive(empty.index(slot))", "pass", ("deadlock",), CONSUMER_WAIT),
    "too-few-arrivals-expected": Planted("ready.index(i), 2 * 4", "ready.index(i), 4", ("deadlock",)),  # the second copy flips the phase back
    "too-many-arrivals-expected": Planted("ready.index(i), 2 * 4", "ready.index(i), 3 * 4", ("deadlock", "mbarrier-underflow")),
    "count-of-one-thread": Planted("empty.index(i), 4 * 32", "empty.index(i), 1", ("mbarrier-underflow",), "mbarrier.arrive"),
    "copy-signals-nobody": Planted("a_smem.index(slot), mbarrier=ready.index(slot)", "a_smem.index(slot)", ("deadlock", "lds-in-flight")),
    "no-barrier-after-initialisation": Planted("    gl.barrier()\n", "", ("mbarrier-unpublished",)),
    "not-initialised": Planted("        mbarrier.init(empty.index(i), 4 * 32)\n", "", ("mbarrier-uninitialised",)),
}  # fmt: skip


@pytest.mark.one_of(3)
@pytest.mark.parametrize("size, buffers", [((272, 208, 272), 2), ((272, 208, 272), 3), ((144, 160, 16), 2)], ids=str)
def test_good_warp_specialized_kernel_validates(tmp_path: Path, size, buffers: int):
    result = run_matmul(SPECIALIZED, "gfx1250", tmp_path, size, buffers)
    assert (result.status, result.reason) == ("validated", "")


@pytest.mark.one_of(3)
@pytest.mark.parametrize("planted", WARP_SPECIALIZED.values(), ids=WARP_SPECIALIZED)
def test_planted_bug_between_partitions_is_found(tmp_path: Path, planted: Planted):
    assert SPECIALIZED.count(planted.before) == planted.times
    text = SPECIALIZED.replace(planted.before, planted.after)
    result = run_matmul(text, "gfx1250", tmp_path)
    found = result.hazards[0].kind if result.hazards else result.status
    assert found in planted.kinds, result.reason
    if planted.at:
        assert result.hazards[0].line == text[: text.index(planted.at)].count("\n") + 1


def test_deadlock_says_who_waits_for_what(tmp_path: Path):
    text = SPECIALIZED.replace("mbarrier.arrive(empty.index(slot))", "pass")
    reason = run_matmul(text, "gfx1250", tmp_path).reason
    assert "waits for phase 1 of ready[0, 0] (8 of 8 arrivals missing)" in reason
    producer = text[: text.index(PRODUCER_WAIT)].count("\n") + 1
    assert f"partition 1 waits for phase 0 of empty[0, 0] (128 of 128 arrivals missing) at line {producer}" in reason
