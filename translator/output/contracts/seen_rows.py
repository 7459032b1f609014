"""Configurations as the arguments of a launch show them to host code: `{"a_ptr": "float16", "BLOCK": 64}`."""

from __future__ import annotations

import json
from typing import Any

from gluonize.write.contracts.configuration import Configuration

# How torch calls the element types that Triton's spelling does not give away.
_TORCH_NAMES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8e4nv": "float8_e4m3fn",
    "fp8e4b8": "float8_e4m3fnuz",
    "fp8e5": "float8_e5m2",
    "fp8e5b16": "float8_e5m2fnuz",
    "i1": "bool",
    "u1": "bool",
    "B": "bool",
}

_TOLD = (bool, int, float, str)  # what host code tells by its value


def torch_name(element: str) -> str:
    """`fp16` -> `float16`, `i32` -> `int32`."""
    if element in _TORCH_NAMES:
        return _TORCH_NAMES[element]
    return element.replace("u", "uint").replace("i", "int") if element[0] == "i" else element.replace("u", "uint")


def shown(values: Configuration) -> dict[str, Any]:
    """What the arguments of a launch show of a configuration: dtypes, values, num_warps."""
    row: dict[str, Any] = {}
    for key, value in values.items():
        if key.kind == "element":
            row[key.name] = torch_name(value)
        elif key.kind in ("constexpr", "num_warps", "num_ctas") and type(value) in (*_TOLD, type(None)):
            row[key.name] = value
    return row


def spelled(row: dict[str, Any]) -> str:
    """A row as Python writes it."""
    items = (f"{json.dumps(k)}: {json.dumps(v) if isinstance(v, str) else repr(v)}" for k, v in row.items())
    return "{" + ", ".join(items) + "}"


# Of a launch whose arguments are `given`; and whether it may have a `row`: what it does not show may be anything.
_SHOWN = 'name: str(x.dtype).rpartition(".")[2] if hasattr(x, "dtype") else x'
SEEN = f"seen = {{{_SHOWN} for name, x in given.items()}}"
AS_LAUNCHED = {"num_warps": 4, "num_ctas": 1}  # without a number of its own
MATCHES = "all(seen.get(name, value) == value for name, value in row.items())"
