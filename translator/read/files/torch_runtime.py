"""Where the modules of torch are that Inductor's kernels call functions of: in the torch that is installed, else those that come with gluonize."""

from __future__ import annotations

from pathlib import Path

from gluonize.read.files.modules import ModuleFile, find_module

# The decorators of Inductor's kernels.
HEURISTICS = "torch._inductor.runtime.triton_heuristics"
# Modules of torch with jit functions; what else torch has belongs to the host.
HELPERS = "torch._inductor.runtime.triton_helpers"
READ = (HELPERS, "torch._inductor.runtime.triton_compat")


def runtime_module(name: str, search_path: tuple[str, ...]) -> ModuleFile:
    """The file of one of `READ`."""
    shipped = str(Path(__file__).parent.parent / "inductor" / "triton_helpers.py")
    return find_module(name, search_path) or ModuleFile(name, shipped)


__all__ = ["HELPERS", "HEURISTICS", "READ", "runtime_module"]
