"""Every kind of hazard is found in a kernel with that fault, and not in the same kernel without it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import test_machine_async
import test_machine_clusters
import test_machine_gluon_ops
import test_machine_memory
import test_machine_nvidia_hazards as nvidia
import test_persistent
import test_stream_k
import triton
import triton.language as tl
from machine_harness import run_kernel
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna4, cdna5

from gluonize.judge.machine.hazards import KINDS, Hazard
from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.verdict.run import validate_pair
from gluonize.read.spec.launch import LaunchSpec

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "reference-machine.md"
N = 64
L1 = gl.constexpr(gl.BlockedLayout([1], [64], [4], [0]))

# Kinds with a test elsewhere.
ELSEWHERE = {
    "out-of-bounds": test_machine_memory.test_enabled_lanes_must_stay_inside,
    "lds-uninitialised": test_machine_async.test_partitions_hand_over_shared_memory,
    "lds-in-flight": test_machine_async.test_copies_that_arrive_at_a_barrier_and_fused_copies,
    "lds-overwrite-source": test_machine_gluon_ops.test_asynchronous_store_needs_a_wait,
    "lds-overwrite-read": test_machine_async.test_an_allocation_in_the_place_of_another_needs_a_wait,
    "lds-reuse-in-flight": test_machine_async.test_scratch_of_an_op_must_not_lie_where_a_copy_lands,
    "lds-race": test_machine_async.test_partitions_hand_over_shared_memory,
    "lds-store-unwaited": test_machine_gluon_ops.test_asynchronous_store_needs_a_wait,
    "lds-load-unwaited": test_machine_async.test_a_kernel_for_gfx1250_waits_for_its_copies_before_it_ends,
    "pipeline-stage": test_machine_async.test_a_wait_in_a_warp_pipeline_covers_the_stage_after_the_next,
    "mbarrier-underflow": test_machine_async.test_partitions_hand_over_shared_memory,
    "mbarrier-phase": test_machine_async.test_copies_that_arrive_at_a_barrier_and_fused_copies,
    "mbarrier-reinitialised": test_machine_async.test_copies_that_arrive_at_a_barrier_and_fused_copies,
    "cluster-peer": test_machine_clusters.test_a_conversion_that_needs_what_another_workgroup_has,
    "cluster-memory": test_machine_clusters.test_memory_that_workgroups_share,
    "cluster-start": test_machine_clusters.test_every_kind_is_planted,
    "cluster-arrive": test_machine_clusters.test_every_kind_is_planted,
    "cluster-wait": test_machine_clusters.test_every_kind_is_planted,
    "cluster-overwrite": test_machine_clusters.test_every_kind_is_planted,
    "cluster-reuse": test_machine_clusters.test_every_kind_is_planted,
    "cluster-exit": test_machine_clusters.test_every_kind_is_planted,
    "deadlock": test_machine_async.test_partitions_hand_over_shared_memory,
    "mbarrier-bytes": nvidia.test_a_copy_without_an_expectation,
    "mbarrier-invalidated": nvidia.test_a_barrier_that_is_invalidated_in_use,
    "wgmma-unwaited": nvidia.test_products_of_warp_groups,
    "missing-fence": nvidia.test_stores_of_another_partition_are_fenced,
    "false-hint": test_machine_gluon_ops.test_false_hints_are_found,
    "tiles": test_persistent.test_which_tiles_each_program_has_is_computed,
    "unordered": test_stream_k.test_what_is_read_has_to_be_known_of,
}


# What the machine finds by itself --------------------------------------------------------------------------------------


@triton.jit
def null_pointer(x_ptr, n):
    value = tl.load(x_ptr)
    tl.store((n + x_ptr.to(tl.int64) * (n == 0)).to(x_ptr.dtype), value)


@triton.jit
def between_elements(x_ptr, n):
    tl.store((x_ptr.to(tl.int64) + n).to(x_ptr.dtype), 1.0)


@triton.jit
def gathers(x_ptr, n):
    i = tl.arange(0, 64)
    tl.store(x_ptr + i, tl.gather(tl.load(x_ptr + i), i + n, 0))


@triton.jit
def divides(x_ptr, n):
    tl.store(x_ptr, 12 // (n + 3))


@triton.jit
def steps(x_ptr, n):
    for i in range(0, 8, n + 4):
        tl.store(x_ptr + i, 1.0)


@gluon.jit
def overwrites(x_ptr, n, LATE: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([2], [64], [4], [0])
    o = gl.arange(0, 512, L)
    smem = gl.allocate_shared_memory(gl.float32, [512], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    cdna4.async_copy.buffer_load_to_shared(smem, x_ptr, o)
    cdna4.async_copy.commit_group()
    if not LATE:
        cdna4.async_copy.wait_group(0)
    smem.store(gl.zeros([512], gl.float32, L))
    cdna4.async_copy.wait_group(0)


@gluon.jit
def ring(x_ptr, n):
    smem = gl.allocate_shared_memory(gl.float32, [2, 256], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    smem.index(n + 1).store(gl.zeros([256], gl.float32, L1))


@gluon.jit
def buffer(x_ptr, n):
    cdna4.buffer_store(gl.zeros([256], gl.float32, L1), x_ptr, gl.arange(0, 256, L1) + n)


@gluon.jit
def unused_barrier(x_ptr, n, PUBLISHED: gl.constexpr, INITIALISED: gl.constexpr):
    bar = gl.allocate_shared_memory(gl.int64, [1], cdna5.mbarrier.MBarrierLayout())
    if INITIALISED:
        cdna5.mbarrier.init(bar, 128)
    if PUBLISHED:
        gl.barrier()
    cdna5.mbarrier.arrive(bar)


def found(fn, n: int, target: str = "gfx950", **constexprs) -> str:
    x = np.zeros(1024, np.int32 if fn is divides else np.float32)
    try:
        types = {"x_ptr": "*i32" if fn is divides else "*fp32", "n": "i64" if fn is null_pointer else "i32"}
        _, machine = run_kernel(fn, types, {"x_ptr": x, "n": n}, target=target, constexprs=constexprs)
    except Hazard as hazard:
        return hazard.kind
    return machine.findings[0].kind if machine.findings else ""


# kind -> kernel, `n` for which it is right, `n` for which it is not.
NUMBERS = {
    "wild-pointer": (null_pointer, 0, 8),
    "misaligned": (between_elements, 8, 6),
    "buffer-offset": (buffer, 0, -1),
    "index-range": (gathers, 0, 1),
    "division-by-zero": (divides, 0, -3),
    "loop-step": (steps, 0, -4),
    "lds-index": (ring, 0, 1),
}
# kind -> what differs from a barrier that is initialised and shown before its use.
BARRIERS = {
    "mbarrier-unpublished": {"PUBLISHED": False},
    "mbarrier-uninitialised": {"INITIALISED": False},
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_wrong_number_is_found(kind: str):
    fn, good, bad = NUMBERS[kind]
    assert found(fn, good) == ""
    assert found(fn, bad) == kind


def test_overwriting_where_a_copy_lands_is_found():
    assert found(overwrites, 0, LATE=False) == ""
    assert found(overwrites, 0, LATE=True) == "lds-overwrite-in-flight"


@pytest.mark.parametrize("kind", ["", *BARRIERS])
def test_a_barrier_is_made_and_shown_before_its_use(kind: str):
    right = {"PUBLISHED": True, "INITIALISED": True}
    assert found(unused_barrier, 0, "gfx1250", **right | BARRIERS.get(kind, {})) == kind


# What it finds beside the source ---------------------------------------------------------------------------------------

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n):
    i = tl.arange(0, 64)
    left = n
    while left > 0:
        left -= 1
    tl.device_assert(n < 40, "too many")
    tl.store(out_ptr + i, tl.load(x_ptr + i))
"""


