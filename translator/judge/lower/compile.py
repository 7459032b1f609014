"""Compile a Gluon or Triton kernel for one launch and one target, with no GPU: TTGIR, LLVM IR, AMDGCN, hsaco.

Invalid IR may abort the process, so everything that compiles generated code calls this in a child (`worker.py`); the
functions here are what the child runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.judge.lower.cache_entry import incomplete_entry, unusable_cache
from gluonize.judge.lower.cache_folder import use_cache_folder
from gluonize.judge.lower.compiler_digest import prepare
from gluonize.judge.lower.compiler_errors import compiler_diagnostic
from gluonize.judge.lower.metrics import KernelMetrics, measure
from gluonize.judge.lower.stderr_log import captured_stderr, error_lines
from gluonize.read.spec.compile_arguments import compile_arguments
from gluonize.read.spec.launch import LaunchSpec
from gluonize.rules import ptx
from gluonize.rules.targets import target as target_row
from gluonize.trace.model.module_text import with_file
from gluonize.trace.model.parse import parse_module

MODULES = ("ttir", "ttgir")
STAGES = (*MODULES, "llir", "amdgcn", "hsaco")


@dataclass(frozen=True)
class Lowered:
    """One compiled kernel.

    language: `gluon` or `triton`. stages: IR name -> text (bytes for `hsaco`), empty unless asked for. name: symbol of
    the kernel in the code object. lds_bytes: of one workgroup. notes: what the compiler printed while it succeeded.
    """

    kernel: str
    target: str
    language: str
    name: str
    num_warps: int
    lds_bytes: int
    metrics: KernelMetrics
    seconds: float
    stages: dict[str, str | bytes] = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()

    def lds_overflow(self) -> Diagnostic | None:
        """`lds-overflow` when one workgroup needs more LDS than the target has: it compiles but can never launch."""
        row = target_row(self.target)
        if self.lds_bytes <= row.lds_bytes:
            return None
        message = f"{self.kernel} needs {self.lds_bytes} bytes of LDS; {self.target} gives a workgroup {row.lds_bytes}"
        return Diagnostic("lds-overflow", message, help="use a smaller tile, fewer stages or fewer buffers")


def drops_ptx(compiled: Any) -> bool:
    """Whether the compiler left out PTX that the kernel has: what it made computes something else."""
    ops = parse_module(compiled.asm["ttir"]).walk() if "ttir" in compiled.asm else ()
    return any(ptx.is_dropped(op.string or "") for op in ops if op.name == "tt.elementwise_inline_asm")


def compile_kernel(
    fn: Any,
    spec: LaunchSpec,
    target: str,
    *,
    load_jit: Callable[[str], Any] | None = None,
    keep_stages: bool = False,
) -> Lowered:
    """Compile a JITFunction (Triton) or GluonJITFunction for `spec` on `target`.

    Raises: TranslationError: `compiler-error` with the compiler's own message; `compiler-cache`; `spec-missing`, `spec-unknown-argument`
    and `spec-type` when the launch does not fit the kernel's parameters.
    """
    from gluonize.trace.front.offline import offline_target
    from gluonize.triton_api.differences import with_numerics
    from gluonize.triton_api.front_end import ASTSource, GluonASTSource
    from gluonize.triton_api.package import triton

    started = time.perf_counter()
    row = target_row(target)
    arguments = compile_arguments(spec, fn, load_jit)
    language = "gluon" if fn.is_gluon() else "triton"
    source = (GluonASTSource if language == "gluon" else ASTSource)(
        fn=fn, signature=arguments.signature, constexprs=arguments.constexprs, attrs=arguments.attrs
    )
    use_cache_folder()
    prepare()
    what = f"{spec.kernel} ({language}, {target})"
    with captured_stderr() as printed, offline_target(target) as gpu:
        try:
            compiled = triton.compile(source, target=gpu, options=with_numerics(spec.options))
        except Exception as error:  # whatever the compiler raises is its verdict on the code, reported as such
            found = unusable_cache(error, what) or compiler_diagnostic(error, fn, printed(), what, spec.signature)
            raise TranslationError(found) from error
        notes = error_lines(printed())
    if damaged := incomplete_entry(compiled, what):
        raise TranslationError(damaged)
    assembly = compiled.asm["amdgcn"]
    num_warps = int(compiled.metadata.num_warps)
    shared = int(compiled.metadata.shared)
    return Lowered(
        kernel=spec.kernel,
        target=target,
        language=language,
        name=compiled.metadata.name,
        num_warps=num_warps,
        lds_bytes=shared,
        metrics=replace(
            measure(assembly, shared=shared, target=row, num_warps=num_warps), incomplete=drops_ptx(compiled)
        ),
        seconds=time.perf_counter() - started,
        stages=_stages(compiled, fn.fn.__code__.co_filename) if keep_stages else {},
        notes=tuple(notes),
    )


def _stages(compiled: Any, path: str) -> dict[str, str | bytes]:
    """The texts of a compiled kernel; its modules name the file that was given."""
    found = {stage: compiled.asm[stage] for stage in STAGES if stage in compiled.asm}
    return found | {stage: with_file(found[stage], path) for stage in MODULES if stage in found}
