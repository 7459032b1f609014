"""The parameters of a compiled kernel, as the runner passes them."""

from __future__ import annotations

import numpy as np

from gluonize.judge.device.refusal import Refused
from gluonize.judge.inputs.bind import bind, place_tensors
from gluonize.judge.inputs.inputs import Inputs
from gluonize.judge.machine.dtypes import encode, stored
from gluonize.judge.machine.hazards import Hazard, NotRunnable
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.memory.tensor_descriptors import Descriptor
from gluonize.trace.model.module import Module
from gluonize.trace.model.parse import parse_module

POINTER_BYTES = 8


def launch_arguments(ttgir: str, names: list[str], inputs: Inputs) -> list[dict]:
    """One entry per parameter: name, kind (`tensor` or `scalar`), type, size in bytes, and where the value comes from.

    `tensor`: name of the tensor and byte offset of the pointer in it. `scalar`: `bytes` in hexadecimal. A host-side tensor
    descriptor is given as the pointer to its tensor, `descriptor` true, with `shape`, `strides` and `padding`. Raises: Refused.
    """
    return arguments_of(parse_module(ttgir), names, inputs)


def arguments_of(module: Module, names: list[str], inputs: Inputs) -> list[dict]:
    """`launch_arguments` of a module that was parsed before."""
    memory = Memory()
    addresses = place_tensors(memory, inputs)
    try:
        values = bind(module, names, inputs, addresses)
    except (NotRunnable, Hazard) as error:
        raise Refused("launch arguments", str(error), "no-reference") from None
    out = []
    for (name, kind), value in zip(module.entry.arguments, values):
        entry = {"name": name.lstrip("%"), "type": kind.element or kind.kind}
        is_descriptor = isinstance(value, Descriptor)
        if kind.kind == "ptr" or is_descriptor:
            address = value.base if is_descriptor else int(value)
            buffer = memory.find(address)
            entry |= {"kind": "tensor", "tensor": buffer.name, "offset": address - buffer.base, "size": POINTER_BYTES}
            entry |= {"descriptor": is_descriptor}
            if isinstance(value, Descriptor):
                entry |= {"shape": list(value.bounds), "strides": list(value.strides), "padding": float(value.padding)}
        else:
            bits = np.asarray(encode(np.asarray(value), kind.element)).astype(stored(kind.element))
            entry |= {"kind": "scalar", "bytes": bits.tobytes().hex(), "size": bits.itemsize}
        out.append(entry)
    return out
