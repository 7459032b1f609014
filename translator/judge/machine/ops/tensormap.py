"""Rows for descriptors that a kernel for NVIDIA GPUs makes itself, in global memory that only the TMA unit looks at."""

from __future__ import annotations

import numpy as np

from gluonize.judge.machine.dtypes import stored
from gluonize.judge.machine.hazards import NotRunnable
from gluonize.judge.machine.memory.tensor_descriptors import Descriptor
from gluonize.judge.machine.table import row
from gluonize.trace.model.types import pointee

FIRST = -(1 << 40)  # the addresses of such memory lie in no buffer
APART = 1 << 10


@row("ttg.global_scratch_alloc")
def global_scratch_alloc(machine, op):
    machine.scratch += 1
    return np.int64(FIRST - machine.scratch * APART)


@row("ttng.tensormap_create")
def tensormap_create(machine, op, place, base, *args):
    """Extents and strides are innermost first, strides in bytes and without that of the innermost dimension."""
    parts = [op.bracket(which) for which in range(3)]
    operands = (place, base, *args)
    bounds, strides = ([int(x) for x in operands[slice(*part)]][::-1] for part in parts[1:])
    element = pointee(op.operand_types[1]).element
    size = stored(element).itemsize
    if any(stride % size for stride in strides):
        raise NotRunnable(op.name, "a stride that is no multiple of an element")
    padding = np.nan if op.attribute("fill_mode", 0) == 1 else 0.0
    steps = (*(stride // size for stride in strides), 1)
    machine.tensormaps[int(place)] = Descriptor(int(base), tuple(bounds), steps, (), element, padding)


@row("ttng.reinterpret_tensor_descriptor")
def reinterpret_tensor_descriptor(machine, op, place):
    if int(place) not in machine.tensormaps:
        raise NotRunnable(op.name, "a descriptor that the kernel has not made")
    return machine.tensormaps[int(place)].with_block(op.type.shape)
