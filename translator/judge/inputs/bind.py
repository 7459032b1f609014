"""Launch arguments -> parameters of the entry function of a module.

A tuple is flattened. A host-side descriptor becomes several parameters: where the target has descriptors, the descriptor,
its shape (i32) and strides (i64); where Triton rewrites them to pointers, the base pointer, shape and strides as i64, two
flags (NaN padding, round f32 to tf32) and the shape and strides again. A translation without descriptors takes the tuple of
base, shape (i32) and strides (i64) instead.
"""

from __future__ import annotations

import numpy as np

from gluonize.judge.inputs.inputs import DescriptorArgument, Inputs, Tensor
from gluonize.judge.machine.dtypes import encode, held, stored
from gluonize.judge.machine.hazards import Hazard, NotRunnable
from gluonize.judge.machine.memory.guarded import Memory
from gluonize.judge.machine.memory.tensor_descriptors import Descriptor, PixelBox
from gluonize.trace.model.attributes import Attribute
from gluonize.trace.model.module import Module
from gluonize.trace.model.types import Type


def place_tensors(memory: Memory, inputs: Inputs, only: Memory | None = None, tight: bool = False) -> dict[int, int]:
    """Put every storage in memory; -> address of the first element of each tensor, by id of the Tensor.

    With `only`, float items that `only` recorded as never read hold NaN: results must not depend on them. If `tight`, storage
    ends where `only` touched it last, since the source would be right with that. What `only` does not have is as it is given.
    """
    addresses = {}
    known = only
    for number, views in enumerate(inputs.storages()):
        only = known if known is not None and number < len(known.buffers) else None
        tensor, blank = views[0], None
        pages = tensor.pages
        data = tensor.data if pages is None else pages.contents().view(tensor.data.dtype)
        if only is not None and held(tensor.element).kind == "f":
            only.buffers[number].catch_up()
            blank = np.asarray(encode(np.full(1, np.nan, held(tensor.element)), tensor.element)).astype(data.dtype)
            unseen = ~only.buffers[number].seen[: data.size]
            if unseen.any():
                data = data.copy()
                data[unseen] = blank[0]
        buffer = memory.add(" and ".join(view.name for view in views), tensor.element, data, tensor.unheld, pages)
        buffer.blank = blank
        if tight and only is not None:
            buffer.limit = only.buffers[number].used() or None
        size = stored(tensor.element).itemsize
        addresses |= {id(view): buffer.base + view.offset * size for view in views}
    return addresses


def bind(module: Module, names: list[str], inputs: Inputs, addresses: dict[int, int]) -> list:
    """One value per parameter of the entry function. `names` are the kernel's parameters in order.

    Raises: NotRunnable when the parameters do not fit.
    """
    parameters = module.entry.arguments
    out: list = []
    for name in names:
        value = inputs.arguments.get(name)
        if isinstance(value, list) and len(out) < len(parameters) and parameters[len(out)][1].kind == "desc":
            value = _of_images(value, parameters[len(out)][1])
        for leaf in _flat(value):
            kind = parameters[len(out)][1] if len(out) < len(parameters) else Type("none")
            out += _leaf(leaf, kind, parameters[len(out) :], addresses)
    if len(out) != len(parameters):
        raise NotRunnable(
            "launch", f"{module.entry.name} has {len(parameters)} parameters, the launch gives {len(out)} values"
        )
    for (parameter, kind), value, attributes in zip(parameters, out, module.entry.argument_attributes):
        _check(parameter, kind, value, attributes)
    return out


def _of_images(parts: list, kind: Type) -> DescriptorArgument:
    """The descriptor of images whose parts a translation takes as a tuple (`gluonize.read.spec.images`)."""
    base, *numbers = parts
    shape, strides, *box = (
        tuple(1 if x is None else int(x) for x in part) for part in numbers
    )  # None: a compile-time 1
    return DescriptorArgument(base, shape, strides, kind.shape or (), box=PixelBox(*box))


def _flat(value) -> list:
    if isinstance(value, list):
        return [x for item in value for x in _flat(item)]
    return [] if value is None else [value]


def _leaf(leaf, kind: Type, parameters, addresses: dict[int, int]) -> list:
    if isinstance(leaf, Tensor):
        return [np.int64(addresses[id(leaf)])]
    if not isinstance(leaf, DescriptorArgument):
        return [leaf]
    base = addresses[id(leaf.base)]
    shape = [np.int32(x) for x in leaf.shape]
    strides = [np.int64(x) for x in leaf.strides]
    if kind.kind == "desc":
        described = Descriptor(
            base, leaf.shape, leaf.strides, kind.shape, leaf.base.element, leaf.padding, box=leaf.box
        )
        return [described, *shape, *strides]
    if len(parameters) > 1 and parameters[1][1].element == "i32":  # a tuple, whose last stride is a compile-time 1
        return [np.int64(base), *shape, *strides[:-1]]
    wide = [np.int64(x) for x in leaf.shape]
    flags = sum(1 for _, k in parameters[: 3 + 2 * len(shape)] if k.element == "i1" and k.kind == "int")
    return [np.int64(base), *wide, *strides, *([np.bool_(False)] * flags), *shape, *strides]


def _check(parameter: str, kind: Type, value, attributes: Attribute) -> None:
    """What the specialization promised must be true of the value. Raises: NotRunnable, Hazard."""
    is_pointer = kind.kind == "ptr"
    if kind.kind == "none" or (kind.kind == "desc") != isinstance(value, Descriptor):
        raise NotRunnable(
            "launch", f"parameter {parameter} of type {kind.element or kind.kind} does not take {type(value).__name__}"
        )
    if attributes.get("tt.divisibility") == 16 and (is_pointer or kind.kind == "int") and int(value) % 16:
        raise Hazard("broken-promise", f"{parameter} is compiled as divisible by 16, but is {int(value)}")
