"""Values that JSON lacks, as launch specs write them, to and from Python.

| JSON | Python |
|---|---|
| `{"$dtype": "fp16"}` | `tl.float16` (Triton's names `int32`, `fp16`, and the signature's short ones, `i32`, `u1`) |
| `{"$torch": "bfloat16"}` | what stands for `torch.bfloat16`; torch is not imported |
| `{"$float": "inf"}` | `float("inf")`; also `-inf`, `nan`, and any finite float written as text |
| `{"$tuple": [1, 2]}` | `(1, 2)` |
| `{"$jit": "module:function"}` | the jit function of that name, loaded like a kernel |
| `{"$class": "module:Name"}` | the class of that name, an aggregate; a module may be a path, `folder/file.py:Name` |
| `{"$call": "module:function", "args": [8]}` | what the function gives for these arguments: a class made for a constant |
| `{"$layout": "BlockedLayout(...)"}` | the Gluon layout with that `repr` |
| `{"$constexpr": 4}` | `tl.constexpr(4)` |

A list stays a list; every element is decoded.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.evaluate.host_values import HostName

MARKERS = ("$dtype", "$torch", "$float", "$tuple", "$jit", "$constexpr", "$class", "$call", "$layout")

# The short names of signatures beside the names that `tl.dtype` takes (`triton.language.str_to_ty`).
_DTYPE_ALIASES = {
    "i1": "int1",
    "u1": "int1",
    "bool": "int1",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
}
_DTYPES = (
    [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    + ["int1", "fp8e4b15", "fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16", "fp16", "bf16", "fp32", "fp64", "void"]
)  # fmt: skip


def value_problem(value: Any) -> str | None:
    """What is wrong with an encoded value, or None. Needs no Triton."""
    if isinstance(value, list):
        return next((problem for item in value if (problem := value_problem(item))), None)
    if not isinstance(value, dict):
        return None
    marker = _marker(value)
    if marker is None:
        return f"an object must have exactly one of the keys {', '.join(MARKERS)}, not {sorted(value)}"
    payload = value[marker]
    if problem := value_problem(value.get("args", [])):
        return problem
    if marker == "$constexpr":
        return value_problem(payload)
    if marker == "$tuple":
        return value_problem(payload) if isinstance(payload, list) else "$tuple takes a list"
    if not isinstance(payload, str):
        return f"{marker} takes a string, not {payload!r}"
    if marker == "$dtype" and _DTYPE_ALIASES.get(payload, payload) not in _DTYPES:
        return f"unknown dtype {payload!r} (known: {', '.join(_DTYPES)})"
    if marker == "$torch" and HostName.of_dtype(payload) is None:
        return f"torch has no element type {payload!r}"
    if marker in ("$jit", "$class", "$call") and (payload.count(":") != 1 or not all(payload.split(":"))):
        return f'{marker} takes "module:function", not {payload!r}'
    if marker == "$float":
        try:
            float(payload)
        except ValueError:
            return f"$float takes a number as text, such as inf, not {payload!r}"
    return None


def _marker(value: dict) -> str | None:
    """The one marker of an encoded object, or None where it is none; `args` stand beside `$call` alone."""
    markers = [key for key in value if key in MARKERS]
    others = (
        set(value)
        - set(markers)
        - ({"args"} if markers == ["$call"] and isinstance(value.get("args", []), list) else set())
    )
    return markers[0] if len(markers) == 1 and not others else None


def decode_value(value: Any, load_jit: Callable[..., Any] | None = None) -> Any:
    """The Python value behind an encoded one; `load_jit("module:function")` loads what `$jit` names.

    Raises: TranslationError `spec-value` for an encoding that does not exist, or `$jit` without `load_jit`.
    """
    if problem := value_problem(value):
        raise TranslationError(Diagnostic("spec-value", f"cannot decode {value!r}: {problem}"))
    return _decode(value, load_jit)


def _decode(value: Any, load_jit: Callable[..., Any] | None) -> Any:
    if isinstance(value, list):
        return [_decode(item, load_jit) for item in value]
    if not isinstance(value, dict):
        return value
    marker = _marker(value)
    assert marker is not None, f"{value!r} was not checked"
    payload = value[marker]
    if marker == "$float":
        return float(payload)
    if marker == "$torch":
        return HostName.of_dtype(payload)
    if marker == "$tuple":
        return tuple(_decode(item, load_jit) for item in payload)
    if marker in ("$jit", "$class", "$call"):
        if load_jit is None:
            raise TranslationError(Diagnostic("spec-value", f"a name of the program is not possible here: {payload}"))
        return load_jit(payload) if marker != "$call" else load_jit(payload, _decode(value.get("args", []), load_jit))
    if marker == "$layout":
        from gluonize.read.evaluate.gluon_layouts import layout_of

        return layout_of(payload)
    from gluonize.triton_api.language import tl

    if marker == "$dtype":
        return tl.dtype(_DTYPE_ALIASES.get(payload, payload))
    return tl.constexpr(_decode(payload, load_jit))


def encode_value(value: Any) -> Any:
    """The JSON form of a Python value; undoes `decode_value`.

    Raises: TranslationError `spec-value` for a value with no JSON form.
    """
    if isinstance(value, enum.Enum) and isinstance(value, (int, float, str)):
        return encode_value(value.value)  # an IntEnum member is its number to a kernel
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, tuple):
        return {"$tuple": [encode_value(item) for item in value]}
    if isinstance(value, list):
        return [encode_value(item) for item in value]
    if isinstance(value, HostName) and value.torch_dtype:
        return {"$torch": value.torch_dtype}
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        return {"$torch": str(value).removeprefix("torch.")}
    from gluonize.triton_api.jit_functions import JITCallable
    from gluonize.triton_api.language import tl

    if isinstance(value, tl.dtype):
        return {"$dtype": value.name}
    if isinstance(value, tl.constexpr):
        return {"$constexpr": encode_value(value.value)}
    if type(value).__module__.startswith("triton.experimental.gluon.language") and hasattr(
        value, "__dataclass_fields__"
    ):
        return {"$layout": repr(value)}
    if isinstance(value, JITCallable):
        return {"$jit": f"{value.__module__}:{value.__qualname__}"}
    raise TranslationError(
        Diagnostic("spec-value", f"a {type(value).__name__} has no form in a launch spec: {value!r}")
    )
