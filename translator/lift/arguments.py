"""The arguments of a kernel's module for one launch: integers with their values, pointers and descriptors by name."""

from __future__ import annotations

import math
from typing import Any

from translator.lift.machine import NotLifted
from translator.lift.scalars import Scalar, atom
from translator.lift.values import Node, Value
from translator.source.launch_spec import LaunchSpec
from translator.ttgir.module import Module


def arguments_of(module: Module, spec: LaunchSpec, changed: dict[str, int] | None = None) -> list[Value]:
    """One value per argument of the module. changed: integers by name that are not the launch's.

    Raises: NotLifted where the launch gives an integer no value.
    """
    numbers = numbers_of(spec) | (changed or {})
    entry = module.entry
    out: list[Value] = []
    for (value, kind), name in zip(entry.arguments, entry.argument_names):
        if kind.kind == "int" and kind.shape is None:
            if name not in numbers:
                raise NotLifted(f"the launch does not say what {name} is")
            out.append(Scalar(numbers[name], atom("arg", name)))
        else:
            out.append(Node("argument", (name,), (), kind, name))
    return out


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
