"""The translator: one request in, one Gluon file out, in the order of the pipeline."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import replace
from typing import Any

from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure

from translator import __version__
from translator.diagnostics import Diagnostic, TranslationError
from translator.frontend.launch import TracedLaunch, trace_launch
from translator.layout.partitions import with_spread_products
from translator.optimize.tuning import Tuning
from translator.request import LaunchOutcome, TranslateRequest, TranslateResult
from translator.rewrite.contracts import RunTimeContract
from translator.rewrite.concrete import check_concrete
from translator.rewrite.emit import EmittedKernel
from translator.rewrite.kernel_family import KernelVersion, texts_of
from translator.rewrite.host_file import whole_file
from translator.rewrite.kernel import rewrite_kernel
from translator.rewrite.module import SourceFacts, standalone_module
from translator.rewrite.reserved_names import free_module_names
from translator.source.derive import DerivedLaunch, derive_launches, parse_settings
from translator.source.kernels import list_kernels
from translator.source.launch_spec import LaunchSpec
from translator.source.load import LoadedKernel, explain_trace_error, load_for_launch, resolve_source
from translator.source.module_file import full_search_path, parse_file
from translator.source.moved_lines import file_line


def translate_kernel(request: TranslateRequest) -> TranslateResult:
    """Translate the kernels of one source for one target; never writes anything.

    Runs Triton's front end and MLIR passes in this process: call it in a child.
    """
    started = time.perf_counter()
    outcomes: list[LaunchOutcome] = []
    versions: list[KernelVersion] = []
    traces: list[TracedLaunch] = []
    launches, notes, assumed, unknown = planned_launches(request)
    outcomes += unknown
    for spec in launches:
        try:
            loaded, traced, emitted = translate_launch(request, spec)
        except TranslationError as error:
            outcomes.append(LaunchOutcome(spec, "refused", error.diagnostics))
            continue
        versions.append(KernelVersion(spec, loaded, emitted, traced.num_warps))
        traces.append(traced)
        notes += [n for n in loaded.notes if n not in notes]
        outcomes.append(LaunchOutcome(spec, "translated", (), tuple(emitted.record.choices), assumptions(emitted)))
    versions = _alike(request, versions, traces)
    text = None
    diagnostics: tuple[Diagnostic, ...] = ()
    if versions and (request.keep_going or len(versions) == len(outcomes)):
        try:
            asked = {outcome.spec.kernel for outcome in outcomes}
            text, more = output_text(request, versions, tuple(assumed), asked)
            check_concrete(text)
            notes += [n for n in more if n not in notes]
        except TranslationError as error:
            diagnostics = error.diagnostics
            outcomes = [LaunchOutcome(o.spec, "refused", o.diagnostics or diagnostics) for o in outcomes]
    seconds = time.perf_counter() - started
    return TranslateResult(
        "translated" if text is not None else "refused", text, tuple(outcomes), diagnostics, tuple(notes), seconds
    )


def _alike(request: TranslateRequest, versions: list[KernelVersion], traces: list[TracedLaunch]) -> list[KernelVersion]:
    """The launches of one kernel with one choice of what moves from tile to tile, where that leaves fewer texts.

    The choice is worth a few scalar instructions per tile (`translator.pipeline.prepare`); one text for the configurations
    of an autotuned kernel is worth more.
    """
    out = list(versions)
    for fn in dict.fromkeys(v.loaded.qualname for v in versions):
        own = [i for i, v in enumerate(versions) if v.loaded.qualname == fn]
        choices = [versions[i].emitted.moving for i in own]
        moved = frozenset(key for choice in choices for key, moves in choice.items() if moves)
        changed = {}
        for i, choice in zip(own, choices):
            if any(not choice[key] for key in moved & choice.keys()):
                tuning = request.tuning(versions[i].spec.kernel)
                emitted = rewrite_kernel(traces[i], tuning, request.strategy, moved)
                changed[i] = replace(versions[i], emitted=emitted)
        together = [changed.get(i, versions[i]) for i in own]
        if changed and texts_of(together) < texts_of([versions[i] for i in own]):
            for i, version in changed.items():
                out[i] = version
    return out


def planned_launches(
    request: TranslateRequest,
) -> tuple[list[LaunchSpec], list[str], list[str], list[LaunchOutcome]]:
    """The launches to translate; kernels without a given one get theirs from the file.

    -> launches, notes, assumptions, and with keep_going the kernels for which no launch could be derived.
    """
    given = [spec for spec in request.launches if not request.kernels or spec.kernel in request.kernels]
    without = [name for name in request.kernels if name not in {spec.kernel for spec in given}]
    if given and not without:
        return given, [], [], []
    settings = parse_settings(f"{name}={value}" for name, value in request.assignments)
    groups: list[tuple[list[str], dict[str, Any]]] = [(without, settings)]
    if request.keep_going:
        infos = [k for k in list_kernels(request.source, request.search_path) if not without or k.name in without]
        elsewhere = {name for info in infos for name in info.args}
        groups = [
            ([k.name], {name: x for name, x in settings.items() if name in k.args or name not in elsewhere})
            for k in infos
            if k.is_kernel or without
        ] or groups
    derived: list[DerivedLaunch] = []
    unknown: list[LaunchOutcome] = []
    for group, given_settings in groups:
        try:
            derived += derive_launches(request.source, group, settings=given_settings, search_path=request.search_path)
        except TranslationError as error:
            if not request.keep_going:
                raise
            spec = LaunchSpec(id=group[0], kernel=group[0], source=request.source)
            unknown.append(LaunchOutcome(spec, "refused", error.diagnostics))
    assumed: list[str] = []
    for launch in derived:
        assumed += [text for line in launch.assumptions if (text := f"{launch.spec.kernel}: {line}") not in assumed]
    return [*given, *(launch.spec for launch in derived)], [f"assumed {line}" for line in assumed], assumed, unknown


def output_text(
    request: TranslateRequest, versions: list[KernelVersion], assumed: tuple[str, ...], asked: set[str]
) -> tuple[str, tuple[str, ...]]:
    """The output file, and notes: the source file with its kernels replaced, or in batch mode the kernels alone."""
    file, _ = resolve_source(request.source, full_search_path(tuple(request.search_path)))
    source = parse_file(versions[0].loaded.path if request.standalone else file.path)
    facts = SourceFacts(source.path, _digest(source.text), request.target, __version__, assumed)
    general = request.fallback == "general"
    if request.standalone and not general:
        return standalone_module(versions, facts)
    # The general kernel is the author's, with all that it needs around it.
    text, notes = whole_file(source.text, versions, facts, general)
    asked |= {v.loaded.qualname for v in versions}
    kernels = list_kernels(source.path, request.search_path)
    notes += tuple(
        f"{os.path.basename(source.path)}:{k.line}: {k.name} stays Triton: it was not asked for"
        for k in kernels
        if k.is_kernel and k.name not in asked
    )
    with open(source.path, "rb") as file:
        raw = file.read()
    if b"\r\n" in raw and raw.count(b"\n") == raw.count(b"\r\n"):  # the author's line ends
        text = text.replace("\n", "\r\n")
    return text, notes


def translate_launch(request: TranslateRequest, spec: LaunchSpec) -> tuple[LoadedKernel, TracedLaunch, EmittedKernel]:
    """Read, trace, lay out and rewrite one kernel for one launch."""
    # A launch names its source for batch mode; here it is the request's.
    spec = replace(spec, source=request.source or spec.source)
    loaded = load_for_launch(spec, request.source, request.search_path, request.import_hosts)
    free_module_names(loaded)
    tuning = request.tuning(spec.kernel)
    try:
        traced = trace_launch(loaded.fn, _with_matrix_size(spec, tuning), request.target, _jit_loader(loaded))
        traced.spec = spec
        if tuning.partitioned and (anchors := with_spread_products(traced.anchors, traced.num_warps)) is not None:
            # Operands that Triton takes through LDS are in its own layout of the product.
            traced.anchors, traced.operands_in_lds = anchors, {}
    except CompilationError as error:
        raise explain_trace_error(loaded, error) or _trace_refusal(loaded, error) from error
    except RuntimeError as error:
        if "error encountered during parsing" not in str(error) and "PassManager" not in str(error):
            raise
        why = f"its own compiler stops: {str(error).strip().splitlines()[-1]}"
        message = "Triton does not accept this kernel for this launch"
        raise TranslationError(Diagnostic("triton-refuses", message, loaded.path, loaded.line, 1, why)) from error
    return loaded, traced, rewrite_kernel(traced, tuning, request.strategy)


def _with_matrix_size(spec: LaunchSpec, tuning: Tuning) -> LaunchSpec:
    """`spec` with the option by which Triton's passes take another size of matrix instruction."""
    if not tuning.matrix_size:
        return spec
    return replace(spec, options={**spec.options, "matrix_instr_nonkdim": tuning.matrix_size})


