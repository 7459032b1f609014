"""Launches with other compile-time flags than one that was given: what stands on the other side of an `if` is then translated too.

Flags are constexpr parameters that are true or false, and pointers that may be None.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from gluonize.general.launches.types import element_of, narrowest_floats
from gluonize.output.file.standalone import changes
from gluonize.read.spec.launch import LaunchSpec

MOST_FLAGS = 8


def launches_of_other_flags(spec: LaunchSpec, fn: Any) -> list[tuple[LaunchSpec, ...]]:
    """The launch of `fn` with one flag the other way, and with all of them, without values: those are of the given flags.

    Each with alternatives, of which the first that can be translated counts: a flag may need the pointers that it is about.
    """
    optional = _compared_with_none(fn)
    flags = [name for name, value in spec.constexprs.items() if isinstance(value, bool)]
    missing = [name for name in optional if spec.signature.get(name) == "constexpr"]
    given = [name for name in optional if element_of(spec.signature.get(name))]
    plain = replace(spec, values={})
    with_all, without = _given(plain, missing), _left_out(plain, given)
    out = [
        (_flipped(plain, name), *(_flipped(other, name) for other in (with_all, without) if other)) for name in flags
    ]
    out += [(other,) for name in missing if (other := _given(plain, [name])) is not None]
    out += [(other,) for name in given if (other := _left_out(plain, [name])) is not None]
    if len(flags) > 1:
        out.append(tuple(_all_flipped(other, flags) for other in (plain, with_all, without) if other))
    return [tuple(_named(spec, other) for other in others) for others in out[:MOST_FLAGS]]


def _all_flipped(spec: LaunchSpec, flags: list[str]) -> LaunchSpec:
    for name in flags:
        spec = _flipped(spec, name)
    return spec


def _flipped(spec: LaunchSpec, name: str) -> LaunchSpec:
    return replace(spec, constexprs=spec.constexprs | {name: not spec.constexprs[name]})


def _given(spec: LaunchSpec, names: list[str]) -> LaunchSpec | None:
    """The launch with tensors for arguments that are None, like its narrowest ones; None where there is nothing to be changed."""
    like = narrowest_floats(spec)
    if not names or not like:
        return None
    constexprs = {name: value for name, value in spec.constexprs.items() if name not in names}
    attrs = spec.attrs | dict.fromkeys(names, spec.attrs.get(like[0], ""))
    signature = spec.signature | dict.fromkeys(names, f"*{element_of(spec.signature[like[0]])}")
    return replace(spec, signature=signature, constexprs=constexprs, attrs=attrs)


def _left_out(spec: LaunchSpec, names: list[str]) -> LaunchSpec | None:
    """The launch with None for some tensors; None where there is nothing to be changed."""
    if not names:
        return None
    attrs = {name: flags for name, flags in spec.attrs.items() if name not in names}
    signature = spec.signature | dict.fromkeys(names, "constexpr")
    return replace(spec, signature=signature, constexprs=spec.constexprs | dict.fromkeys(names), attrs=attrs)


def _named(spec: LaunchSpec, other: LaunchSpec) -> LaunchSpec:
    return replace(other, id=f"{spec.id} with {', '.join(changes(spec, other))}")


def _compared_with_none(fn: Any) -> list[str]:
    """The parameters that a kernel compares with None."""
    compared = {
        node.left.id
        for node in ast.walk(ast.parse(fn.src))
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name)
        if isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None
    }
    return [param.name for param in fn.params if param.name in compared and not param.is_constexpr]


__all__ = ["launches_of_other_flags"]
