"""The translator: one request in, one Gluon file out, in the order of the pipeline."""

from __future__ import annotations

import hashlib
import os
import time
from typing import Any

from triton.compiler.errors import CompilationError

from translator import __version__
from translator.diagnostics import Diagnostic, TranslationError
from translator.frontend.launch import TracedLaunch, trace_launch
from translator.request import LaunchOutcome, TranslateRequest, TranslateResult
from translator.rewrite.emit import EmittedKernel
from translator.rewrite.kernel import rewrite_kernel
from translator.rewrite.module import KernelVersion, SourceFacts, standalone_module
from translator.source.launch_spec import LaunchSpec
from translator.source.load import LoadedKernel, explain_trace_error, load_for_launch


def translate_kernel(request: TranslateRequest) -> TranslateResult:
    """Translate the kernels of one source for one target; never writes anything.

    Runs Triton's front end and MLIR passes in this process: call it in a child.
    """
    started = time.perf_counter()
    outcomes: list[LaunchOutcome] = []
    versions: list[KernelVersion] = []
    notes: list[str] = []
    for spec in request.launches:
        try:
            loaded, traced, emitted = translate_launch(request, spec)
        except TranslationError as error:
            outcomes.append(LaunchOutcome(spec, "refused", error.diagnostics))
            continue
        versions.append(KernelVersion(spec, loaded, emitted, traced.num_warps))
        notes += [n for n in loaded.notes if n not in notes]
        outcomes.append(LaunchOutcome(spec, "translated", (), tuple(emitted.record.choices), assumptions(spec, emitted)))
    text = None
    diagnostics: tuple[Diagnostic, ...] = ()
    if versions and (request.keep_going or len(versions) == len(outcomes)):
        facts = SourceFacts(versions[0].loaded.path, _digest(versions[0].loaded.text), request.target, __version__)
        try:
            text = standalone_module(versions, facts)
        except TranslationError as error:
            diagnostics = error.diagnostics
            outcomes = [LaunchOutcome(o.spec, "refused", diagnostics) for o in outcomes]
    seconds = time.perf_counter() - started
    return TranslateResult(
        "translated" if text is not None else "refused", text, tuple(outcomes), diagnostics, tuple(notes), seconds
    )


def translate_launch(
    request: TranslateRequest, spec: LaunchSpec
) -> tuple[LoadedKernel, TracedLaunch, EmittedKernel]:
    """Read, trace, lay out and rewrite one kernel for one launch."""
    loaded = load_for_launch(spec, request.source, request.search_path, request.import_hosts)
    try:
        traced = trace_launch(loaded.fn, spec, request.target, _jit_loader(loaded))
    except CompilationError as error:
        raise explain_trace_error(loaded, error) or _trace_refusal(loaded, error) from error
    return loaded, traced, rewrite_kernel(traced)


def _jit_loader(loaded: LoadedKernel) -> Any:
    return loaded.program.load_jit if loaded.program is not None and hasattr(loaded.program, "load_jit") else None


def _trace_refusal(loaded: LoadedKernel, error: BaseException) -> TranslationError:
    """Triton's own front end refuses the kernel for this launch: say what it says, where it says it."""
    inner = error
    while isinstance(inner.__cause__, CompilationError):
        inner = inner.__cause__
    message = (getattr(inner, "error_message", None) or str(inner).strip().splitlines()[-1]).strip()
    node = getattr(inner, "node", None)
    line = loaded.fn.def_file_line_number + node.lineno - 1 if hasattr(node, "lineno") else loaded.line
    column = getattr(node, "col_offset", 0) + 1
    return TranslationError(
        Diagnostic("triton-refuses", "Triton does not accept this kernel for this launch", loaded.path, line, column, message)
    )


def assumptions(spec: LaunchSpec, emitted: EmittedKernel) -> tuple[str, ...]:
    """What the translation of one launch relies on, one line each."""
    out = []
    if emitted.record.buffer_pointers:
        out.append(f"storage of {', '.join(sorted(emitted.record.buffer_pointers))} within 2 GiB")
    if emitted.record.non_negative:
        out.append(f"{', '.join(sorted(emitted.record.non_negative))} not negative")
    return tuple(out)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def source_label(path: str) -> str:
    """How the output names its source: relative to the working folder where that is shorter."""
    relative = os.path.relpath(path)
    return relative if not relative.startswith("..") else os.path.basename(path)
