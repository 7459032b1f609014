"""What operations on barriers mean, and what order alone they make."""

from __future__ import annotations

import math
from collections.abc import Callable

from gluonize.lift.machine.machine import Run
from gluonize.lift.values.barriers import Barrier
from gluonize.lift.values.scalars import Scalar, number
from gluonize.lift.values.tensors import Value, View
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.op import Op
from gluonize.trace.model.types import Type


def landed(run: Run, op: Op, bar: View, kind: Type) -> None:
    barrier = run.barrier(bar, op)
    if run.clusters:
        barrier.landed(barrier.bytes if barrier.bytes <= size_of(kind) else min(barrier.bytes, size_of(kind)))
        return
    barrier.landed(size_of(kind))


def size_of(kind: Type) -> int:
    return math.prod(kind.shape or ()) * bits_of(kind.element) // 8


def init(run: Run, op: Op, given: list[Value]) -> list[Value]:
    run.barriers[given[0].key] = Barrier(op.counted)
    return []


def expect(run: Run, op: Op, given: list[Value]) -> list[Value]:
    if given[1].value:
        run.barrier(given[0], op).expect(op.counted)
    return []


def arrive(run: Run, op: Op, given: list[Value]) -> list[Value]:
    if len(given) < 2 or not isinstance(given[1], Scalar) or given[1].value:
        run.barrier(given[0], op).arrive(1 if op.counted is None else op.counted)
    return []


def copies_arrive(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """Each thread arrives when its copies are done; one that counts itself in first changes nothing."""
    if op.attribute("noIncrement"):
        run.barrier(given[0], op).arrive(run.part.warps * run.module.lanes)
    return []


def commit(run: Run, op: Op, given: list[Value]) -> list[Value]:
    if len(given) < 2 or not isinstance(given[1], Scalar) or given[1].value:
        commit_to(run, op, given[0])
    return []


def commit_to(run: Run, op: Op, bar: View) -> None:
    barrier = run.barrier(bar, op)
    barrier.all_arrive() if run.clusters else barrier.arrive()


def try_cancel(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """Cluster launch control: no further program is taken over, so that each does the tile of its number."""
    run.barrier(given[1], op).landed(16)
    return []


def not_taken(run: Run, op: Op, given: list[Value]) -> list[Value]:
    return [number(0)]


def nothing(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """Order between things that happen in order here."""
    return [None] * len(op.results)


def same(run: Run, op: Op, given: list[Value]) -> list[Value]:
    """The operands are the results: waits, conversions of layouts."""
    return given[: len(op.results)]


SYNC: dict[str, Callable] = {
    "ttng.init_barrier": init,
    "ttng.barrier_expect": expect,
    "ttng.arrive_barrier": arrive,
    "ttng.async_copy_mbarrier_arrive": copies_arrive,
    "ttng.tc_gen5_commit": commit,
    "ttng.clc_try_cancel": try_cancel,
    "ttng.clc_load_result": not_taken,
    "ttng.clc_is_canceled": not_taken,
    "ttng.clc_get_program_id": not_taken,
    "ttg.convert_layout": same,
    "gluon.set_auto_layout": same,
    "ttng.warp_group_dot_wait": same,
    **dict.fromkeys(
        (
            "ttng.inval_barrier",
            "ttng.fence_async_shared",
            "ttng.async_tma_store_wait",
            "ttg.local_dealloc",
            "ttg.barrier",
        )
        + ("ttg.async_commit_group", "ttg.async_wait", "ttng.cluster_arrive", "ttng.cluster_wait", "gpu.barrier")
        + ("ttng.tensormap_fenceproxy_acquire", "ttng.fence", "tt.assert", "ttng.cluster_barrier", "llvm.intr.assume"),
        nothing,
    ),
}
