"""Rows for the tensor data mover of gfx1250 and its mbarriers.

Waits count operations, not groups: each copy is a group of its own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gluonize.judge.machine.hazards import NotRunnable
from gluonize.judge.machine.memory.lds import Copy
from gluonize.judge.machine.memory.views import NEVER, VALID
from gluonize.judge.machine.table import row


def _named(op, args, word: str):
    index = op.keyword(word)
    return None if index is None else args[index]


@row("amdg.update_tensor_descriptor")
def update_tensor_descriptor(machine, op, descriptor, *args):
    operands = (descriptor, *args)
    out = descriptor
    for word in ("add_offsets", "set_bounds"):
        if (at := op.listed_at(word)) is None:
            continue
        values = operands[slice(*at)]
        if word == "add_offsets":
            out = out.moved(values, op.attribute("clamp_bounds", False))
        else:
            out = replace(out, bounds=tuple(int(v) for v in values))
    predicate = _named(op, operands, "pred")
    return out if predicate is None else replace(out, enabled=bool(predicate))


def _issue(machine, op, copy: Copy) -> None:
    lds = machine.lds
    lds.issue(copy, lds.tensor_copies)
    # One that signals a barrier counts like any other.
    lds.commit(lds.tensor_copies)
    if copy.barrier is not None:
        machine.barriers.attach(copy)


def _nothing(machine, op, view) -> None:
    """A copy whose predicate is false still counts as an operation.

    What it would have written stays as it was: where that is nothing, the program may read it, and gets NaN.
    """
    machine.lds.tensor_copies.groups.append([])
    state = machine.lds.current(view).state
    state[view.index] = np.where(state[view.index] == NEVER, VALID, state[view.index])


@row("amdg.async_tdm_copy_global_to_local")
def async_tdm_copy_global_to_local(machine, op, descriptor, view, *rest):
    barrier = _named(op, (descriptor, view, *rest), "barrier")
    if barrier is not None and op.attribute("warp_used_hint") is not None:
        raise NotRunnable(op.name, "a barrier together with warp_used_hint: which warps arrive is not documented")
    if not descriptor.enabled:
        if barrier is not None:
            raise NotRunnable(
                op.name, "a barrier on a copy whose predicate is false: whether it arrives is not documented"
            )
        return _nothing(machine, op, view)
    _issue(machine, op, _copy_in(machine, op, descriptor, view, barrier))


def _copy_in(machine, op, descriptor, view, barrier=None) -> Copy:
    address, inside = descriptor.tile((0,) * len(descriptor.bounds))
    machine.note_fetched(op, np.sum(inside), descriptor.element)
    values = machine.memory.load(address, inside, None, descriptor.element, address.shape).reshape(view.shape)
    return Copy(op.place, op.name, view, values, barrier=barrier)


@row("amdg.async_tdm_fused_copy_global_to_local")
def async_tdm_fused_copy_global_to_local(machine, op, *args):
    """Several copies that count as one operation."""
    members = len(args) // 2
    for descriptor, view in zip(args[:members], args[members:]):
        if descriptor.enabled:
            machine.lds.issue(_copy_in(machine, op, descriptor, view), machine.lds.tensor_copies)
    machine.lds.commit(machine.lds.tensor_copies)


@row("amdg.async_tdm_copy_local_to_global")
def async_tdm_copy_local_to_global(machine, op, descriptor, view, *rest):
    operands = (descriptor, view, *rest)
    barrier = _named(op, operands, "barrier")
    if not descriptor.enabled:
        return _nothing(machine, op, view)
    address, inside = descriptor.tile((0,) * len(descriptor.bounds))
    _store(machine, op, view, address, inside, descriptor.element, barrier)


def _store(machine, op, view, address, inside, element, barrier) -> None:
    data = np.array(machine.lds.current(view).data[view.index]).reshape(address.shape)
    memory = machine.memory
    _issue(
        machine,
        op,
        Copy(op.place, op.name, view, finish=lambda: memory.store(address, data, inside, element), barrier=barrier),
    )


@row("amdg.async_tdm_gather")
def async_tdm_gather(machine, op, descriptor, rows, view, *rest):
    address, inside = descriptor.rows(rows, 0, view.shape[1])
    values = machine.memory.load(address, inside, None, descriptor.element, address.shape)
    _issue(
        machine,
        op,
        Copy(op.place, op.name, view, values, barrier=_named(op, (descriptor, rows, view, *rest), "barrier")),
    )


@row("amdg.async_tdm_scatter")
def async_tdm_scatter(machine, op, descriptor, rows, view, *rest):
    address, inside = descriptor.rows(rows, 0, view.shape[1])
    barrier = _named(op, (descriptor, rows, view, *rest), "barrier")
    _store(machine, op, view, address, inside, descriptor.element, barrier)


@row("amdg.tdm_prefetch")
def tdm_prefetch(machine, op, descriptor, *rest):
    """Nothing is read that a program can see; what is asked for has to exist."""
    *offsets, enabled = rest
    if enabled and descriptor.enabled:
        address, inside = descriptor.tile(offsets)
        machine.memory.load(address, inside, None, descriptor.element, address.shape)


@row("amdg.async_tdm_wait", "amdg.async_tdm_intrinsic_wait")
def async_tdm_wait(machine, op, *tokens):
    machine.lds.wait(machine.lds.tensor_copies, op.attribute("num", op.attribute("count", 0)), op.line, op.place)


@row("amdg.init_barrier")
def init_barrier(machine, op, view):
    machine.barriers.init(view, op.counted)


@row("amdg.arrive_barrier")
def arrive_barrier(machine, op, view):
    """One arrival per thread of the partition; the count on the op multiplies it."""
    return np.int32(machine.barriers.arrive(view, op.counted * machine.threads))


@row("amdg.async_copy_mbarrier_arrive")
def async_copy_mbarrier_arrive(machine, op, view):
    """One arrival per thread when the thread's asynchronous copies so far are done."""
    counter = machine.lds.async_copies
    counter.open = [copy for copy in counter.open if not copy.landed]  # a loop may never commit them
    copies = [copy for group in (*counter.groups, counter.open) for copy in group]
    machine.barriers.attach_all(view, copies, machine.threads)


@row("amdg.wait_barrier")
def wait_barrier(machine, op, view, phase):
    machine.barriers.wait(view, int(phase), op.place)
