"""What child processes run: compile a kernel and walk it."""

from __future__ import annotations

from dataclasses import replace

from translator.cycles.analysis import KernelCycles, analyze
from translator.lowering.compile import Lowered
from translator.lowering.jobs import lower_file
from translator.source.launch_spec import LaunchSpec


def lower_and_walk(
    source: str,
    spec: LaunchSpec,
    target: str,
    search_path: tuple[str, ...] = (),
    import_hosts: bool = False,
    keep_stages: bool = False,
) -> Lowered:
    """`lower_file`, with the cycles of the kernel's loops.

    Raises: TranslationError for what cannot be read, bound or compiled.
    """
    lowered = lower_file(source, spec, target, search_path, import_hosts, True)
    cycles = analyze(lowered.stages["amdgcn"], target, lowered.num_warps, lowered.lds_bytes)
    return replace(lowered, cycles=cycles, stages=lowered.stages if keep_stages else {})


def assembly_cycles(text: str, target: str, num_warps: int, lds_bytes: int) -> KernelCycles:
    """Cycles of an assembly text that is there already."""
    return analyze(text, target, num_warps, lds_bytes)
