"""Names that Triton has moved (`rules/renamed.py`), in what kernels see of its modules.

tl.libdevice.tanh(x)    ->  the kernel's `tl` is a copy of the language that has a `libdevice`
"""

from __future__ import annotations

import ast
import importlib
from types import ModuleType
from typing import Any

from gluonize.read.names.reached import dotted_parts
from gluonize.rules.renamed import renamed
from gluonize.triton_api.language import of_amd


def is_tritons(value: Any) -> bool:
    """Whether it is a module of Triton's."""
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "triton"


def renamed_value(module: str, name: str) -> Any:
    """What a name that a module of Triton's no longer has is today; None where no row says so."""
    dotted = f"{module}.{name}"
    row = renamed(dotted)
    return resolved(row.applied(dotted) or "") if row is not None and row.new else None


def resolved(dotted: str) -> Any:
    """What a dotted name of Triton's denotes, modules imported; None for a name that it does not have."""
    parts = dotted.split(".")
    try:
        found: Any = importlib.import_module(parts[0])
    except (ImportError, ValueError):
        return None
    for number, part in enumerate(parts[1:], 2):
        inner = getattr(found, part, None)
        if inner is None and isinstance(found, ModuleType):
            try:
                inner = importlib.import_module(".".join(parts[:number]))
            except ImportError:
                return None
        if inner is None:
            return None
        found = inner
    return found


def _of_amd(found: Any) -> Any:
    """A function of the device library as AMD's has it: the compiler puts it in place of the generic one in a kernel's globals only."""
    generic = getattr(found, "__module__", "") == "triton.language.extra.libdevice"
    return getattr(of_amd, found.__name__, None) if generic else found


def as_today(value: Any, chains: list[ast.Attribute]) -> Any:
    """What a kernel is to find where its source finds something of Triton's: itself, what it is called today, or a copy of a module
    that has names which moved. chains: the attributes that the kernel asks of it."""
    if not is_tritons(value):
        home = getattr(value, "__module__", None)
        row = renamed(f"{home}.{value.__name__}") if home and hasattr(value, "__name__") else None
        moved = row is not None and row.of_target and hasattr(of_amd, value.__name__)
        return resolved(row.applied(f"{home}.{value.__name__}") or "") if moved else value
    asked = [dotted_parts(node)[1:] for node in chains]
    if (row := renamed(value.__name__)) is not None and row.of_target and _has(asked):
        return resolved(row.new)
    for parts in asked:
        value = _with(value, parts)
    return value


def _with(module: ModuleType, parts: list[str]) -> ModuleType:
    name, *rest = parts
    held, dotted = getattr(module, name, None), f"{module.__name__}.{name}"
    found = held
    row = renamed(dotted)
    if row is not None and row.new and (held is None or row.of_target and _has([rest])):
        found = _of_amd(resolved(row.applied(dotted) or ""))
    elif rest and is_tritons(held):
        found = _with(held, rest)
    if found is held or found is None:
        return module
    made = ModuleType(module.__name__)
    made.__dict__.update(vars(module))
    setattr(made, name, found)
    return made


def _has(asked: list[list[str]]) -> bool:
    """Whether the device library of AMD has what is asked of a device library; what it lacks is refused under its old name."""
    return all(hasattr(of_amd, parts[0]) for parts in asked if parts)


__all__ = ["as_today", "is_tritons", "renamed_value", "resolved"]
