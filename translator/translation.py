"""The translator: one request in, one Gluon file out, in the order of the pipeline."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gluonize import __version__
from gluonize.decide.choices.chosen import Choices
from gluonize.decide.layouts.lds_partitions import with_spread_products
from gluonize.decide.readback.traced_launch import TracedLaunch, read_trace, trace_launch
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.facts.integers.given_launches import given_numbers
from gluonize.facts.reading import read_function
from gluonize.general.general_versions import general_versions, tried_launches
from gluonize.general.launches.trials import Tools
from gluonize.gluon.trees.origins import Printed, lines_from
from gluonize.lift.kernel import lift_kernel, together
from gluonize.loops.forms.pipelined import PipelinedFunction
from gluonize.loops.kernel import kernel_facts, rewrite_kernel, with_wide_operands
from gluonize.loops.source.inline import inline_tile_loads
from gluonize.loops.source.peel import peel_masks
from gluonize.output.contracts.launch_checks import RunTimeContract
from gluonize.output.file.host import whole_file
from gluonize.output.file.standalone import SourceFacts, standalone_module
from gluonize.output.kept.kept_kernel import keep_structure
from gluonize.output.merging.kernel_family import KernelVersion, texts_of
from gluonize.output.merging.told_launches import ToldLaunches
from gluonize.output.programs.stream_k import programs_per_unit, share_steps
from gluonize.planned_launches import planned_launches
from gluonize.read.files.modules import full_search_path, parse_file
from gluonize.read.kernels.gluon_kernels import source_target
from gluonize.read.kernels.listing import list_kernels
from gluonize.read.kernels.load import LoadedKernel, explain_trace_error, load_for_launch, resolve_source
from gluonize.read.launches.sites.persistent import with_shared
from gluonize.read.spec.common import common_launch, differing
from gluonize.read.spec.images import is_of_images
from gluonize.read.spec.launch import LaunchSpec, RefusedLaunch
from gluonize.read.text.depth import LESS_DEEP, TOO_DEEP, deep_calls
from gluonize.read.text.moved_lines import file_line
from gluonize.read.text.own_lines import take_apart
from gluonize.request import CTAS, LIFTED, LaunchOutcome, TranslateRequest, TranslateResult, as_launched
from gluonize.rules.given import rules_with
from gluonize.rules.targets import target
from gluonize.trace.front.launch_options import check_options
from gluonize.trace.front.trace import Trace
from gluonize.triton_api.differences import fuses
from gluonize.triton_api.front_end import CompilationError, CompileTimeAssertionFailure
from gluonize.triton_api.jit_functions import JITFunction
from gluonize.versions import triton_version
from gluonize.write.contracts.configuration import device_view
from gluonize.write.function.rewriter import FunctionRewriter
from gluonize.write.state.emitted import EmittedKernel
from gluonize.write.state.reserved_names import free_module_names


def translate_kernel(request: TranslateRequest) -> TranslateResult:
    """Translate the kernels of one source for one target; never writes anything.

    Runs Triton's front end and MLIR passes in this process: call it in a child.
    """
    with deep_calls():
        return _translate(request)


def _translate(request: TranslateRequest) -> TranslateResult:
    started = time.perf_counter()
    outcomes: list[LaunchOutcome] = []
    versions: list[KernelVersion] = []
    traces: list[TracedLaunch | None] = []
    told = ToldLaunches()
    rules_with(request.rules)  # refused before anything is read
    planned = planned_launches(request)
    notes = list(planned.notes)
    derived = {spec.id for derivation in planned.derivations for spec in derivation.launches[1:]}
    outcomes += planned.unknown
    for spec in planned.launches:
        try:
            read, spec = _read(request, spec)
            common, note = _common(spec, read, planned.launches)
            version, traced = _version(request, common, read, planned.launches)
            loaded, emitted = version.loaded, version.emitted
            told.add(spec, version)
        except TranslationError as error:
            status = "passed-over" if spec.id in derived else "refused"
            outcomes.append(LaunchOutcome(spec, status, error.diagnostics))
            continue
        versions.append(version)
        traces.append(traced)
        notes += [n for n in (note, *loaded.notes) if n and n not in notes]
        said = tuple(emitted.record.choices), assumptions(emitted), tuple(emitted.record.kept_loops)
        outcomes.append(LaunchOutcome(spec, "translated", (), *said, traced is not None and traced.multiplies))
    notes += [
        f"{o.spec.id} is passed over: {o.diagnostics[0].message}"
        for o in outcomes
        if o.status == "passed-over" and o.spec.id in derived
    ]
    if request.emit == LIFTED:
        return _lifted_text(request, versions, outcomes, notes, started)
    versions = _alike(request, versions, traces)
    if request.general:
        versions, more = general_versions(versions, traces, tools_of(request))
        notes += more
        outcomes += [LaunchOutcome(spec, "translated") for spec in tried_launches(versions)]
    text, origins = None, ()
    diagnostics: tuple[Diagnostic, ...] = ()
    if versions and (request.keep_going or not any(o.status == "refused" for o in outcomes)):
        try:
            asked = {outcome.spec.kernel for outcome in outcomes}
            text, more, origins = output_text(request, versions, planned.assumed, asked)
            notes += [n for n in more if n not in notes]
        except TranslationError as error:
            diagnostics = error.diagnostics
            outcomes = [LaunchOutcome(o.spec, "refused", o.diagnostics or diagnostics) for o in outcomes]
    seconds = time.perf_counter() - started
    status = "translated" if text is not None else "refused"
    return TranslateResult(
        status,
        text,
        tuple(outcomes),
        diagnostics,
        tuple(notes),
        seconds,
        derivations=planned.derivations,
        origins=origins,
    )


def _version(
    request: TranslateRequest, spec: LaunchSpec, read: LoadedKernel, beside: Sequence[LaunchSpec]
) -> tuple[KernelVersion, TracedLaunch | None]:
    """The translation for one launch, and what was traced for it: nothing of a kernel that keeps its structure."""
    if request.keep_structure and read.fn.is_gluon():
        return _kept(request, spec, read), None
    loaded, traced, emitted = translate_launch(request, spec, beside=beside, read=read)
    return KernelVersion(traced.spec, loaded, emitted, traced.num_warps), traced


def _common(spec: LaunchSpec, loaded: LoadedKernel, launches: Sequence[LaunchSpec]) -> tuple[LaunchSpec, str]:
    """`spec` with what holds for all launches that device code cannot tell from it, and a note on that, "" where there is nothing to say."""
    if loaded.fn.is_gluon():
        return spec, ""  # is specialized for its layouts anyway
    others = [x for x in launches if x.kernel == spec.kernel and not isinstance(x, RefusedLaunch)]
    if len(others) < 2:
        return spec, ""
    own = device_view(spec, loaded.fn)
    alike = [x for x in others if device_view(x, loaded.fn) == own]
    named = ", ".join(differing(alike))
    if not named:
        return spec, ""
    ids = ", ".join(x.id for x in alike)
    note = f"{spec.kernel}: device code cannot tell {ids} apart: their text rests on nothing that {named} has in some of them only"
    return common_launch(spec, alike), f"{note}; apart, each has a text of its own"


def tools_of(request: TranslateRequest) -> Tools:
    """What traces and translates launches that were not asked for; None of what is refused."""

    def trace(spec: LaunchSpec) -> TracedLaunch | None:
        try:
            return traced_launch(request, spec)[1]
        except TranslationError:
            return None

    def write(traced: TracedLaunch, moved: frozenset[tuple[str, str]]) -> EmittedKernel | None:
        try:
            return _rewritten(request, traced.spec.kernel, traced, moved)
        except TranslationError:
            return None

    return Tools(trace, write)


def _rewritten(
    request: TranslateRequest,
    kernel: str,
    traced: TracedLaunch,
    moved: frozenset[tuple[str, str]] = frozenset(),
    rewriter_type: type[FunctionRewriter] = PipelinedFunction,
) -> EmittedKernel:
    """A traced launch of a kernel, by its name in the request, written as that says. Raises: TranslationError."""
    chosen, rules = request.choices_for(kernel), rules_with(request.rules)
    return rewrite_kernel(traced, chosen, request.strategy, moved, rules, rewriter_type, by_rule=not request.general)


def _kept(request: TranslateRequest, spec: LaunchSpec, loaded: LoadedKernel) -> KernelVersion:
    """A kernel for an NVIDIA GPU with its structure. Raises: TranslationError."""
    plain, emitted = keep_structure(loaded, spec, request.written_for, target(request.target))
    return KernelVersion(plain, replace(loaded, lifted=emitted.kernel.text), emitted, spec.options.get("num_warps", 4))


def _alike(
    request: TranslateRequest, versions: list[KernelVersion], traces: list[TracedLaunch | None]
) -> list[KernelVersion]:
    """The launches of one kernel with one choice of what moves from tile to tile, where that leaves fewer texts.

    The choice is worth a few scalar instructions per tile (`gluonize.loops.forms.prepare`); one text for the configurations
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
                assert traces[i] is not None, "bug in gluonize: what keeps its structure has no loops to write again"
                emitted = _rewritten(request, versions[i].spec.kernel, traces[i], moved)
                emitted.record.image_tuples |= versions[i].emitted.record.image_tuples
                changed[i] = replace(versions[i], emitted=emitted)
        together = [changed.get(i, versions[i]) for i in own]
        if changed and texts_of(together) < texts_of([versions[i] for i in own]):
            for i, version in changed.items():
                out[i] = version
    return out


