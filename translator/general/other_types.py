"""Launches with other element types than one that was given, for which the same text may do.

Types of the same width have the same layouts; of other widths, formulas may say how layouts follow. Which ones a kernel then holds for
is found by translating them (`translator.general.general_kernels`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from translator.source.launch_spec import LaunchSpec

_FLOATS = ("fp16", "bf16", "fp32")


def launches_of_other_types(spec: LaunchSpec, fp8: tuple[str, ...]) -> list[LaunchSpec]:
    """The launch with each other float type for the pointers of the type that most of its pointers have, and no values: those are of
    the given type. fp8: the types of 8 bits that the target has, tried where the given type is not one of 32."""
    counts = Counter(kind for kind in spec.signature.values() if _element(kind) in (*_FLOATS, *fp8))
    if not counts:
        return []
    most = counts.most_common(1)[0][0]
    names = [name for name, kind in spec.signature.items() if kind == most]
    out = []
    for other in (*_FLOATS, *(fp8 if _element(most) != "fp32" else ())):
        if other != _element(most):
            signature = spec.signature | dict.fromkeys(names, most.replace(_element(most), other))
            id = f"{spec.id} with {', '.join(names)} {other}"
            out.append(replace(spec, id=id, signature=signature, values={}))
    return out


def _element(kind: object) -> str:
    """The element type of a pointer; "" for what is none."""
    return kind.removeprefix("*").removeprefix("k") if isinstance(kind, str) and kind.startswith("*") else ""


__all__ = ["launches_of_other_types"]
