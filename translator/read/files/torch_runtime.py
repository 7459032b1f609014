"""Where the modules of torch are that Inductor's kernels call functions of: in the torch that is installed, else those that come with gluonize."""

from __future__ import annotations

import os

from gluonize.read.files.modules import ModuleFile, find_module

# Modules of torch with jit functions. What else torch has is the host's.
# The decorators of Inductor's kernels.
HEURISTICS = "torch._inductor.runtime.triton_heuristics"
HELPERS = "torch._inductor.runtime.triton_helpers"
READ = (HELPERS, "torch._inductor.runtime.triton_compat")


def runtime_module(name: str, search_path: tuple[str, ...]) -> ModuleFile:
    """The file of one of `READ`."""
    shipped = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inductor", "triton_helpers.py")
    return find_module(name, search_path) or ModuleFile(name, shipped)


__all__ = ["HELPERS", "HEURISTICS", "READ", "runtime_module"]
