"""The arguments of a kernel's module for one launch: integers with their values, pointers and descriptors by name."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from typing import Any

from gluonize.lift.machine.machine import NotLifted
from gluonize.lift.values.scalars import Scalar, atom
from gluonize.lift.values.tensors import Node, Value
from gluonize.read.spec.images import image_box, is_of_images
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.module import Module
from gluonize.trace.model.types import Type

IMAGES = "images"  # the operation of a node that is a descriptor of images


def arguments_of(module: Module, spec: LaunchSpec, changed: dict[str, int] | None = None) -> list[Value]:
    """One value per argument of the module. changed: integers by name that are not the launch's.

    Raises: NotLifted where the launch gives an integer no value.
    """
    numbers = numbers_of(spec) | (changed or {})
    entry = module.entry
    for name in rounding(spec):
        raise NotLifted(f"{name} rounds what it loads to TF32, which Triton's descriptors do not")
    images = {name for name, kind in spec.signature.items() if is_of_images(kind)}
    out: list[Value] = []
    for (value, kind), name in zip(entry.arguments, entry.argument_names):
        if kind.kind == "int" and kind.shape is None:
            if name not in numbers:
                raise NotLifted(f"the launch does not say what {name} is")
            out.append(Scalar(numbers[name], atom("arg", tuple_name(name, images))))
        elif name in images:
            out.append(_image(name, kind, numbers, spec))
        else:
            out.append(Node("argument", (name,), (), kind, name))
    # The corners and steps of descriptors of images, which the module does not have as arguments.
    corners = [x for node in out if isinstance(node, Node) and node.op == IMAGES for x in node.args[1:]]
    return [*out, *(x for x in corners if x not in out)]


def rounding(spec: LaunchSpec) -> list[str]:
    """The host descriptors of a launch that round what they load."""
    held = {name: value.get("descriptor") for name, value in spec.values.items() if isinstance(value, Mapping)}
    return [name for name, inside in held.items() if isinstance(inside, Mapping) and inside.get("round_f32_to_tf32")]


def tuple_name(name: str, images: Container[str]) -> str:
    """A part of a descriptor of images by its place in the tuple: `desc.shape.2` -> `desc.1.2`."""
    for place, part in ((1, ".shape."), (2, ".stride.")):
        head, found, axis = name.partition(part)
        if found and head in images:
            return f"{head}.{place}.{axis}"
    return name


def _image(name: str, kind: Type, numbers: Mapping[str, int], spec: LaunchSpec) -> Node:
    """A descriptor of images: its base, then all its numbers. Raises: NotLifted where the launch does not say them."""
    box = image_box(spec.values.get(name))
    if box is None:
        raise NotLifted(f"the launch does not say where {name} takes its pixels")
    if box.fills_nan:
        raise NotLifted(f"{name} fills what lies outside of its images with NaN")
    rank = len(box.lower) + 2
    lengths = [numbers[f"{name}.shape.{i}"] for i in range(rank)], [numbers[f"{name}.stride.{i}"] for i in range(rank)]
    parts = (*lengths, box.lower, box.upper, box.steps)
    scalars = [Scalar(n, atom("arg", f"{name}.{k}.{i}")) for k, part in enumerate(parts, 1) for i, n in enumerate(part)]
    pointer = Type("ptr", kind.element)
    return Node(IMAGES, (name,), (Node("argument", (f"{name}.0",), (), pointer, f"{name}[0]"), *scalars), kind, name)


def numbers_of(spec: LaunchSpec) -> dict[str, int]:
    """The integers of a launch by the module's names: `n`, `desc.shape.0`, `desc.stride.1`, `pair.0`."""
    out: dict[str, int] = {}
    for name, kind in spec.signature.items():
        _collect(name, kind, spec.values.get(name, spec.constexprs.get(name)), out)
    return out


def _collect(name: str, kind: Any, value: Any, out: dict[str, int]) -> None:
    if isinstance(kind, list):
        items = value.get("$tuple", value.get("tuple", [])) if isinstance(value, dict) else value or []
        for i, inner in enumerate(kind):
            _collect(f"{name}.{i}", inner, items[i] if i < len(items) else None, out)
    elif isinstance(kind, str) and kind.startswith("tensordesc"):
        held = value.get("descriptor", {}) if isinstance(value, dict) else {}
        out.update((f"{name}.shape.{i}", int(n)) for i, n in enumerate(held.get("shape", ())))
        out.update((f"{name}.stride.{i}", int(n)) for i, n in enumerate(held.get("strides", ())))
    elif isinstance(value, (bool, int)) and not math.isnan(value):
        out[name] = int(value)
