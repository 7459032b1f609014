"""Rows for global memory: loads, stores, atomics, buffer accesses with 32-bit offsets, tensor descriptors in TTIR."""

from __future__ import annotations

import numpy as np

from gluonize.judge.machine.dtypes import held, stored
from gluonize.judge.machine.hazards import Hazard, NotRunnable, WaitsForever
from gluonize.judge.machine.memory.guarded import BUFFER_LIMIT
from gluonize.judge.machine.memory.handed_over import HandedOver
from gluonize.judge.machine.memory.tensor_descriptors import Descriptor
from gluonize.judge.machine.shared_access import is_shared
from gluonize.judge.machine.table import row


@row("tt.load")
def load(machine, op, pointer, mask=None, other=None):
    if machine.turns is not None and is_shared(op):
        machine.switch()
    kind = op.type
    if other is None and mask is not None and machine.machine.unset and kind.is_float:
        other = held(kind.element).type(machine.machine.unset)
    machine.note_loaded(op, mask)
    return machine.memory.load(pointer, mask, other, kind.element, kind.shape or ())


@row("tt.store")
def store(machine, op, pointer, value, mask=None):
    machine.memory.store(pointer, value, mask, op.operand_types[0].element)


ATOMIC = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "add": np.add,
    "fadd": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "umax": np.maximum,
    "umin": np.minimum,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "exch": lambda old, new: new,
}


@row("tt.atomic_rmw")
def atomic_rmw(machine, op, pointer, value, mask=None):
    kind = op.word
    return rmw(machine, op, kind, pointer, value, mask, op.type.element)


def rmw(machine, op, kind: str, address, value, mask, element: str):
    if kind not in ATOMIC:
        raise NotRunnable(op.name, f"atomic {kind}")
    machine.switch()
    if isinstance(machine.memory.peers, HandedOver):
        addresses = np.asarray(address if mask is None else np.extract(mask, address))
        machine.memory.peers.atomic(addresses, op.words, np.size(address) >= machine.threads)
    return machine.memory.atomic(
        address, value, mask, element, ATOMIC[kind], machine.uses(op), unsigned=kind in ("umax", "umin")
    )


@row("tt.atomic_cas")
def atomic_cas(machine, op, pointer, compare, value):
    machine.switch()
    pairs = np.empty(np.shape(pointer), [("compare", compare.dtype), ("value", value.dtype)])
    pairs["compare"], pairs["value"] = compare, value
    element = op.type.element

    def swap(old, pair):
        return np.where(old == pair["compare"], pair["value"], old)

    return machine.memory.atomic(pointer, pairs, None, element, swap, True, held_as=compare.dtype)


@row("tt.atomic_load")
def atomic_load(machine, op, pointer, mask=None):
    return machine.memory.load(pointer, mask, None, op.type.element, op.type.shape or ())


@row("tt.atomic_store")
def atomic_store(machine, op, pointer, value, mask=None):
    element = op.operand_types[0].element
    machine.memory.atomic(pointer, value, mask, element, ATOMIC["exch"], False)


@row("tt.atomic_poll")
def atomic_poll(machine, op, pointer, expected, timeout=None):
    """Waits until every element is what is expected; with a timeout it may go on without."""
    element, shape = op.operand_types[0].element, op.type.shape or ()
    while True:
        machine.switch()
        found = machine.memory.load(pointer, None, None, element, shape)
        if timeout is not None or np.all(found == expected):
            break
        if machine.turns is None:
            raise WaitsForever(op.name, "polls for what no program that ran before has stored")
        if not machine.turns.wait(f"{op.place}"):
            raise Hazard("deadlock", "every program that is left waits like this, and none can go on")
    if machine.turns is not None:
        machine.turns.gone_on()
    return np.equal(found, expected)[()]


