"""What child processes run: compile a kernel and walk it."""

from __future__ import annotations

from translator.cycles.analysis import KernelCycles, analyze
from translator.lowering.jobs import lower_file
from translator.source.launch_spec import LaunchSpec


def kernel_cycles(
    source: str, spec: LaunchSpec, target: str, search_path: tuple[str, ...] = (), import_hosts: bool = False
) -> KernelCycles:
    """Cycles of the kernel of `spec` as `source` (a file or a module, Triton or Gluon) has it.

    Raises: TranslationError for what cannot be read, bound or compiled.
    """
    lowered = lower_file(source, spec, target, search_path, import_hosts, True)
    return analyze(lowered.stages["amdgcn"], target, lowered.num_warps, lowered.lds_bytes)


def assembly_cycles(text: str, target: str, num_warps: int, lds_bytes: int) -> KernelCycles:
    """The same for an assembly text that is there already."""
    return analyze(text, target, num_warps, lds_bytes)