def output_text(
    request: TranslateRequest, versions: list[KernelVersion], assumed: tuple[str, ...], asked: set[str]
) -> tuple[str, tuple[str, ...], tuple[tuple[int, int], ...]]:
    """The output file, notes, and which of its lines came from which of the source: the source file with its kernels replaced, or in batch mode the kernels alone."""
    file, _ = resolve_source(request.source, full_search_path(tuple(request.search_path)))
    source = parse_file(versions[0].loaded.path if request.standalone else file.path)
    style = request.style.for_source(source.text)
    options = {
        (v.loaded.qualname.rpartition(".")[2], name): value
        for v in versions
        for name, value in _chosen_options(request, v.spec).items()
    }
    facts = SourceFacts(
        source.path,
        _digest(source.written or source.text),
        request.target,
        __version__,
        assumed,
        style.line_length,
        tuple((kernel, name, value) for (kernel, name), value in options.items()),
        triton_version(),
        fuses(),
    )
    general = request.fallback == "general"
    lifted = any(v.loaded.lifted for v in versions)
    if general and (clusters := [kernel for kernel, name in options if name == CTAS]):
        message = f"{clusters[0]} cannot be launched as a cluster here and as one workgroup there"
        help = "leave --fallback or the choice of num-ctas out"
        raise TranslationError(Diagnostic("fallback", message, source.path, help=help))
    if (request.standalone or lifted) and not general:
        text, notes = standalone_module(versions, facts)
        laid_out = str(style.laid_out(text))
        return laid_out, notes, lines_from(text.tree, laid_out, source.path)
    # The general kernel is the author's, with all that it needs around it.
    text, notes = whole_file(source, versions, facts, general)
    tree = text.tree if isinstance(text, Printed) else None  # None where nothing was translated
    text = str(style.laid_out(text))
    origins = lines_from(tree, text, source.path) if tree is not None else ()
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
    return text, notes, origins


