"""Which launches a file accepts: what the front end of the compiler says of each, with the assertions that the file makes."""

from __future__ import annotations

from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.judge.lower.compiler_errors import compiler_diagnostic
from gluonize.judge.lower.stderr_log import captured_stderr
from gluonize.read.spec.compile_arguments import compile_arguments
from gluonize.read.spec.launch import LaunchSpec


def refused_launches(
    source: str,
    specs: tuple[LaunchSpec, ...],
    target: str,
    search_path: tuple[str, ...] = (),
    import_hosts: bool = False,
) -> tuple[Diagnostic | None, ...]:
    """For each launch of a file, Triton or Gluon, why its front end refuses it; None where it does not. Call it in a child."""
    return tuple(_refused(source, spec, target, search_path, import_hosts) for spec in specs)


def _refused(
    source: str, spec: LaunchSpec, target: str, search_path: tuple[str, ...], import_hosts: bool
) -> Diagnostic | None:
    from gluonize.read.kernels.load import explain_trace_error, load_side
    from gluonize.trace.front.offline import FrontEnd, offline_target
    from gluonize.triton_api.front_end import ASTSource, GluonASTSource

    what = f"{spec.kernel} ({target})"
    try:
        loaded = load_side(source, spec, search_path, import_hosts)
        arguments = compile_arguments(spec, loaded.fn, loaded.load_jit)
    except TranslationError as error:
        return error.diagnostics[0]
    make: Any = GluonASTSource if loaded.fn.is_gluon() else ASTSource
    program = make(fn=loaded.fn, signature=arguments.signature, constexprs=arguments.constexprs, attrs=arguments.attrs)
    with captured_stderr() as printed, offline_target(target) as gpu:
        try:
            FrontEnd.of(gpu, spec.options).module(program)
        except Exception as error:  # whatever the front end raises is its verdict on the launch, reported as such
            if explained := explain_trace_error(loaded, error):
                return explained.diagnostics[0]
            return compiler_diagnostic(error, loaded.fn, printed(), what, spec.signature)
    return None
