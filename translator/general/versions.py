"""Kernels of a request made general: one text for their launches and for others, where formulas give its layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from translator.general.box import Box
from translator.general.kernels import NO_FORMULA, WARPS, Given, Layouts, alike, general_layouts, with_sizes
from translator.general.written import as_written
from translator.layout.size_range import SizeRange
from translator.rewrite.configuration import Key
from translator.rewrite.contracts import shape_parameters
from translator.rewrite.emitted import EmittedKernel
from translator.rewrite.kernel_family import KernelVersion
from translator.rewrite.merge import joined
from translator.source.launch_spec import LaunchSpec
from translator.ttgir.elements import bits_of

Trial = Callable[[LaunchSpec], EmittedKernel | None]


def general_versions(
    versions: list[KernelVersion], lanes: int, trial: Trial
) -> tuple[list[KernelVersion], tuple[str, ...]]:
    """The versions, those of a kernel with one general text where there is one; and a note for each kernel on what it holds for.

    lanes: of a warp. trial: translates a launch that was not asked for; None where it is refused.
    """
    out, notes = list(versions), []
    for name in dict.fromkeys(v.loaded.qualname for v in versions):
        own = [i for i, v in enumerate(versions) if v.loaded.qualname == name]
        found = _general([versions[i] for i in own], lanes, trial)
        if isinstance(found, str):
            notes.append(f"{name} holds for the launches given: {found}")
            continue
        for i, version in zip(own, found):
            out[i] = version
        notes.append(f"{name} holds for {', '.join(map(str, found[0].holds_for))}")
    return out, tuple(notes)


def _general(versions: Sequence[KernelVersion], lanes: int, trial: Trial) -> list[KernelVersion] | str:
    """The launches of one kernel with formulas for layouts; or why it has none."""
    tiles = _tiles(versions)
    groups: list[list[KernelVersion]] = []
    for version in versions:
        group = next((g for g in groups if alike(g[0].emitted, version.emitted, joined=True)), None)
        groups.append([version]) if group is None else group.append(version)
    box: Box | None = None
    made: dict[str, Layouts] = {}  # by the launch
    for group in groups:
        found = general_layouts([_given(v) for v in group], tiles, lanes, trial)
        if isinstance(found, str):
            return found
        box = found[0] if box is None else _common(box, found[0])
        made |= dict.fromkeys((v.spec.id for v in group), found[1])
    used = frozenset().union(*(layout.sizes for layouts in made.values() for layout in layouts.values()))
    shared = tuple(size for size in box or () if size.name in used)
    if not shared or any(v.configuration[key] not in size for v in versions for key, size in _keys(v, shared)):
        return NO_FORMULA
    written = [
        replace(v, emitted=as_written(v.emitted, made[v.spec.id], shared, WARPS), holds_for=shared) for v in versions
    ]
    one = len(joined(v.emitted.kernel.function for v in written)) == 1
    return written if one else "its launches have different formulas"


def tried_corners(version: KernelVersion) -> list[LaunchSpec]:
    """Launches with the least and with the greatest of all sizes: what the formulas say of them is checked as any launch is."""
    out = []
    for sizes in ({s.name: s.least for s in version.holds_for}, {s.name: s.most for s in version.holds_for}):
        own = {key.name: value for key, value in version.configuration.items()}
        if sizes and any(own[name] != value for name, value in sizes.items()):
            told = ", ".join(f"{name}={value}" for name, value in sizes.items())
            spec = with_sizes(version.spec, {WARPS: version.num_warps} | sizes)
            out.append(replace(spec, id=f"{version.spec.id} with {told}"))
    return out


def _keys(version: KernelVersion, box: Box) -> list[tuple[Key, SizeRange]]:
    return [(key, size) for size in box for key in version.configuration if key.name == size.name]


def _common(one: Box, other: Box) -> Box:
    """What two boxes share; both have the same sizes."""
    return tuple(SizeRange(a.name, max(a.least, b.least), min(a.most, b.most)) for a, b in zip(one, other))


def _given(version: KernelVersion) -> Given:
    elements = {k.name: bits_of(v) for k, v in version.configuration.items() if k.kind == "element"}
    widths = tuple((f"{name}.dtype.element_ty.primitive_bitwidth", width) for name, width in elements.items())
    return Given(version.spec, version.emitted, version.num_warps, widths)


def _tiles(versions: Sequence[KernelVersion]) -> list[str]:
    """The tile sizes: powers of two in all launches, on which shapes depend."""
    shapes = shape_parameters(versions[0].loaded.fn)
    named = [name for name in versions[0].spec.constexprs if name in shapes]
    return [name for name in named if all(_is_size(v.spec.constexprs.get(name)) for v in versions)]


def _is_size(value: object) -> bool:
    return type(value) is int and value > 1 and value & (value - 1) == 0


__all__ = ["general_versions", "tried_corners"]
