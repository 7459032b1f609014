"""Rows for shared memory: allocation, views, loads and stores, asynchronous copies and their waits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gluonize.judge.machine.dtypes import held, stored, unsigned
from gluonize.judge.machine.hazards import Hazard, NotRunnable
from gluonize.judge.machine.memory.aliases import padded, reinterpret
from gluonize.judge.machine.memory.clusters import parts_of
from gluonize.judge.machine.memory.lds import Copy
from gluonize.judge.machine.memory.raw_views import allocate_bytes, reinterpret_bytes, reinterpret_tensor_memory
from gluonize.judge.machine.memory.views import MemDesc, Placed
from gluonize.judge.machine.ops.memory import ATOMIC, buffer_addresses
from gluonize.judge.machine.ops.tensor import _check_indices
from gluonize.judge.machine.table import row
from gluonize.trace.model.attributes import TENSOR_MEMORY, TENSOR_MEMORY_SCALES, Attribute


@row("ttg.local_alloc")
def local_alloc(machine, op, value=None):
    kind = op.type
    name = op.place.name or op.results[0].lstrip("%")
    layout = machine.module.attribute(kind)
    if machine.module.is_nvidia and machine.module.has("ttg.memdesc_reinterpret"):
        view = allocate_bytes(kind, layout, name, op.place)
    else:
        place = _place_of(machine, op, kind, layout)
        view = machine.lds.allocate(name, kind.element, kind.shape, op.place, place, layout)
    if value is not None:
        machine.lds.store(view, np.asarray(value).reshape(kind.shape))
    return view


def _place_of(machine, op, kind, layout: Attribute) -> Placed | None:
    """Where the compiler put the allocation, None where it was not asked. Padding is counted, so slots have their real size."""
    begins = op.placed_at
    if not begins or machine.frames:
        return None
    slots = kind.shape[0] if len(kind.shape) > 2 else 1
    layout = layout.get("partitionLayout", layout)
    # Each CTA of a cluster has its part in its own LDS, all at the same place.
    count = kind.size // slots // len(begins) // parts_of(layout, kind.shape[len(kind.shape) > 2 :])
    size = stored(kind.element).itemsize
    return Placed(begins[0], slots, padded(count, layout) * size, padded(count - 1, layout) * size, begins[1:])


@row("ttg.local_load")
def local_load(machine, op, view, token=None):
    return machine.lds.load(view, op.attribute("ttg.amdg.syncedViaAsyncWait", False))


@row("amdg.local_load_packed_transposed")
def local_load_packed_transposed(machine, op, view, token=None):
    """Pairs of fp4 that lie along one of the last two dimensions, loaded as pairs along the other."""
    packed = unsigned(machine.lds.load(view))
    shape = op.type.shape
    source = packed.ndim - (2 if shape[-2] == 2 * packed.shape[-2] else 1)
    target = 2 * packed.ndim - 3 - source
    wide = [extent * (1 + (axis == source)) for axis, extent in enumerate(packed.shape)]
    single = np.stack([packed & 15, packed >> 4], source + 1).reshape(wide)
    low, high = (single.take(range(first, wide[target], 2), target) for first in (0, 1))
    return (low | high << 4).view(held(op.type.element))


@row("ttg.local_store")
def local_store(machine, op, value, view):
    machine.lds.store(view, value)


@row("ttg.memdesc_index")
def memdesc_index(machine, op, view, index):
    if not 0 <= index < view.shape[0]:
        what = f"index {int(index)} of {view.allocation.name}, which has {view.shape[0]} slots"
        # Operations have predicates, or stand under an `if`: a view that none of them uses may be anywhere.
        view, index = replace(view, outside=what), 0
    return view.at(view.index[int(index)]).reshaped(op.type.shape)


@row("ttg.memdesc_subslice")
def memdesc_subslice(machine, op, view):
    starts, shape = op.indices, op.type.shape
    starts = starts[-len(shape) :] if len(starts) > len(view.shape) else starts
    return view.at(view.index[tuple(slice(s, s + n) for s, n in zip(starts, shape))])


@row("ttg.memdesc_trans")
def memdesc_trans(machine, op, view):
    return view.transposed(op.integers("order"))


@row("ttg.memdesc_reshape")
def memdesc_reshape(machine, op, view):
    return view.reshaped(op.type.shape)


@row("ttg.memdesc_reinterpret")
def memdesc_reinterpret(machine, op, view):
    source, target = op.operand_types[0], op.type
    if (source.element, source.shape, source.layout) == (target.element, target.shape, target.layout):
        return view
    layout = machine.module.attribute(target)
    if view.element:
        again = reinterpret_tensor_memory if layout.kind in (TENSOR_MEMORY, TENSOR_MEMORY_SCALES) else reinterpret_bytes
        return again(view, target, layout)
    return reinterpret(view, target.element, target.shape, layout, op.place)


@row("ttg.local_gather")
def local_gather(machine, op, view, indices, token=None):
    return machine.lds.load(_along(op, view, indices))


@row("ttg.local_scatter")
def local_scatter(machine, op, view, indices, value, token=None):
    machine.lds.store(_along(op, view, indices), value)


@row("ttg.local_atomic_scatter_rmw")
def local_atomic_scatter_rmw(machine, op, view, indices, value, mask=None):
    target = _along(op, view, indices).index.reshape(-1)
    kind = op.word
    if kind not in ATOMIC:
        raise NotRunnable(op.name, f"atomic {kind}")
    machine.lds.load(view)
    on = np.ones(target.size, bool) if mask is None else np.broadcast_to(mask, value.shape).reshape(-1)
    data, flat = view.allocation.data, np.asarray(value).reshape(-1)
    old = np.zeros(flat.size, held(op.type.element))
    for lane in np.flatnonzero(on):
        old[lane] = data[target[lane]]
        data[target[lane]] = ATOMIC[kind](data[target[lane]], flat[lane])
    return old.reshape(value.shape)


def _along(op, view: MemDesc, indices) -> MemDesc:
    axis = op.attribute("axis")
    _check_indices(op.name, indices, view.shape[axis])
    crop = tuple(slice(None) if d == axis else slice(0, n) for d, n in enumerate(indices.shape))
    return MemDesc(view.allocation, np.take_along_axis(view.index[crop], indices.astype(np.int64), axis))


# Asynchronous copies.


def _load_into(machine, op, view, address, mask, other, masked_writes: bool):
    """Issue a copy of global values into `view`. Lanes without mask and `other` are written as zero only when
    `masked_writes` (the buffer form); the pointer form leaves what it does not load undefined (`Machine.stale`)."""
    lds = machine.lds
    element = view.allocation.element
    if np.size(address) != math.prod(view.shape):  # which the compiler lets through
        raise Hazard("lds-index", f"copies {np.shape(address)} elements to a place of {tuple(view.shape)}")
    machine.note_fetched(op, np.size(address) if mask is None else np.sum(mask), element)
    fill = other
    if mask is not None and other is None and not masked_writes:
        fill = held(element).type(machine.machine.stale) if held(element).kind == "f" else None
    values = machine.memory.load(address, mask, fill, element, np.shape(address))
    idle = mask is not None and other is None and not masked_writes and not np.any(mask)
    copy = Copy(op.place, op.name, view, values.reshape(view.shape), idle=idle)
    lds.issue(copy, lds.async_copies)


@row("amdg.buffer_load_to_local")
def buffer_load_to_local(machine, op, *args):
    base, offsets, mask, other = (None if i is None else args[i] for i in op.buffer_indices)
    view = args[op.keyword("into")]
    address = buffer_addresses(machine, op, base, offsets, mask, view.allocation.element)
    _load_into(machine, op, view, address, mask, other, True)


@row("ttg.async_copy_global_to_local")
def async_copy_global_to_local(machine, op, pointer, view, *rest):
    mask, other = op.keyword("mask"), op.keyword("other")
    operands = (pointer, view, *rest)
    _load_into(
        machine,
        op,
        view,
        pointer,
        None if mask is None else operands[mask],
        None if other is None else operands[other],
        False,
    )


@row("amdg.async_copy_local_to_global")
def async_copy_local_to_global(machine, op, view, pointer, *rest):
    mask = rest[0] if rest else None
    lds, memory = machine.lds, machine.memory
    element = view.allocation.element
    data = lds.current(view).data[view.index]
    lds.issue(
        Copy(op.place, op.name, view, finish=lambda: memory.store(pointer, data, mask, element)), lds.async_copies
    )


@row("ttg.async_commit_group")
def async_commit_group(machine, op, *tokens):
    machine.lds.commit(machine.lds.async_copies)


@row("ttg.async_wait", "amdg.async_wait")
def async_wait(machine, op, *tokens):
    count = op.attribute("num", op.attribute("num_inst", 0))
    machine.lds.wait(machine.lds.async_copies, count, op.line, op.place)