def buffer_addresses(machine, op, base, offsets, mask, element: str):
    """Addresses of a buffer access. Raises: Hazard when an enabled offset is negative or beyond the buffer resource.

    The hardware would return zero or drop the store there, silently.
    """
    size = stored(element).itemsize
    wide = offsets.astype(np.int64) * size
    on = wide if mask is None else wide[np.broadcast_to(mask, wide.shape)]
    if on.size and (on.min() < 0 or on.max() > BUFFER_LIMIT - size):
        worst = int(on.min()) if on.min() < 0 else int(on.max())
        raise Hazard("buffer-offset", f"an enabled buffer offset is {worst} bytes, outside of 0..2^31-1")
    return base + wide


def _at(args, index):
    return None if index is None else args[index]


@row("amdg.buffer_load")
def buffer_load(machine, op, *args):
    base, offsets, mask, other = (_at(args, i) for i in op.buffer_indices)
    element = op.type.element
    machine.note_loaded(op, mask)
    address = buffer_addresses(machine, op, base, offsets, mask, element)
    return machine.memory.load(address, mask, other, element, op.type.shape)


@row("amdg.buffer_store")
def buffer_store(machine, op, value, *args):
    base, offsets, mask, _ = (None if i is None else (value, *args)[i] for i in op.buffer_indices)
    element = op.operand_types[0].element
    machine.memory.store(buffer_addresses(machine, op, base, offsets, mask, element), value, mask, element)


@row("amdg.buffer_atomic_rmw")
def buffer_atomic_rmw(machine, op, value, *args):
    base, offsets, mask, _ = (None if i is None else (value, *args)[i] for i in op.buffer_indices)
    element = op.type.element
    address = buffer_addresses(machine, op, base, offsets, mask, element)
    return rmw(machine, op, op.word, address, value, mask, element)


@row("amdg.buffer_atomic_cas")
def buffer_atomic_cas(machine, op, compare, value, base, offsets, *rest):
    address = buffer_addresses(machine, op, base, offsets, None, op.type.element)
    return atomic_cas(machine, op, address, compare, value)


@row("tt.make_tensor_descriptor")
def make_tensor_descriptor(machine, op, base, *args):
    rank = len(op.type.shape)
    padding = {1: 0.0, 2: np.nan}.get(op.attribute("padding", 1), 0.0)
    shape = tuple(int(x) for x in args[:rank])
    element = op.type.element.removeprefix("s").removeprefix("u")  # si8, ui8: signs concern reducing stores only
    return Descriptor(int(base), shape, tuple(int(x) for x in args[rank:]), op.type.shape, element, padding)


@row("tt.descriptor_load")
def descriptor_load(machine, op, descriptor, *indices):
    address, mask = descriptor.tile(indices)
    fill = None if descriptor.padding == 0 else np.float32(descriptor.padding)
    value = machine.memory.load(address, mask, fill, descriptor.element, address.shape)
    return value.reshape(op.type.shape)


@row("tt.descriptor_store")
def descriptor_store(machine, op, descriptor, value, *indices):
    first, last = op.bracket()
    operands = (descriptor, value, *indices)
    value = operands[last]
    address, mask = descriptor.tile(operands[first:last])
    machine.memory.store(address, value.reshape(address.shape), mask, descriptor.element)


@row("tt.descriptor_reduce")
def descriptor_reduce(machine, op, *operands):
    first, last = op.bracket()
    descriptor, value = operands[0], operands[last]
    address, mask = descriptor.tile(operands[first:last])
    kind = op.word
    element = descriptor.element
    combine = {"inc": np.add, "dec": np.subtract}.get(kind, ATOMIC.get(kind))
    if combine is None:
        raise NotRunnable(op.name, f"reduction {kind}")
    if element[0] != "i" and kind in ("max", "min"):
        combine = ATOMIC["f" + kind]
    machine.memory.atomic(address, value.reshape(address.shape), mask, element, combine, False)


@row("tt.descriptor_gather")
def descriptor_gather(machine, op, descriptor, rows, column):
    address, mask = descriptor.rows(rows, int(column), op.type.shape[1])
    return machine.memory.load(address, mask, None, descriptor.element, op.type.shape)


@row("tt.descriptor_scatter")
def descriptor_scatter(machine, op, descriptor, rows, column, value):
    address, mask = descriptor.rows(rows, int(column), value.shape[1])
    machine.memory.store(address, value, mask, descriptor.element)
