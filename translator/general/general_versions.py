"""Kernels of a request made general: one text for their launches and for others, where formulas give its layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from gluonize.decide.layouts.size_range import SizeRange, in_words
from gluonize.decide.readback.traced_launch import TracedLaunch
from gluonize.general.box import Point, Region, some
from gluonize.general.general_kernels import DEPTH_DIFFERS, NO_FORMULA, GeneralLayouts, alike, general_layouts
from gluonize.general.launches.flags import launches_of_other_flags
from gluonize.general.launches.ring_depth import ring_depth
from gluonize.general.launches.trials import WARPS, Given, Tools, joinable, with_sizes
from gluonize.general.launches.types import launches_of_other_types
from gluonize.general.launches.wanted import Rest, Sought
from gluonize.general.other_texts import tile_sizes, with_other_texts
from gluonize.general.written_kernel import as_written
from gluonize.output.file.standalone import told_beside
from gluonize.output.merging.kernel_family import KernelVersion
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.elements import bits_of
from gluonize.write.contracts.configuration import Key
from gluonize.write.function.merge import joined
from gluonize.write.state.emitted import EmittedKernel
from gluonize.write.state.unit import Synthesized

MOST_UNLIKE = 4  # launches that are tried because Triton's passes choose other layouts for them


def general_versions(
    versions: list[KernelVersion], traces: Sequence[TracedLaunch], tools: Tools
) -> tuple[list[KernelVersion], tuple[str, ...]]:
    """The versions, those of a kernel with one general text where there is one, and with launches of other element types that it holds
    for too; and a note for each kernel on what it holds for.

    traces: of the versions. tools: what traces and translates launches that were not asked for.
    """
    out, more, notes = list(versions), [], []
    for name in dict.fromkeys(v.loaded.qualname for v in versions):
        own = [i for i, v in enumerate(versions) if v.loaded.qualname == name]
        tools = tools.remembering
        found = _general([versions[i] for i in own], [traces[i] for i in own], tools)
        why, found = (found, []) if isinstance(found, str) else ("", found)
        if len(own) == 1:
            first = versions[own[0]]
            lanes = traces[own[0]].target.warp_size
            found = with_other_texts(found or [first], partial(_alone, first, tools), tools, lanes)
            found = found if len(found) > 1 or not why else []
        for i, version in zip(own, found):
            out[i] = version
        more += found[len(own) :]
        beside = told_beside(found[0].spec, found) if found else ""
        others = "".join(f"; or for {told(version)}" for version in found if version.apart)
        sizes = f"the launches given: {why}" if why else told(found[0])
        notes.append(f"{name} holds for {sizes}{beside and f'; for {beside} as well'}{others}")
    return [*out, *more], tuple(notes)


def _alone(
    version: KernelVersion,
    tools: Tools,
    spec: LaunchSpec,
    beside: Sequence[KernelVersion],
    around: Sequence[Point],
) -> KernelVersion | None:
    """A version for other sizes with a general text of its own, or for these alone; None where they are refused. beside: the other
    texts of the kernel. around: sizes whose neighbours a general text is sought for whose loops load as they go; None where there
    is none."""
    other = _other(spec, tools)
    if other is None:
        return None
    emitted, traced = other
    version = replace(version, spec=spec, emitted=emitted, num_warps=traced.num_warps, apart=True)
    needed = {name: value for v in beside for name, (value, _) in v.emitted.record.globals_needed.items()}
    functions = {name: value for name, value in needed.items() if isinstance(value, Synthesized)}
    # What a text takes for some numbers of stages alone is of interest for the others.
    elsewhere = tuple(Region(v.holds_for, v.bounds) for v in beside if v.holds_for and not v.stages)
    rest = Rest(tuple(around), elsewhere) if around else None
    found = _general([version], [traced], replace(tools, functions=functions), Sought(brief=True, rest=rest))
    return found[0] if not isinstance(found, str) else None if rest else version


def _general(
    versions: Sequence[KernelVersion],
    traces: Sequence[TracedLaunch],
    tools: Tools,
    sought: Sought = Sought(),
) -> list[KernelVersion] | str:
    """The launches of one kernel with formulas for layouts, and for the depth of its rings if there is one, then those with other
    element types and flags; or why it has none.
    """
    samples = [(version.emitted, traced) for version, traced in zip(versions, traces)]
    depth = None if sought.rest else ring_depth(samples, lambda spec: _other(spec, tools))
    if depth is not None:
        apart = [replace(v, emitted=depth.taken_out(v.emitted, traced)) for v, traced in zip(versions, traces)]
        found = _of_depth(apart, traces, replace(tools, depth=depth), sought)
        if found != DEPTH_DIFFERS:
            return found
    return _of_depth(versions, traces, tools, sought)


def _other(spec: LaunchSpec, tools: Tools) -> tuple[EmittedKernel, TracedLaunch] | None:
    """Another launch, translated; None where it is refused."""
    traced = tools.trace(spec)
    emitted = None if traced is None else tools.write(traced, frozenset())
    return None if traced is None or emitted is None else (emitted, traced)


def _of_depth(
    versions: Sequence[KernelVersion],
    traces: Sequence[TracedLaunch],
    tools: Tools,
    sought: Sought,
) -> list[KernelVersion] | str:
    """`_general` with the depth of rings as `tools` have it."""
    tiles = tile_sizes(versions)
    groups: list[list[KernelVersion]] = []
    for version in versions:
        group = next((g for g in groups if joinable(g[0].emitted, version.emitted)), None)
        groups.append([version]) if group is None else group.append(version)
    region: Region | None = None
    made: dict[str, GeneralLayouts] = {}  # by the launch
    traced = {v.spec.id: trace for v, trace in zip(versions, traces)}
    beside = {
        group[0].spec.id: [] if sought.brief else _beside(group, traced[group[0].spec.id], tools) for group in groups
    }
    for group in groups:
        given = [_given(v, traced[v.spec.id]) for v in group]
        others = [_given(*other) for other in beside[group[0].spec.id]]
        like = [any(alike(one, before, tiles) for before in given[:i]) for i, one in enumerate(given)]
        first, rest = ([one for one, is_like in zip(given, like) if is_like == wanted] for wanted in (False, True))
        found = general_layouts(first, tiles, tools, [*rest, *others], sought)
        if not isinstance(found, str) and any(g.spec.id not in found[1] for g in given):
            found = general_layouts(given, tiles, tools, others, sought)
        if isinstance(found, str):
            return found
        region = found[0] if region is None else _common(region, found[0])
        made |= found[1]
    more = [version for others in beside.values() for version, _ in others if version.spec.id in made]
    written = _with_layouts(versions, more, made, region, tools)
    return _with_layouts(versions, [], made, region, tools) if isinstance(written, str) and more else written


def _beside(
    group: Sequence[KernelVersion], traced: TracedLaunch, tools: Tools
) -> list[tuple[KernelVersion, TracedLaunch]]:
    """The first launch of a group, which is `traced`, with other element types and flags, where it is not one of the group with these."""
    first, known = group[0], [version.configuration for version in group]
    out = []
    types = launches_of_other_types(first.spec, traced.target.native_fp8 if _multiplies(traced) else ())
    for specs in [*launches_of_other_flags(first.spec, first.loaded.fn), *((spec,) for spec in types)]:
        other = next((found for spec in specs if (found := _other(spec, tools)) is not None), None)
        if other is not None:
            emitted = other[0] if tools.depth is None else tools.depth.taken_out(*other)
            version = replace(first, spec=other[1].spec, emitted=emitted, like=first.spec)
            out += [(version, other[1])] if version.configuration not in known else []
    return out


def _multiplies(launch: TracedLaunch) -> bool:
    """Whether a kernel has matrix products, which are what fp8 is for."""
    return any("dot" in op.name for op in launch.anchors.ops)


def _with_layouts(
    versions: Sequence[KernelVersion],
    more: Sequence[KernelVersion],
    made: Mapping[str, GeneralLayouts],
    region: Region | None,
    tools: Tools,
) -> list[KernelVersion] | str:
    """The versions with their layouts written; more: those with other element types and flags. Or why they are not one text."""
    used = frozenset().union(*(layout.sizes for m in made.values() for layout in m.layouts.values()))
    box = () if region is None else region.box
    bounded = frozenset().union(*(bound.sizes for bound in (region.bounds if region else ())))
    shared = tuple(size for size in box if size.name in used | bounded or size.least < size.most)
    if (
        region is None
        or not (used & {size.name for size in shared} or any(size.least < size.most for size in shared))
        or any(v.configuration[key] not in size for v in versions for key, size in _keys(v, shared))
    ):
        return NO_FORMULA
    stages = () if tools.depth is None else tools.depth.ranges
    written = [
        replace(
            v,
            emitted=as_written(m, region, WARPS, tools.depth, tools.functions),
            holds_for=shared,
            stages=stages,
            bounds=region.bounds,
            unlike=tuple(_at(v, dict(zip((size.name for size in box), point)), {}) for point in m.unlike),
        )
        for v in (*versions, *more)
        for m in [made[v.spec.id]]
    ]
    one = len(joined(v.emitted.kernel.function for v in written)) == 1
    return written if one else "its launches have different formulas"


def told(version: KernelVersion) -> str:
    """The sizes that a version holds for."""
    return in_words(version.limits) or version.spec.id.partition(" with ")[2]


def tried_launches(versions: Sequence[KernelVersion]) -> list[LaunchSpec]:
    """Launches that were not asked for and are checked as any launch is: what formulas say of them."""
    out: list[LaunchSpec] = []
    for i, version in enumerate(versions):
        mine = (v for v in versions[:i] if v.loaded.qualname == version.loaded.qualname and v.like is None)
        out += tried_corners(version, tuple(mine) if version.apart else ())
    return out


def tried_corners(version: KernelVersion, before: Sequence[KernelVersion] = ()) -> list[LaunchSpec]:
    """Launches with the least and with the greatest of all sizes, and with the most stages, for which LDS has room where tiles are small;
    or a launch with other element types or flags. before: texts that come first where their limits hold, and which are not tried.
    """
    if version.like is not None:
        return [version.spec]
    own = {key.name: value for key, value in version.configuration.items()}
    region = Region(version.holds_for, version.bounds)
    names = [size.name for size in version.holds_for]
    own_points = [p for p in region.points() if not any(Region(v.holds_for, v.bounds).holds(p) for v in before)]
    ranked = sorted(own_points, key=lambda point: sum(value.bit_length() for value in point))
    asked = {version.spec.id: version.spec} if version.apart else {}
    every = [dict(zip(names, point)) for point in (*ranked[:1], *ranked[-1:])]
    tried = [(sizes, {}) for sizes in every if any(own[name] != value for name, value in sizes.items())]
    tried += [(sizes, {stages.name: stages.most}) for stages in version.stages for sizes in every[:1]]
    specs = [*(_at(version, sizes, stages) for sizes, stages in tried), *some(list(version.unlike), MOST_UNLIKE)]
    return list((asked | {spec.id: spec for spec in specs}).values())


def _at(version: KernelVersion, sizes: dict[str, int], stages: dict[str, int]) -> LaunchSpec:
    """The launch of a version with other sizes and another number of stages."""
    spec = with_sizes(version.spec, {WARPS: version.num_warps} | sizes)
    text = ", ".join(f"{name}={value}" for name, value in (sizes | stages).items())
    return replace(spec, id=f"{version.spec.id} with {text}", options=spec.options | stages)


def _keys(version: KernelVersion, box: Sequence[SizeRange]) -> list[tuple[Key, SizeRange]]:
    return [(key, size) for size in box for key in version.configuration if key.name == size.name]


def _common(one: Region, other: Region) -> Region:
    """What two regions share; both have the same sizes."""
    box = (SizeRange(a.name, max(a.least, b.least), min(a.most, b.most)) for a, b in zip(one.box, other.box))
    return Region(tuple(box), tuple(dict.fromkeys((*one.bounds, *other.bounds))), one.elsewhere)


def _given(version: KernelVersion, traced: TracedLaunch) -> Given:
    elements = {k.name: bits_of(v) for k, v in version.configuration.items() if k.kind == "element"}
    widths = tuple((f"{name}.dtype.element_ty.primitive_bitwidth", width) for name, width in elements.items())
    return Given(version.spec, traced, version.emitted, version.num_warps, widths)


__all__ = ["general_versions", "told", "tried_launches"]
