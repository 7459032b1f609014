"""A launch spec and a jit function, as the arguments of `triton.compiler.ASTSource` and `GluonASTSource`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError, did_you_mean, nearest
from gluonize.read.evaluate.spec_values import decode_value
from gluonize.read.spec.launch import LaunchSpec

# What the AMD backend's `parse_attr` makes of the flags (triton/backends/amd/compiler.py).
_LARGEST_ELEMENT = 8  # bytes
_ATTRIBUTES = {"D": ["tt.divisibility", 16], "S": ["tt.pointer_range", 32]}


@dataclass(frozen=True)
class CompileArguments:
    """`signature` by argument name, `constexprs` and `attrs` by path: `(2,)` is argument 2, `(2, 0)` its first element."""

    signature: dict[str, Any]
    constexprs: dict[tuple[int, ...], Any]
    attrs: dict[tuple[int, ...], list]


def compile_arguments(spec: LaunchSpec, fn: Any, load_jit: Callable[[str], Any] | None = None) -> CompileArguments:
    """What Triton compiles `fn` (a JITFunction or GluonJITFunction) with for `spec`; `load_jit` resolves `$jit` values.

    An argument that the signature leaves out is a constexpr with its given or default value.
    Raises: TranslationError with `spec-unknown-argument`, `spec-missing`, `spec-type`: one diagnostic per argument.
    """
    problems: list[Diagnostic] = []
    names = list(fn.arg_names)
    given = {name: field for field in ("attrs", "constexprs", "signature") for name in getattr(spec, field)}
    meant = set()  # arguments that are there under a wrong name, whose absence is no further mistake
    for name, field in given.items():
        if name not in names:
            meant.add(nearest(name, [n for n in names if n not in given]))
            help = did_you_mean(name, names, f"its arguments are {', '.join(names)}")
            message = f"{field} of launch {spec.id}: {spec.kernel} has no argument {name}"
            problems.append(Diagnostic("spec-unknown-argument", message, help=help))
    signature: dict[str, Any] = {}
    constexprs: dict[tuple[int, ...], Any] = {}
    attrs: dict[tuple[int, ...], list] = {}
    for index, param in enumerate(fn.params):
        try:
            kind = _type_of(spec, param)
            values = _value_of(spec, param, kind, load_jit)
        except TranslationError as error:
            problems.extend(() if param.name in meant else error.diagnostics)
            continue
        flags = spec.attrs.get(param.name, "")
        if fn.is_gluon() and isinstance(kind, str) and kind.startswith("tensordesc") and kind.endswith("]>"):
            kind, values, flags = descriptor_tuple(kind, spec.values.get(param.name))
        signature[param.name] = _as_tuples(kind)
        constexprs.update(_constexpr_paths(kind, values, (index,)))
        attrs.update(_attribute_paths(flags, (index,)))
    if problems:
        raise TranslationError(*problems)
    return CompileArguments(signature, constexprs, attrs)


def descriptor_tuple(kind: str, value: Any) -> tuple[list, list, list]:
    """Types, compile-time values and flags of `(base, shape, strides)`, which a translation takes for a descriptor.

    kind: the source's type, `tensordesc<bf16[128, 64]>`; value: what the launch says the argument held, if it does. The
    last stride is 1, as every descriptor's; the other integers have the flags that Triton would find.
    """
    element, _, block = kind.partition("<")[2].partition("[")
    rank = block.count(",") + 1
    held = value.get("descriptor", {}) if isinstance(value, dict) else {}
    base = held.get("base", {})
    storage = base.get("tensor", base).get("storage")
    small = "S" if storage is not None and storage * _LARGEST_ELEMENT < 2**31 else ""
    flags: list = [small + "D"]
    for name in ("shape", "strides"):
        flags.append(["D" if n and n % 16 == 0 else "" for n in held.get(name) or [0] * rank])
    kinds = [f"*{element}", ["i32"] * rank, ["i64"] * (rank - 1) + ["constexpr"]]
    return kinds, [None, [None] * rank, [None] * (rank - 1) + [1]], flags


def _type_of(spec: LaunchSpec, param: Any) -> Any:
    kind = spec.signature.get(param.name, "constexpr")
    if param.is_constexpr and kind != "constexpr" and not isinstance(kind, list):
        message = f"{param.name} of {spec.kernel} is a tl.constexpr, but the signature of {spec.id} says {kind}"
        raise TranslationError(
            Diagnostic("spec-type", message, help=f'give its value in "constexprs": {{"{param.name}": ...}}')
        )
    return kind


def _value_of(spec: LaunchSpec, param: Any, kind: Any, load_jit: Callable[[str], Any] | None) -> Any:
    if param.name in spec.constexprs:
        return decode_value(spec.constexprs[param.name], load_jit)
    if not _has_constexpr(kind):
        return None
    if param.has_default and kind == "constexpr":
        # What a launch gives by name is an option and an argument where Triton has both.
        return spec.options.get(param.name, param.default)
    what = "value" if param.is_constexpr or param.name in spec.signature else "type"
    field = "constexprs" if what == "value" else "signature"
    message = f"{param.name} of {spec.kernel} has no {what} in launch {spec.id}"
    example = "128" if what == "value" else '"*fp16"' if "ptr" in param.name else '"i32"'
    raise TranslationError(
        Diagnostic(
            "spec-missing",
            message,
            help=f'give it in the launch: "{field}": {{"{param.name}": {example}, ...}}',
        )
    )


def _has_constexpr(kind: Any) -> bool:
    return any(map(_has_constexpr, kind)) if isinstance(kind, list) else kind == "constexpr"


def _as_tuples(kind: Any) -> Any:
    return tuple(map(_as_tuples, kind)) if isinstance(kind, list) else kind


def _constexpr_paths(kind: Any, value: Any, path: tuple[int, ...]) -> dict[tuple[int, ...], Any]:
    if isinstance(kind, list):
        inner = list(value) if isinstance(value, (list, tuple)) else [None] * len(kind)
        inner += [None] * (len(kind) - len(inner))
        return {k: v for i, item in enumerate(kind) for k, v in _constexpr_paths(item, inner[i], (*path, i)).items()}
    return {path: value} if kind == "constexpr" else {}


def _attribute_paths(flags: Any, path: tuple[int, ...]) -> dict[tuple[int, ...], list]:
    if isinstance(flags, list):
        return {k: v for i, item in enumerate(flags) for k, v in _attribute_paths(item, (*path, i)).items()}
    found = [list(attribute) for letter, attribute in _ATTRIBUTES.items() if letter in flags]
    return {path: found} if found else {}
