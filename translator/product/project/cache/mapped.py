"""The same data with other strings: dataclasses, containers and what is in them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any


def mapped(value: Any, move: Callable[[str], str]) -> Any:
    """`value` with `move` applied to every string in it, keys of dicts too; what has none is the same object."""
    if isinstance(value, str):
        return move(value)
    if isinstance(value, (tuple, list, set, frozenset)):
        items = [mapped(item, move) for item in value]
        if not isinstance(value, (set, frozenset)) and all(new is old for new, old in zip(items, value)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {mapped(name, move): mapped(item, move) for name, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        old = {f.name: getattr(value, f.name) for f in fields(value)}
        new = {name: mapped(item, move) for name, item in old.items()}
        if all(new[name] is old[name] for name in old):
            return value
        made = copy.copy(value)
        for name, item in new.items():
            object.__setattr__(made, name, item)
        return made
    return value
