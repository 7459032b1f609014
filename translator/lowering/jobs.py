"""The functions that child processes run: load a kernel, compile it, measure it.

Each takes and returns plain data, for `WorkerPool.submit("translator.lowering.jobs:...", ...)`.
"""

from __future__ import annotations

from translator.lowering.compile import Lowered, compile_kernel
from translator.lowering.load_function import load_function
from translator.source.launch_spec import LaunchSpec


def lower_file(
    source: str,
    spec: LaunchSpec,
    target: str,
    search_path: tuple[str, ...] = (),
    import_hosts: bool = False,
    keep_stages: bool = False,
) -> Lowered:
    """Compile the kernel of `spec` as `source` (a file or a module, Triton or Gluon) has it.

    Raises: TranslationError for what cannot be read, bound or compiled.
    """
    loaded = load_function(source, spec, search_path, import_hosts)
    return compile_kernel(loaded.fn, spec, target, load_jit=loaded.load_jit, keep_stages=keep_stages)
