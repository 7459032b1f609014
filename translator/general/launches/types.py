"""Launches with other element types than one that was given, for which the same text may do.

Types of the same width have the same layouts; of other widths, formulas may say how layouts follow. Which ones a kernel then holds for
is found by translating them (`gluonize.general.general_kernels`).
"""

from __future__ import annotations

from dataclasses import replace

from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.elements import bits_of

_FLOATS = ("fp16", "bf16", "fp32")


def launches_of_other_types(spec: LaunchSpec, fp8: tuple[str, ...]) -> list[LaunchSpec]:
    """The launch with each other float type for its narrowest float pointers, and no values: those are of the given type.

    Data come in several types; sums and statistics beside them stay wide. fp8: types of 8 bits to be tried too.
    """
    names = narrowest_floats(spec)
    if not names:
        return []
    own, out = element_of(spec.signature[names[0]]), []
    for other in (*_FLOATS, *fp8):
        if other != own:
            signature = spec.signature | {name: spec.signature[name].replace(own, other) for name in names}
            id = f"{spec.id} with {', '.join(names)} {other}"
            out.append(replace(spec, id=id, signature=signature, values={}))
    return out


def narrowest_floats(spec: LaunchSpec) -> list[str]:
    """The pointers to the narrowest floats of a launch, all of one type."""
    floats = {
        name: found for name, kind in spec.signature.items() if (found := element_of(kind)).startswith(("fp", "bf"))
    }
    own = min(floats.values(), key=bits_of, default="")
    return [name for name, found in floats.items() if found == own]


def element_of(kind: object) -> str:
    """The element type of a pointer; "" for what is none."""
    return kind.removeprefix("*").removeprefix("k") if isinstance(kind, str) and kind.startswith("*") else ""


__all__ = ["element_of", "launches_of_other_types", "narrowest_floats"]