def _chosen_options(request: TranslateRequest, spec: LaunchSpec) -> dict[str, int | str]:
    """The options that a launch has by choice."""
    own = as_launched(spec, request.choices_for(spec.kernel)).options
    return {name: value for name, value in spec.options.items() if name not in own}


def translate_launch(
    request: TranslateRequest,
    spec: LaunchSpec,
    rewriter_type: type[FunctionRewriter] = PipelinedFunction,
    beside: Sequence[LaunchSpec] = (),
    read: LoadedKernel | None = None,
) -> tuple[LoadedKernel, TracedLaunch, EmittedKernel]:
    """Trace, lay out and rewrite one kernel for one launch; rewriter_type: what writes each function; beside, read: as of
    `traced_launch`."""
    loaded, traced = traced_launch(request, spec, beside, read)
    emitted = _rewritten(request, spec.kernel, traced, rewriter_type=rewriter_type)
    emitted.record.image_tuples |= {name for name, kind in spec.signature.items() if is_of_images(kind)}
    return loaded, traced, emitted


def traced_launch(
    request: TranslateRequest, spec: LaunchSpec, beside: Sequence[LaunchSpec] = (), read: LoadedKernel | None = None
) -> tuple[LoadedKernel, TracedLaunch]:
    """One kernel read, and traced and laid out for one launch; beside: other launches that the file is written for; read: the
    kernel where it has been read."""
    loaded = read or _read(request, spec)[0]
    spec = replace(spec, source=request.source or spec.source)
    if loaded.fn.is_gluon():
        loaded, spec = _lifted(loaded, spec, request)
    check_options(loaded, spec, request.target)
    for fn in (loaded.fn, *(helper.value for helper in loaded.helpers)):
        if isinstance(fn, JITFunction):
            take_apart(fn)
    free_module_names(loaded)
    chosen = request.choices_for(spec.kernel)
    try:
        alike = [other for other in (*request.launches, *beside) if other.kernel == spec.kernel]
        defaults = {p.name: p.default for p in loaded.fn.params if p.has_default}
        traced = _traced(loaded, _with_matrix_options(spec, chosen), request, chosen)
        traced = with_wide_operands(traced, chosen, request, partial(_traced, loaded, request=request, chosen=chosen))
        given = given_numbers((spec, *alike), defaults)
        if traced.shared is not None:
            loaded, spec = replace(loaded, fn=traced.trace.frames[0].fn), with_shared(spec, traced.shared)
        traced = replace(traced, spec=spec, given=given)
        if (
            chosen.asks("lds-partitions", "two")
            and (anchors := with_spread_products(traced.anchors, traced.num_warps)) is not None
        ):
            # Operands that Triton takes through LDS are in its own layout of the product.
            traced = replace(traced, anchors=anchors, operands_in_lds={})
    except CompilationError as error:
        raise explain_trace_error(loaded, error) or _trace_refusal(loaded, spec, error) from error
    except RuntimeError as error:
        if "error encountered during parsing" not in str(error) and "PassManager" not in str(error):
            raise
        why = f"its own compiler stops: {str(error).strip().splitlines()[-1]}"
        message = "Triton does not accept this kernel for this launch"
        raise TranslationError(Diagnostic("triton-refuses", message, loaded.path, loaded.line, 1, why)) from error
    return loaded, traced


