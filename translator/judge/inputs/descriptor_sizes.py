"""Launches whose host descriptors say that their tensors are smaller: tiles are cut, and loops make other trip counts.

A kernel that gets its sizes from descriptors has no integer argument to vary. Extents that are equal change together, and so do the integer
arguments that are equal to them; strides and storage stay, so what is cut off is still there to be read by mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gluonize.judge.inputs.inputs import DescriptorArgument, Inputs, shrunk, size_arguments, with_values
from gluonize.read.spec.launch import LaunchSpec

MOST = 4  # extents that are changed one at a time
SMALL, SMALL_BY_16 = 5, 16


def with_smaller_descriptors(spec: LaunchSpec, inputs: Inputs) -> Iterator[Inputs]:
    """All extents ragged, then each small. What is divisible by 16 stays so, as a specialization may promise it."""
    extents = {e for value in inputs.arguments.values() if isinstance(value, DescriptorArgument) for e in value.shape}
    ragged = {
        extent: smaller for extent in sorted(extents) if (smaller := shrunk(extent, extent % 16 == 0)) is not None
    }
    if ragged:
        yield _with_extents(spec, inputs, ragged, "ragged descriptors")
    for extent in sorted(extents, reverse=True)[:MOST]:
        small = SMALL if extent % 16 else SMALL_BY_16
        if small < extent:
            yield _with_extents(spec, inputs, {extent: small}, f"descriptors with {small} for {extent}")


def _with_extents(spec: LaunchSpec, inputs: Inputs, changed: dict[int, int], what: str) -> Inputs:
    arguments = {
        name: (
            replace(value, shape=tuple(changed.get(extent, extent) for extent in value.shape))
            if isinstance(value, DescriptorArgument)
            else value
        )
        for name, value in inputs.arguments.items()
    }
    numbers = {
        name: changed[spec.values[name]]
        for name in size_arguments(spec)
        if spec.values[name] in changed
        and ("D" in str(spec.attrs.get(name, ""))) <= (changed[spec.values[name]] % 16 == 0)
    }
    return with_values(replace(inputs, arguments=arguments), spec, numbers, what)
