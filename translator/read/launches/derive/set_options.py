"""`--set NAME=VALUE` and `--set KERNEL.NAME=VALUE`: types and values for launches that are derived."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.spec.launch import SCALAR_TYPES, type_meant, type_problem

_WORDS = {"None": None, "True": True, "False": False}
# Longer spellings of types, behind `tl.` or `torch.` or alone.
_SPELLED = {
    "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float32": "fp32", "float": "fp32", "float64": "fp64", "double": "fp64",
    "int": "i32", "long": "i64", "bool": "u1", "int1": "i1", **{f"int{b}": f"i{b}" for b in (8, 16, 32, 64)},
    **{f"uint{b}": f"u{b}" for b in (8, 16, 32, 64)}, "float8e4nv": "fp8e4nv", "float8e5": "fp8e5", "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5", "float8e4b8": "fp8e4b8", "float8e5b16": "fp8e5b16", "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16",
}  # fmt: skip


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """`NAME=VALUE` texts: the value is JSON if it parses as that, else text (`x_ptr=*fp16`, `N=i32`, `BLOCK=128`); `NAME` may be
    `KERNEL.NAME`. Types are in signature spelling: `tl.float32` and `torch.float32` become `fp32`.

    Raises: TranslationError `spec-set`.
    """
    out: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not all(part.isidentifier() for part in name.split(".")):
            raise TranslationError(Diagnostic("spec-set", f"--set takes NAME=VALUE or KERNEL.NAME=VALUE, not {text!r}"))
        try:
            out[name] = json.loads(value)
        except json.JSONDecodeError:
            quoted = len(value) > 1 and value[0] == value[-1] == "'"
            out[name] = value[1:-1] if quoted else _WORDS[value] if value in _WORDS else type_spelling(value)
    return out


def check_types(settings: Mapping[str, Any]) -> None:
    """Raises: TranslationError `spec-set` for a pointer to something that is no type, with what was probably meant."""
    for name, value in settings.items():
        if isinstance(value, str) and value.startswith("*") and (problem := type_problem(value)):
            near = type_meant(value)
            help = f"--set '{name}={near}'" if near else ""
            raise TranslationError(Diagnostic("spec-set", f"--set {name}={value}: {problem}", help=help))


def type_spelling(text: str) -> str:
    """A type as signatures spell it: `*fp16` for `*torch.float16`, `fp32` for `tl.float32`; other text as it is."""
    star = "*" if text.startswith("*") else ""
    plain = text.removeprefix("*")
    for prefix in ("tl.", "torch.", "triton.language."):
        plain = plain.removeprefix(prefix)
    if plain in _SPELLED and (
        plain != text.removeprefix("*") or plain not in ("float", "int", "bool", "long", "half", "double")
    ):
        return star + _SPELLED[plain]
    return star + plain if plain in SCALAR_TYPES else text


def settings_for(settings: Mapping[str, Any], kernel: str) -> dict[str, Any]:
    """What the settings say for one kernel, by argument: those with its name win over those without any."""
    plain = kernel.rpartition(".")[2]
    out = {name: value for name, value in settings.items() if "." not in name}
    for name, value in settings.items():
        owner, _, argument = name.rpartition(".")
        if owner in (kernel, plain) and owner:
            out[argument] = value
    return out