def _jit_loader(loaded: LoadedKernel) -> Any:
    return loaded.load_jit


def _trace_refusal(loaded: LoadedKernel, error: BaseException) -> TranslationError:
    """Triton's own front end refuses the kernel for this launch: say what it says, where it says it.

    The place is the innermost one in the kernel or a helper; what Triton's own library has inside it is not shown.
    """
    functions = {r.value.src: r.value for r in loaded.reached if r.kind == "jit" and r.path} | {
        loaded.fn.src: loaded.fn
    }
    place = loaded.path, loaded.line, 1
    inner = error
    while True:
        node, fn = getattr(inner, "node", None), functions.get(getattr(inner, "src", None))
        if fn is not None and hasattr(node, "lineno"):
            place = fn.file_name or loaded.path, file_line(fn, node.lineno), node.col_offset + 1
        if not isinstance(inner.__cause__, CompilationError):
            break
        inner = inner.__cause__
    text = (getattr(inner, "error_message", None) or str(inner).strip().splitlines()[-1]).strip()
    if isinstance(inner, CompileTimeAssertionFailure) and not inner.error_message:
        text = "a static assertion is false"
    return TranslationError(
        Diagnostic("triton-refuses", "Triton does not accept this kernel for this launch", *place, text)
    )


def assumptions(emitted: EmittedKernel) -> tuple[str, ...]:
    """What the translation of one launch relies on at run time, one line each."""
    return tuple(RunTimeContract.of([emitted.record]).lines())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
