"""Rows for the TMA unit of NVIDIA GPUs and the mbarriers that it signals.

A load is done when somebody waits for the phase of its barrier that its bytes complete; a store has read shared memory when its issuer waits
for it. Where a program is a cluster of CTAs, tiles are those of the cluster and bytes those of one CTA, as kernels count them.
"""

from __future__ import annotations

import math

import numpy as np

from gluonize.judge.machine.dtypes import stored
from gluonize.judge.machine.hazards import NotRunnable
from gluonize.judge.machine.memory.lds import Copy
from gluonize.judge.machine.memory.ordering import BULK
from gluonize.judge.machine.ops.memory import ATOMIC
from gluonize.judge.machine.table import row

# Barriers.


@row("ttng.init_barrier")
def init_barrier(machine, op, view):
    machine.barriers.init(view, op.counted)


@row("ttng.inval_barrier")
def inval_barrier(machine, op, view):
    machine.barriers.invalidate(view)


@row("ttng.barrier_expect")
def barrier_expect(machine, op, view, predicate):
    if predicate:
        machine.barriers.expect(view, op.counted, op.place)


@row("ttng.arrive_barrier")
def arrive_barrier(machine, op, view, predicate=True):
    """One thread arrives for the whole partition."""
    if predicate:
        machine.barriers.arrive(view, op.counted)


@row("ttng.wait_barrier")
def wait_barrier(machine, op, view, phase, *rest):
    if op.before("deps") < 3 or rest[0]:
        machine.barriers.wait(view, int(phase), op.place)


@row("ttng.async_copy_mbarrier_arrive")
def async_copy_mbarrier_arrive(machine, op, view):
    """The copies of each thread arrive when they are done; the barrier does not count them in advance unless `noIncrement`."""
    counter = machine.lds.async_copies
    copies = [copy for group in (*counter.groups, counter.open) for copy in group if not copy.landed]
    machine.barriers.attach_all(view, copies, machine.threads if op.attribute("noIncrement") else 0)


@row("ttng.fence_async_shared")
def fence_async_shared(machine, op):
    machine.lds.partitions.fence(machine.lds.me)


@row("ttng.fence_mbarrier_init_release_cluster", "ttng.cluster_barrier", "ttng.tensormap_fenceproxy_acquire")
def other_fence(machine, op, *operands):
    """CTAs of a cluster run in step here."""
    machine.lds.barrier()


# Loads.


def _load(machine, op, view, barrier, address, inside, descriptor) -> None:
    other = None if descriptor.padding == 0 else np.float32(descriptor.padding)
    values = machine.memory.load(address, inside, other, descriptor.element, address.shape)
    whole = math.prod(view.shape) * stored(descriptor.element).itemsize
    layout = machine.module.attribute(next(kind for kind in op.operand_types if kind.kind == "desc"))
    fill(machine, op, view, barrier, values.reshape(view.shape), whole // layout.parts)


def fill(machine, op, view, barrier, values, size: int) -> None:
    """Give a view values that are there when its barrier has been brought `size` bytes."""
    lds = machine.lds
    agent = lds.partitions.agent(lds.me, BULK)
    copy = Copy(op.place, op.name, view, values, barrier=barrier, by=agent)
    lds.start(copy)
    lds.signalled.append(copy)
    copy.clock = lds.partitions.released(agent)
    machine.barriers.bring(copy, size)


@row("ttng.async_shared_store")
def async_shared_store(machine, op, value, view, barrier):
    """Registers to the shared memory of a cluster."""
    whole = value.size * stored(op.memdesc.element).itemsize
    fill(machine, op, view, barrier, value, whole // machine.module.attribute(op.memdesc).parts)


@row("ttng.async_tma_copy_global_to_local")
def async_tma_copy_global_to_local(machine, op, descriptor, *args):
    first, last = op.bracket()
    coordinates = args[first - 1 : last - 1]
    view, barrier, predicate = args[-3:]
    if not predicate:
        return
    offsets = args[last - 1 : -3]
    address, inside = descriptor.pixels(coordinates, offsets) if offsets else descriptor.tile(coordinates)
    _load(machine, op, view, barrier, address, inside, descriptor)


@row("ttng.async_tma_gather")
def async_tma_gather(machine, op, descriptor, rows, column, view, barrier, predicate):
    if predicate:
        address, inside = descriptor.rows(rows, int(column), view.shape[1])
        _load(machine, op, view, barrier, address, inside, descriptor)


# Stores.


def _store(machine, op, view, finish) -> None:
    lds = machine.lds
    lds.partitions.check_fence(lds.me, view, lds.report)
    agent = lds.partitions.agent(lds.me, BULK)
    copy = Copy(op.place, op.name, view, finish=finish, by=agent)
    lds.issue(copy, lds.bulk_stores)
    lds.commit(lds.bulk_stores)
    copy.clock = lds.partitions.released(agent)


def _into(machine, op, descriptor, view, address, inside) -> None:
    memory, data = machine.memory, view.values().reshape(address.shape)
    _store(machine, op, view, lambda: memory.store(address, data, inside, descriptor.element))


@row("ttng.async_tma_copy_local_to_global")
def async_tma_copy_local_to_global(machine, op, descriptor, *args):
    _into(machine, op, descriptor, args[-1], *descriptor.tile(args[:-1]))


@row("ttng.async_tma_scatter")
def async_tma_scatter(machine, op, descriptor, rows, column, view):
    _into(machine, op, descriptor, view, *descriptor.rows(rows, int(column), view.shape[1]))


@row("ttng.async_tma_reduce")
def async_tma_reduce(machine, op, descriptor, *args):
    view = args[-1]
    kind, element = op.word, descriptor.element
    combine = {"inc": np.add, "dec": np.subtract}.get(kind) or ATOMIC.get(kind)
    if combine is None:
        raise NotRunnable(op.name, f"reduction {kind}")
    if element[0] != "i" and kind in ("max", "min"):
        combine = ATOMIC["f" + kind]
    address, inside = descriptor.tile(args[:-1])
    memory, data = machine.memory, view.values().reshape(address.shape)
    _store(machine, op, view, lambda: memory.atomic(address, data, inside, element, combine, False))


@row("ttng.async_tma_store_wait")
def async_tma_store_wait(machine, op, *tokens):
    machine.lds.wait(machine.lds.bulk_stores, op.attribute("pendings"), op.line, op.place)