def _read(request: TranslateRequest, spec: LaunchSpec) -> tuple[LoadedKernel, LaunchSpec]:
    """The kernel of a launch, and the launch: that of a kernel that is Gluon already says what it is written for.

    Raises: TranslationError.
    """
    if isinstance(spec, RefusedLaunch):
        raise TranslationError(*spec.problems)
    # A launch names its source for batch mode; here it is the request's.
    own = replace(spec, source=request.source or spec.source)
    loaded = load_for_launch(own, request.source, request.search_path, request.import_hosts)
    if not loaded.fn.is_gluon():
        return loaded, spec
    return loaded, replace(spec, target=source_target(loaded, spec, request.written_for))


def _lifted_text(request: TranslateRequest, versions, outcomes, notes, started: float) -> TranslateResult:
    """The Triton kernels that the request's kernels compute, those of all launches in one file."""
    texts = list(dict.fromkeys(v.loaded.lifted for v in versions if v.loaded.lifted))
    diagnostics = [d for o in outcomes for d in o.diagnostics]
    if not texts and not diagnostics:
        message = "none of the kernels is Gluon already: there is nothing to lift"
        diagnostics = [Diagnostic("source-gluon", message, request.source, help="leave --emit out")]
    status = "translated" if texts and (request.keep_going or not diagnostics) else "refused"
    text = together(texts) if status == "translated" else None
    seconds = time.perf_counter() - started
    return TranslateResult(
        status, text, tuple(outcomes), tuple(diagnostics) if not texts else (), tuple(notes), seconds
    )


def _lifted(loaded: LoadedKernel, spec: LaunchSpec, request: TranslateRequest) -> tuple[LoadedKernel, LaunchSpec]:
    """A kernel that is Gluon already as the Triton kernel that it computes, in the place of the author's."""
    wanted = target(request.target) if request.emit is None else None
    lifted = lift_kernel(loaded, spec, request.written_for, wanted)
    return replace(lifted.loaded, path=loaded.path, line=loaded.line, lifted=lifted.text), lifted.spec


