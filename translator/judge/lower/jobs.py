"""The functions that child processes run: load a kernel, compile it, measure it.

Each takes and returns plain data, for `WorkerPool.submit("gluonize.judge.lower.jobs:...", ...)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gluonize.diagnostics import TranslationError
from gluonize.judge.lower.compile import Lowered, compile_kernel
from gluonize.read.spec.launch import LaunchSpec

if TYPE_CHECKING:
    from gluonize.read.kernels.load import LoadedKernel


def lower_file(
    source: str,
    spec: LaunchSpec,
    target: str,
    search_path: tuple[str, ...] = (),
    import_hosts: bool = False,
    keep_stages: bool = False,
) -> Lowered:
    """Compile the kernel of `spec` as `source` (a file or a module, Triton or Gluon) has it.

    Host code is read, not executed, unless `import_hosts`.
    Raises: TranslationError for what cannot be read, bound or compiled.
    """
    from gluonize.read.kernels.load import load_side

    return lower_loaded(load_side(source, spec, search_path, import_hosts), spec, target, keep_stages)


def lower_loaded(loaded: LoadedKernel, spec: LaunchSpec, target: str, keep_stages: bool = False) -> Lowered:
    """`lower_file` for a kernel that is loaded already."""
    from gluonize.lift.kernel import lift_kernel
    from gluonize.read.kernels.gluon_kernels import is_gluon_launch
    from gluonize.read.kernels.load import explain_trace_error
    from gluonize.read.launches.sites.persistent import persistent_launch, with_tiles
    from gluonize.read.launches.sites.pinned import as_pinned

    if (staying := persistent_launch(loaded)) is not None and staying.shared is not None:
        spec = with_tiles(spec, staying)  # nothing else launches it, while any number of programs can have whole tiles
    if is_gluon_launch(spec):
        # What Triton's own compiler would make of the source is what it makes of the Triton kernel that the source computes.
        lifted = lift_kernel(loaded, spec)
        loaded, spec = lifted.loaded, lifted.spec
    spec = as_pinned(loaded, spec)
    try:
        return compile_kernel(loaded.fn, spec, target, load_jit=loaded.load_jit, keep_stages=keep_stages)
    except TranslationError as error:
        if error.__cause__ is not None and (explained := explain_trace_error(loaded, error.__cause__)):
            raise explained from error
        raise
