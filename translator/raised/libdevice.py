"""Functions of Triton's libdevice for AMD by the symbols that they call: read from its source, which says them as data."""

from __future__ import annotations

import ast
import functools
import importlib.util
from pathlib import Path

_ELEMENTS = {"fp32": "f32", "fp64": "f64", "fp16": "f16", "int32": "i32", "int64": "i64"}


@functools.lru_cache(maxsize=1)
def _functions() -> dict[str, str]:
    """{symbol: function}."""
    found = importlib.util.find_spec("triton.language.extra.hip.libdevice")
    assert found is not None and found.origin is not None
    out: dict[str, str] = {}
    for node in ast.parse(Path(found.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and inner.value.startswith("__"):
                    out.setdefault(inner.value, node.name)
    return out


def function_of(symbol: str) -> str | None:
    """What libdevice calls the function of a symbol, None for one that it has not."""
    return _functions().get(symbol)
