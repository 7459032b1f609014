"""What a launch says that its arguments hold: tensors with all their fields, and what is wrong with them.

    {"tensor": {"shape": [4, 8]}}   ->   {"tensor": {"shape": [4, 8], "stride": [8, 1], "storage": 32, "offset": 0, "dtype": ""}}

A tensor without strides has its rows one after another, one without storage ends where its shape does, and one without a type has
that of the signature.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from gluonize.read.evaluate.host_values import HostName


def completed(value: Any) -> tuple[Any, str | None]:
    """The value of an argument with every field of its tensors, and what is wrong with it, or None."""
    if isinstance(value, list):
        return _each(value)
    if not isinstance(value, Mapping):
        return value, None
    for name in ("$tuple", "tuple"):
        if isinstance(value.get(name), list):
            items, problem = _each(value[name])
            return {**value, name: items}, problem
    if "tensor" in value:
        tensor, problem = _tensor(value["tensor"])
        return {**value, "tensor": tensor}, problem
    if "descriptor" in value:
        inside, problem = _descriptor(value["descriptor"])
        return {**value, "descriptor": inside}, problem
    return value, None


def _each(items: list) -> tuple[list, str | None]:
    pairs = [completed(item) for item in items]
    return [item for item, _ in pairs], next((problem for _, problem in pairs if problem), None)


def _tensor(tensor: Any) -> tuple[Any, str | None]:
    if not isinstance(tensor, Mapping):
        return tensor, f"a tensor is an object, not {json.dumps(tensor)}"
    shape = tensor.get("shape")
    if not _whole(shape):
        return tensor, f"a tensor needs a shape, a list of integers that are not negative, not {json.dumps(shape)}"
    rows = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    held = _with_defaults(tensor, stride=rows, offset=0, dtype="")
    stride, offset, kind = held["stride"], held["offset"], held["dtype"]
    if not _whole(stride) or len(stride) != len(shape):
        return tensor, f"the strides of a tensor are as many integers as its shape has, not {json.dumps(stride)}"
    if not _whole([offset]):
        return tensor, f"the offset of a tensor is an integer that is not negative, not {json.dumps(offset)}"
    if not isinstance(kind, str) or kind and HostName.of_dtype(kind) is None:
        return tensor, f"torch has no element type {json.dumps(kind)}"
    reached = offset + sum((extent - 1) * step for extent, step in zip(shape, stride)) + 1 if 0 not in shape else 0
    held = _with_defaults(held, storage=reached)
    if not _whole([held["storage"]]) or held["storage"] < reached:
        return tensor, f"the storage of a tensor is {reached} elements at least, not {json.dumps(held['storage'])}"
    return held, None


def _with_defaults(given: Mapping, **defaults: Any) -> dict[str, Any]:
    return {**given, **{name: value for name, value in defaults.items() if name not in given}}


def _descriptor(inside: Any) -> tuple[Any, str | None]:
    if not isinstance(inside, Mapping):
        return inside, f"a descriptor is an object, not {json.dumps(inside)}"
    base = inside.get("base")
    plain = not isinstance(base, Mapping) or "tensor" not in base
    tensor, problem = _tensor(base if plain else base["tensor"])
    if problem:
        return inside, f"the base of a descriptor: {problem}"
    lengths = {len(inside[name]) for name in ("shape", "strides") if _whole(inside.get(name))}
    if len(lengths) != 1 or not all(_whole(inside.get(name)) for name in ("shape", "strides")):
        return inside, "a descriptor has a shape and strides, lists of as many integers"
    return {**inside, "base": {"tensor": tensor}}, None


def _whole(values: Any) -> bool:
    """Whether it is a list of integers that are not negative."""
    return isinstance(values, list) and all(type(n) is int and n >= 0 for n in values)


__all__ = ["completed"]
