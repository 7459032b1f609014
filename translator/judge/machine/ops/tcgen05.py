"""Rows for tensor memory and the tensor core of sm_100.

Orders to the tensor core (`tcgen05` products, copies and commits) are carried out one after another, beside the partition that gives them: the
partition and all others come after them only once they wait for a barrier that was committed. What they compute is there at once.
"""

from __future__ import annotations

import numpy as np

from gluonize.judge.machine.dtypes import unsigned
from gluonize.judge.machine.hazards import NotRunnable
from gluonize.judge.machine.memory.ordering import TENSOR
from gluonize.judge.machine.memory.raw_views import allocate_tensor_memory
from gluonize.judge.machine.memory.views import MemDesc
from gluonize.judge.machine.ops.dot import product, scaled_operand
from gluonize.judge.machine.ops.tensor import unpack_fp4
from gluonize.judge.machine.table import as_type, row
from gluonize.trace.model.types import parse_type


@row("ttng.tmem_alloc")
def tmem_alloc(machine, op, value=None):
    kind, name = op.type, op.place.name or op.results[0].lstrip("%")
    view = allocate_tensor_memory(kind, machine.module.attribute(kind), name, op.place, machine.module.clusters)
    if value is not None:
        machine.lds.store(view, value)
    return view


@row("ttng.tmem_subslice")
def tmem_subslice(machine, op, view):
    offset, dim, shape = op.attribute("offset"), op.attribute("dim", 1), op.type.shape
    axis = len(view.shape) - len(shape) + dim
    cut = [slice(None)] * len(view.shape)
    cut[axis] = slice(offset, offset + shape[dim])
    return view.at(view.index[tuple(cut)])


@row("ttng.tmem_load")
def tmem_load(machine, op, view, *tokens):
    value = machine.lds.load(view)
    if (how := op.attribute("redOp")) is None:
        return value
    x = np.abs(value) if op.attribute("abs", False) else value
    exact = (np.minimum, np.maximum) if op.attribute("NaN", False) else (np.fmin, np.fmax)
    reduced = exact[0 if how == "min" else 1].reduce(x, axis=-1)
    return (value, None, reduced) if len(op.results) > 2 else (value, reduced)


@row("ttng.tmem_store")
def tmem_store(machine, op, value, view, *rest):
    if rest[-1]:
        machine.lds.store(view, value)


# The tensor core.


def _read(machine, agent: int, view: MemDesc) -> np.ndarray:
    lds = machine.lds
    lds.partitions.check_fence(lds.me, view, lds.report)
    return lds.load(view, by=agent)


@row("ttng.tmem_copy")
def tmem_copy(machine, op, source, target):
    """Shared memory to tensor memory, element by element."""
    lds = machine.lds
    agent = lds.partitions.agent(lds.me, TENSOR)
    lds.store(target, _read(machine, agent, source), by=agent)


def _accumulate(machine, op, agent: int, target, a, b, use_target) -> None:
    lds = machine.lds
    kind = parse_type(_element_of(target))
    accumulator = (
        lds.load(target, by=agent)
        if use_target
        else np.zeros(target.shape, np.int32 if kind.kind == "int" else np.float32)
    )
    lds.store(target, product(machine, kind, a, b, accumulator), by=agent)


def _element_of(view: MemDesc) -> str:
    return view.element or view.allocation.element


def _commit_all(machine, agent: int, barriers) -> None:
    """`barriers`: (barrier, predicate), in turn."""
    for barrier, predicate in zip(barriers[::2], barriers[1::2]):
        if predicate:
            _arrive(machine, agent, barrier)


def _arrive(machine, agent: int, barrier) -> None:
    """One arrival; of a cluster, those of all CTAs that the barrier counts."""
    count = machine.barriers.missing(barrier) if machine.module.clusters > 1 else 1
    machine.barriers.arrive(barrier, count, agent)


@row("ttng.tc_gen5_mma")
def tc_gen5_mma(machine, op, a, b, target, *rest):
    first = op.groups[2] - 1  # a token of the accumulator
    use_target, predicate, *barriers = rest[first:]
    order = machine.lds.partitions
    agent = order.agent(machine.lds.me, TENSOR)
    if predicate:
        operands = [_read(machine, agent, view) for view in (a, b)]
        if op.attribute("is_unsigned"):
            operands = [unsigned(x) for x in operands]
        _accumulate(machine, op, agent, target, *operands, use_target)
    _commit_all(machine, agent, barriers)


@row("ttng.tc_gen5_mma_scaled")
def tc_gen5_mma_scaled(machine, op, a, b, target, *rest):
    first = op.groups[2] - 1
    a_scale, b_scale, use_target, predicate, *barriers = rest[first:]
    order = machine.lds.partitions
    agent = order.agent(machine.lds.me, TENSOR)
    if predicate:
        left, right, scale_a, scale_b = (_read(machine, agent, view) for view in (a, b, a_scale, b_scale))
        forms = [op.attribute(side) for side in ("lhs", "rhs")]
        lhs = scaled_operand(left, forms[0], scale_a, _element_of(a_scale))
        rhs = scaled_operand(np.swapaxes(right, -1, -2), forms[1], scale_b, _element_of(b_scale))
        _accumulate(machine, op, agent, target, lhs, np.swapaxes(rhs, -1, -2), use_target)
    _commit_all(machine, agent, barriers)


@row("ttng.tc_gen5_commit")
def tc_gen5_commit(machine, op, barrier, *rest):
    if op.before("descs") < 2 or rest[0]:
        agent = machine.lds.partitions.agent(machine.lds.me, TENSOR)
        _arrive(machine, agent, barrier)


# Arithmetic on pairs.

PACKED = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
    "min": np.fmin,
    "max": np.fmax,
}


def _widened(op, x):
    """An operand as floats: int8 are pairs of fp4 along the dimension that is half as long as the result's."""
    if x.dtype.kind != "i":
        return x
    halved = [axis for axis, extent in enumerate(op.type.shape) if extent == 2 * x.shape[axis]]
    if len(halved) != 1:
        raise NotRunnable(op.name, "packed arithmetic on scales")
    return unpack_fp4(x, halved[0])


@row("ttng.packed_arith")
def packed_arith(machine, op, *operands):
    kind = op.word
    if kind not in PACKED:
        raise NotRunnable(op.name, f"packed {kind}")
    wide = [np.asarray(_widened(op, x), np.float64) for x in operands]
    return as_type(PACKED[kind](*wide).astype(np.float32), op.type)