def launch(n: int = 32, flags: str = "") -> LaunchSpec:
    tensor = {"tensor": {"dtype": "float32", "shape": [N], "stride": [1], "storage": N, "offset": 0}}
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
    attrs = {"x_ptr": "DS", "out_ptr": "DS", "n": flags}
    values = {"x_ptr": tensor, "out_ptr": tensor, "n": n}
    return LaunchSpec("hazards", "kernel", "", signature, {}, attrs, {"num_warps": 1, "debug": True}, (1,), {}, values)


def beside(folder: Path, before: str, after: str, spec: LaunchSpec):
    assert KERNEL.count(before) == 1
    source, other = folder / "source.py", folder / "other.py"
    source.write_text(KERNEL)
    other.write_text(KERNEL.replace(before, after))
    left, right = source_stage(str(source), spec, "gfx950"), translated_stage(str(other), spec, "gfx950")
    return validate_pair(left.text, right.text, spec, source_names=left.names, translated_names=right.names)


# kind -> a change of the kernel.
CHANGES = {
    "": ("n < 40", "n < 41"),
    "store-conflict": ("out_ptr + i, ", "out_ptr + i % 32, "),
    "endless": ("left -= 1", "left -= left // 64"),
    "device-assert": ("n < 40", "n < 30"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_what_the_source_does_not_do_is_found(tmp_path: Path, kind: str):
    result = beside(tmp_path, *CHANGES[kind], launch())
    assert (result.hazards[0].kind if result.hazards else "") == kind, result.reason
    assert result.status == ("hazard" if kind else "validated"), result.reason


def test_a_value_that_breaks_the_promise_of_its_launch_is_found(tmp_path: Path):
    assert beside(tmp_path, "n < 40", "n < 41", launch(32, "D")).status == "validated"
    result = beside(tmp_path, "n < 40", "n < 41", launch(33, "D"))
    assert result.status == "not_runnable" and "[broken-promise]" in result.reason


# That none is left out -------------------------------------------------------------------------------------------------


def test_every_kind_is_produced_by_a_test():
    here = {*NUMBERS, *BARRIERS, *CHANGES, "lds-overwrite-in-flight", "broken-promise"} - {""}
    assert here | set(ELSEWHERE) == KINDS
    for kind, test in ELSEWHERE.items():
        assert f'"{kind}"' in inspect.getsource(test)


def test_the_page_explains_every_kind():
    table = PAGE.read_text().split("## What it finds")[1].split("## ")[0]
    first_cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`([a-z-]+)`", " ".join(first_cells))) == KINDS
