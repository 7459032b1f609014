"""What child processes run: compile a kernel and walk it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from gluonize.judge.cycles.analysis import analyze
from gluonize.judge.cycles.code.assembly import read_program
from gluonize.judge.cycles.code.executed_paths import Flow
from gluonize.judge.cycles.launch.estimate import argument_offsets, argument_words, estimate, estimate_shared, shares
from gluonize.judge.cycles.launch.shared_tiles import fetched_bytes, hot_steps
from gluonize.judge.cycles.launch.spread import spread
from gluonize.judge.cycles.launch.trips import count_trips
from gluonize.judge.cycles.prediction import Estimate, KernelCycles, Walked
from gluonize.judge.cycles.traffic import Traffic, hot_traffic, needed_part, tile_bytes
from gluonize.judge.lower.jobs import lower_file, lower_loaded
from gluonize.read.kernels.load import load_side
from gluonize.read.launches.sites.persistent import Shared, persistent_launch, with_tiles, within_tile
from gluonize.read.spec.launch import LaunchSpec
from gluonize.rules.targets import target as target_row
from gluonize.trace.model.module import Module
from gluonize.trace.model.parse import parse_module


def lower_and_walk(
    source: str,
    spec: LaunchSpec,
    target: str,
    search_path: tuple[str, ...] = (),
    import_hosts: bool = False,
    keep_stages: bool = False,
    costs_only: bool = False,
) -> Walked:
    """`lower_file`, with the cycles of the kernel's loops; costs_only: of the hottest one, without what they are lost to and without an
    estimate of the launch.

    Raises: TranslationError for what cannot be read, bound or compiled.
    """
    loaded = load_side(source, spec, search_path, import_hosts)
    staying = persistent_launch(loaded)
    spec = spec if staying is None else with_tiles(spec, staying)
    lowered = lower_loaded(loaded, spec, target, True)
    assembly = lowered.stages["amdgcn"]
    assembly = assembly if staying is None else within_tile(assembly, loaded, staying)
    module = parse_module(lowered.stages["ttgir"])
    per_unit = staying.per_unit if staying is not None else 0
    trips = _trips(assembly, spec, bool(per_unit))
    if staying is not None and staying.shared is not None:
        trips = dict.fromkeys(trips)  # a program has parts of tiles: it is in none as long as in another
    cycles = analyze(
        assembly, target, lowered.num_warps, lowered.lds_bytes,
        tiles=tile_bytes(module, staying.call[0] if staying else 0),
        hottest_with=_decided(trips) if costs_only else None, most=per_unit,
    )  # fmt: skip
    names = {os.path.basename(module.entry.place.file): os.path.basename(loaded.path)}
    cycles = replace(cycles.named(names), staying=per_unit)
    if staying is not None and staying.shared is not None:
        cycles = _of_shares(cycles, module, spec, staying.shared)
    else:
        cycles = _of_launch(cycles, trips, module, spec)
    if not costs_only and (staying is None or staying.shared is None):
        cycles = replace(cycles, estimate=estimate(cycles, trips, spec, target_row(target), target_row(target).timing))
    lowered = replace(lowered, stages=lowered.stages if keep_stages else {})
    return Walked(**{f.name: getattr(lowered, f.name) for f in fields(lowered)}, cycles=cycles)


def launch_estimates(
    source: str, specs: Sequence[LaunchSpec], target: str, search_path: tuple[str, ...] = ()
) -> list[Estimate | str]:
    """The estimates of launches that one compiled kernel serves: they differ in the values of run-time arguments and in their grids.

    Raises: TranslationError for what cannot be read, bound or compiled.
    """
    lowered = lower_file(source, specs[0], target, search_path, False, True)
    assembly, module = lowered.stages["amdgcn"], parse_module(lowered.stages["ttgir"])
    cycles = analyze(assembly, target, lowered.num_warps, lowered.lds_bytes, tiles=tile_bytes(module))
    found: list[Estimate | str] = []
    for spec in specs:
        trips = _trips(assembly, spec, False)
        found.append(
            estimate(
                _of_launch(cycles, trips, module, spec), trips, spec, target_row(target), target_row(target).timing
            )
        )
    return found


def _of_launch(cycles: KernelCycles, trips: Mapping[str, int | None], module: Module, spec: LaunchSpec) -> KernelCycles:
    """The cycles of a kernel with what a launch says of its loops and of what programs share."""
    cycles = replace(cycles, ctas=module.clusters, trips=_decided(trips), needed=needed_part(module))
    return replace(cycles, traffic=_traffic(module, cycles, spec))


def _of_shares(cycles: KernelCycles, module: Module, spec: LaunchSpec, shared: Shared) -> KernelCycles:
    """The cycles of a kernel whose programs share the steps of tiles, with its estimate: fewer programs than the grid of the source has begin
    at tiles apart."""
    cycles, row = replace(cycles, ctas=module.clusters, needed=needed_part(module)), target_row(cycles.target)
    steps = hot_steps(module, spec)
    if steps is None:
        why = "the launch does not decide how many steps a tile has" if spec.grid else "the launch has no grid"
        return replace(cycles, estimate=why, traffic=hot_traffic(module))
    timing = row.timing
    _, *others = spec.grid
    launched = shares(spec, steps, shared.per_unit, row, timing).programs // math.prod(others)
    cycles = replace(cycles, traffic=_traffic(module, cycles, replace(spec, grid=(launched, *others))))
    return replace(cycles, estimate=estimate_shared(cycles, steps, shared, spec, row, timing))


def _decided(trips: Mapping[str, int | None]) -> dict[str, int]:
    """The trip counts that the launch decides."""
    return {label: n for label, n in trips.items() if n is not None}


def _traffic(module: Module, cycles: KernelCycles, spec: LaunchSpec) -> Traffic:
    """Of the hot loop, with what L2 caches fetch for the programs of the launch that are at work together."""
    found, row = hot_traffic(module), target_row(cycles.target)
    if not row.timing.fetch_bytes or cycles.hot is None:
        return found
    launch = spread(spec.grid, cycles.ctas, cycles.hot.workgroups, row, row.timing)
    return replace(found, fetched=fetched_bytes(module, spec, int(launch.running / cycles.ctas), row.xcds))


def _trips(assembly: str, spec: LaunchSpec, staying: bool) -> dict[str, int | None]:
    """How often each loop goes round, by label; None where the launch does not decide it.

    staying: programs go from tile to tile, so a loop that is in no other one does so once in a round.
    """
    program = read_program(assembly)
    found = count_trips(program, argument_words(spec, argument_offsets(assembly)))
    if staying:
        flow = Flow(program)
        inner = {h for h in found if any(flow.block(h) in blocks for other, blocks in flow.loops.items() if other != h)}
        found = {header: n if header in inner else 1 for header, n in found.items()}
    return {program.lines[header].label: n for header, n in found.items()}


def assembly_cycles(text: str, target: str, num_warps: int, lds_bytes: int) -> KernelCycles:
    """Cycles of an assembly text that is there already."""
    return analyze(text, target, num_warps, lds_bytes)