def _traced(loaded: LoadedKernel, spec: LaunchSpec, request: TranslateRequest, chosen: Choices) -> TracedLaunch:
    """The kernel traced, helpers that load a loop's tiles put into the loop, and loops in two: then it is a copy with another source."""

    def trace(fn: Any, launch: LaunchSpec = spec) -> TracedLaunch:
        return trace_launch(fn, launch, request.target, loaded.load_jit, not request.general)

    def read(fn: Any) -> Trace:
        return read_trace(fn, spec, request.target, loaded.load_jit)

    traced = inline_tile_loads(trace(loaded.fn), trace, read)
    if programs_per_unit(chosen):
        facts = read_function(kernel_facts(traced), traced.trace.frames[0])
        return share_steps(traced, facts, chosen, request, trace)
    if not chosen.asks("loop-masks", "peeled"):
        return traced
    return peel_masks(traced, read_function(kernel_facts(traced), traced.trace.frames[0]), trace)


def _with_matrix_options(spec: LaunchSpec, chosen: Choices) -> LaunchSpec:
    """`spec` with the options by which Triton's passes take another size of matrix instruction, or wider operands."""
    asked = {"matrix_instr_nonkdim": size} if (size := chosen.number("matrix-size")) else {}
    if chosen.asks("operand-width", "two"):
        asked["kpack"] = 2
    return replace(spec, options={**spec.options, **asked}) if asked else spec


def _trace_refusal(loaded: LoadedKernel, spec: LaunchSpec, error: BaseException) -> TranslationError:
    """Triton's own front end refuses the kernel for this launch: say what it says, where it says it.

    The place is the innermost one in the kernel or a helper; what Triton's own library has inside it is not shown.
    """
    functions = {r.value.src: r.value for r in loaded.reached if r.kind == "jit" and r.path} | {
        loaded.fn.src: loaded.fn
    }
    place = loaded.path, loaded.line, 1
    inner, help = error, ""
    while True:
        node, fn = getattr(inner, "node", None), functions.get(getattr(inner, "src", None))
        if fn is not None and hasattr(node, "lineno"):
            place = fn.file_name or loaded.path, file_line(fn, node.lineno), node.col_offset + 1
            own = fn is loaded.fn and not isinstance(node, ast.FunctionDef)
            named = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} if own else set()
            help = _other_value(spec, {name: value for name, value in spec.constexprs.items() if name in named})
        if not isinstance(inner.__cause__, CompilationError):
            break
        inner = inner.__cause__
    text = (getattr(inner, "error_message", None) or str(inner).strip().splitlines()[-1]).strip()
    if isinstance(inner, CompileTimeAssertionFailure) and not inner.error_message:
        text = "a static assertion is false"
    help = LESS_DEEP if text == TOO_DEEP else help
    return TranslationError(
        Diagnostic("triton-refuses", "Triton does not accept this kernel for this launch", *place, text, help)
    )


def _other_value(spec: LaunchSpec, named: Mapping[str, Any]) -> str:
    """What to do where Triton refuses a statement: another value of what it names, and first of all no text for a number."""
    quoted = {name: bare for name, value in (named or spec.constexprs).items() if (bare := _without_quotes(value))}
    values = {name: spec.constexprs[name] for name in quoted} or named
    if not values:
        return ""
    bare = ", ".join(f'"{name}": {value}' for name, value in quoted.items())
    said = " and ".join(f"{name} = {value!r}" for name, value in values.items())
    return f"launch {spec.id} says {said}: {f'write it without quotes, {bare}' if quoted else 'give another value'}"


def _without_quotes(value: Any) -> str:
    """The number, truth value or null that a text of a launch holds, as JSON writes it; "" for any other text and value."""
    if not isinstance(value, str):
        return ""
    text = value.strip().lower()
    try:
        found = json.loads({"none": "null"}.get(text, text))
    except ValueError:
        return ""
    return "" if isinstance(found, (str, list, dict)) else json.dumps(found)


def assumptions(emitted: EmittedKernel) -> tuple[str, ...]:
    """What the translation of one launch relies on at run time, one line each."""
    return tuple(RunTimeContract.of([emitted.record]).lines())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
