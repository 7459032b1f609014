"""Launches in host code, completed by the launches that a text is written for: what host code shows, and of those what it does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gluonize.read.launches.bound.binding import BoundConfig, BoundValue, LaunchBinding
from gluonize.read.spec.descriptors import descriptor_type
from gluonize.read.spec.launch import LaunchSpec, compiled_as

_NO_CONFIG = BoundConfig()


@dataclass(frozen=True)
class BoundLaunch:
    """A binding with one configuration, completed by what a launch that the text was written for has: `spec`. differs: how what host code
    shows differs from that launch, by name; unknown: what it does not show."""

    binding: LaunchBinding
    config: BoundConfig
    spec: LaunchSpec
    differs: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...]


def bound_launches(bindings: Iterable[LaunchBinding], served: Sequence[LaunchSpec]) -> list[BoundLaunch]:
    """Every binding that was read, with every configuration, completed by the launch of its kernel that it differs least from."""
    out = []
    for binding in bindings:
        own = [spec for spec in served if spec.kernel == binding.kernel]
        if binding.problem or not own:
            continue
        for config in binding.configs or (_NO_CONFIG,):
            ways = [_completed(binding, config, spec) for spec in own]
            out.append(min(ways, key=lambda way: len(way.differs)))
    return out


def asked_launches(bound: Iterable[BoundLaunch], served: Iterable[LaunchSpec]) -> list[LaunchSpec]:
    """The launches that are to be tried: those that the text was not written for, once each."""
    known = {compiled_as(spec.as_json()) for spec in served}
    unique = {compiled_as(way.spec.as_json()): way.spec for way in bound}
    return [spec for key, spec in unique.items() if key not in known]


def _completed(binding: LaunchBinding, config: BoundConfig, base: LaunchSpec) -> BoundLaunch:
    """A binding with what `base` has where it shows nothing."""
    signature, constexprs, attrs = dict(base.signature), dict(base.constexprs), dict(base.attrs)
    differs: list[tuple[str, str]] = []
    unknown: list[str] = []
    for name, value in binding.arguments.items():
        was = base.signature.get(name, "constexpr")
        if name in config.constexprs:
            value = BoundValue("constexpr", config.constexprs[name], is_constexpr=True)
        if value.described is not None and was != "constexpr" and value.described != (descriptor_type(was) is not None):
            # Nothing of a descriptor's element or tile has a place in the type of a pointer, or the other way round.
            known = descriptor_type(was)
            signature[name] = "*fp32" if known is None else f"*{known.dtype}"
            attrs[name] = "DS"
            differs.append((name, f"{name} is a {'descriptor' if value.described else 'tensor'} there"))
            continue
        if not value.kind or value.kind == "*" and isinstance(was, str) and was.startswith(("*", "tensordesc")):
            unknown.append(name)
            continue
        if (known := descriptor_type(value.kind)) is not None and descriptor_type(was) == known:
            continue
        if isinstance(was, str) and was.startswith("tensordesc") and known is None:
            element = was.partition("<")[2].partition("[")[0]
            if value.kind.startswith("*") and value.kind[1:] != element:
                differs.append((name, f"{name} is of {value.kind[1:]} there"))
            continue  # its tile is not compared
        kind = "*fp32" if value.kind == "*" else value.kind
        signature[name] = kind
        if kind == "constexpr":
            constexprs[name] = value.value
            attrs.pop(name, None)
            if was != "constexpr" or base.constexprs.get(name) != value.value:
                differs.append((name, f"{name} is {shown(value.value)} there"))
            continue
        constexprs.pop(name, None)
        if kind != was:
            told = (
                "a tensor" if value.kind == "*" else str(value.number if was == "constexpr" and value.number else kind)
            )
            differs.append((name, f"{name} is {told.removeprefix('*')} there"))
        if kind.startswith("*"):
            attrs[name] = base.attrs.get(name) or "DS"
        elif value.divisible is not None:
            attrs.pop(name, None)
            attrs |= {name: "D"} if value.divisible else {}
    options = {**base.options, **binding.options, **config.options}
    for name, given in options.items():
        if base.options.get(name, given) != given:
            differs.append((name, f"{name} is {given} there"))
    values = {name: value for name, value in binding.values.items() if signature.get(name, "constexpr") != "constexpr"}
    spec = replace(
        base, signature=signature, constexprs=constexprs, attrs=attrs, options=options, values=values, grid=binding.grid
    )
    return BoundLaunch(binding, config, spec, tuple(differs), tuple(unknown))


def shown(value: Any) -> str:
    if isinstance(value, dict) and len(value) == 1:
        return str(next(iter(value.values())))
    return str(value)
