"""What child processes run: compile a kernel and walk it."""

from __future__ import annotations

from dataclasses import fields, replace

from rules.targets import target as target_row
from rules.timing import TIMINGS
from translator.cycles.analysis import analyze
from translator.cycles.assembly import read_program
from translator.cycles.estimate import argument_offsets, argument_words, estimate
from translator.cycles.prediction import KernelCycles, Walked
from translator.cycles.traffic import hot_traffic, tile_bytes
from translator.cycles.trips import count_trips
from translator.lowering.jobs import lower_file
from translator.source.launch_spec import LaunchSpec
from translator.ttgir.parse import parse_module


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
    lowered = lower_file(source, spec, target, search_path, import_hosts, True)
    assembly = lowered.stages["amdgcn"]
    module = parse_module(lowered.stages["ttgir"])
    trips = _trips(assembly, spec)
    known = {label: n for label, n in trips.items() if n is not None}
    cycles = analyze(
        assembly, target, lowered.num_warps, lowered.lds_bytes,
        tiles=tile_bytes(module), hottest_with=known if costs_only else None,
    )  # fmt: skip
    cycles = replace(cycles, ctas=module.clusters, traffic=hot_traffic(module), trips=known)
    if not costs_only:
        cycles = replace(cycles, estimate=estimate(cycles, trips, spec, target_row(target), TIMINGS[target]))
    lowered = replace(lowered, stages=lowered.stages if keep_stages else {})
    return Walked(**{f.name: getattr(lowered, f.name) for f in fields(lowered)}, cycles=cycles)


def _trips(assembly: str, spec: LaunchSpec) -> dict[str, int | None]:
    """How often each loop goes round, by label; None where the launch does not decide it."""
    program = read_program(assembly)
    found = count_trips(program, argument_words(spec, argument_offsets(assembly)))
    return {program.lines[header].label: n for header, n in found.items()}


def assembly_cycles(text: str, target: str, num_warps: int, lds_bytes: int) -> KernelCycles:
    """Cycles of an assembly text that is there already."""
    return analyze(text, target, num_warps, lds_bytes)
