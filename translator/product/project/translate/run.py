"""Carrying out one planned output file: translate, compile, compare, validate, write."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import logging
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import replace

from gluonize.decide.choices.chosen import Choices
from gluonize.diagnostics import Diagnostic, InternalError, TranslationError
from gluonize.judge.cycles.clocks import clocks_beside
from gluonize.judge.lower.cache_entry import CODE as UNUSABLE_CACHE
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.judge.lower.compile import Lowered
from gluonize.judge.lower.parity import Parity
from gluonize.product.project.cache.recorded import Reads
from gluonize.product.project.cache.results import ContentCache, content_key
from gluonize.product.project.cache.translation import stamped_text, translate_cached
from gluonize.product.project.launches.jobs import HostLaunchJobs
from gluonize.product.project.output.draft import draft_path
from gluonize.product.project.output.file import write_whole
from gluonize.product.project.output.provenance import read_generated, without_line
from gluonize.product.project.output.rejected import moved, rejected_path, with_findings
from gluonize.product.project.output.verdict import with_verdict
from gluonize.product.project.translate.plan import PlannedFile, TranslateOptions
from gluonize.product.project.translate.report import CheckedLaunch, FileReport
from gluonize.product.project.translate.validating import Validating
from gluonize.read.kernels.gluon_kernels import is_gluon_launch, plain_launch
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import CTAS, LaunchOutcome, TranslateRequest, TranslateResult, as_launched

_CROSSING = "AMDGPU does not support cross-CTA shared memory transfers"  # of Triton's compiler
TRANSLATE = "gluonize.translation:translate_kernel"
LOWER = "gluonize.judge.lower.jobs:lower_file"
LOWER_AND_WALK = "gluonize.judge.cycles.job:lower_and_walk"
VALIDATE = "gluonize.judge.verdict:validate_launch"
_PASSED = ("validated", "skipped")
log = logging.getLogger("gluonize")


@functools.cache
def is_available(function: str) -> bool:
    """Whether the stage behind `module:function` is part of this build."""
    module, _, name = function.partition(":")
    if (found := importlib.util.find_spec(module)) is None:
        return False
    # A package may exist before the function does; its text tells without importing Triton here.
    with open(found.origin, encoding="utf-8") as file:
        return name in file.read()


def process_file(planned: PlannedFile, options: TranslateOptions, pool: WorkerPool) -> FileReport:
    """Everything for one output file but writing it, which `write_output` does, in the order of the plan."""
    started = time.perf_counter()
    request = planned.request
    if planned.problems:
        return FileReport(planned, "refused", diagnostics=planned.problems)
    if not is_available(TRANSLATE):
        found = Diagnostic("not-available", "this build has no translation stage", request.source)
        return FileReport(planned, "refused", diagnostics=(found,))
    try:
        cache = ContentCache.of_user(options.cache)
        result, reads = translate_cached(request, TRANSLATE, pool, cache)
    except TranslationError as error:
        crashed = any(found.code.startswith("compiler-") for found in error.diagnostics)
        return FileReport(planned, "failed" if crashed else "refused", diagnostics=error.diagnostics)
    except InternalError as error:
        found = Diagnostic(
            "internal-error", "a bug in gluonize", request.source, why=str(error).strip().splitlines()[-1]
        )
        return FileReport(planned, "failed", diagnostics=(found,), bug=str(error))
    if result.status != "translated" and not result.diagnostics and not any(o.diagnostics for o in result.outcomes):
        help = "give launch specs with -l FILE"
        found = Diagnostic("spec-missing", "no launch could be derived from the source", request.source, help=help)
        return FileReport(planned, result.status, diagnostics=(found,), notes=result.notes)
    report = FileReport(
        planned, result.status, diagnostics=result.diagnostics, notes=result.notes, seconds=result.seconds,
        derivations=result.derivations,
    )  # fmt: skip
    if result.text is None:
        launches = tuple(CheckedLaunch(o, o.status, o.diagnostics) for o in result.outcomes)
        found, _ = HostLaunchJobs(request, result, options.compile, pool).found("", (), _untranslated(launches))
        return replace(report, launches=launches, host_launches=found)
    found = replace(request, chosen=result.chosen) if result.chosen else request
    report = replace(report, planned=replace(planned, request=found))
    if request.optimize != "parity":
        nothing = (
            f"{kernel}: nothing that was tried is better than the rules"
            for kernel, own in found.chosen
            if own == Choices()
        )
        report = replace(report, notes=(*report.notes, *nothing))
    text = stamped_text(result.text, found, planned.output, options.launches, reads, cache)
    try:
        checked = checked_report(report, replace(result, text=text), options, pool, cache, reads)
    except TranslationError as error:
        return replace(report, status="refused", diagnostics=error.diagnostics)
    return replace(checked, elapsed=time.perf_counter() - started)


def checked_report(
    report: FileReport, result: TranslateResult, options: TranslateOptions, pool: WorkerPool,
    cache: ContentCache, reads: Reads,
) -> FileReport:  # fmt: skip
    """`_checked`, from the cache when the same text passed the same checks before."""
    request, found = report.planned.request, is_available(VALIDATE)
    key = content_key(
        "checks", LOWER_AND_WALK, VALIDATE, "proved first", found, request.source, request.target, request.import_hosts, without_line(result.text),
        result.outcomes, options.compile, options.parity, options.validate, options.keep_going,
    )  # fmt: skip
    if options.compile and (known := cache.get(key)) is not None:
        log.info("%s for %s: checks found in the cache", request.source, request.target)
        launches, hosts = known
        return _noted(replace(report, launches=launches, host_launches=hosts, status="translated", text=result.text))
    checked, host_reads = _checked(report, result, options, pool)
    passed = all(x.status == "translated" and x.validation["status"] in _PASSED for x in checked.launches)
    if (
        options.compile
        and not request.import_hosts
        and checked.status == "translated"
        and passed
        and not checked.bug
        and checked.notes == report.notes
    ):
        cache.put(key, (checked.launches, checked.host_launches), reads.joined(host_reads))
    return _noted(checked)


def _noted(report: FileReport) -> FileReport:
    """With a note for each launch that Triton's own kernel has no LDS for: its clocks are no measure."""
    kernels = [
        (x.outcome.spec.id, x.triton) for x in report.launches if x.status == "translated" and x.triton is not None
    ]
    beyond = [(id, overflow) for id, triton in kernels if (overflow := triton.lds_overflow())]
    said = (f"{id}: Triton's own compile could not be launched: {overflow.message}" for id, overflow in beyond)
    return replace(report, notes=(*report.notes, *said))


def _checked(
    report: FileReport, result: TranslateResult, options: TranslateOptions, pool: WorkerPool
) -> tuple[FileReport, Reads]:
    """The report of a text after its launches were compiled, compared and validated, and what was read for those in host code; nothing
    is written yet."""
    with tempfile.TemporaryDirectory(prefix="gluonize-") as folder:
        # Checked where it cannot be mistaken for a result; under its final name, which compiler messages quote.
        request = report.planned.request
        draft = draft_path(folder, request.source, os.path.basename(report.planned.output), request.search_path)
        write_whole(draft, result.text)
        specs = [outcome.spec for outcome in result.outcomes if outcome.status == "translated"]
        asked = options.compile and options.validate and not request.emit and is_available(VALIDATE)
        validating = Validating(request, draft, specs, pool, VALIDATE) if asked else None
        started = [_check(outcome, draft, report.planned, options, pool, validating) for outcome in result.outcomes]
        hosts = HostLaunchJobs(request, result, options.compile, pool)
        if validating is not None:
            validating.go_on()
        launches, notes = _passed_over(request, tuple(ended() for ended in started))
        status = _status_of(launches, result, options)
        good = status == "translated"
        served = [x.outcome.spec for x in launches if good and x.status == "translated"]
        lost = {} if good else {x.outcome.spec.kernel: _LOST[status] for x in launches}
        found, host_reads = hosts.found(draft, served, lost | _untranslated(launches))
    checked = replace(
        report, launches=launches, status=status, text=result.text, notes=(*report.notes, *notes, *hosts.notes)
    )
    return replace(checked, host_launches=found, bug=hosts.bug), host_reads


# Why no kernel of a file is served.
_LOST = {
    "failed": "its translation does not compile", "mismatch": "its translation is wrong", "refused": "the file is not translated",
}  # fmt: skip


def _status_of(launches: tuple[CheckedLaunch, ...], result: TranslateResult, options: TranslateOptions) -> str:
    """What became of a file whose launches were checked."""
    statuses = [x.status for x in launches]
    beyond_triton = any(x.status == "refused" and x.outcome.status == "translated" for x in launches)
    if "failed" in statuses:
        return "failed"
    if "translated" not in statuses or beyond_triton and not options.keep_going:
        return "refused" if launches else result.status
    return "mismatch" if any(x.validation.get("status") == "mismatch" for x in launches) else "translated"


def _untranslated(launches: tuple[CheckedLaunch, ...]) -> dict[str, str]:
    """Why kernels have no translation, by name."""
    out = {}
    there = {x.outcome.spec.kernel for x in launches if x.status == "translated"}
    for kernel, found in ((x.outcome.spec.kernel, x.diagnostics or x.outcome.diagnostics) for x in launches):
        why = f": {found[0].message.removeprefix(f'{kernel}: ')}" if found else ""
        out |= {} if kernel in there else {kernel: f"{kernel} is not translated{why}"}
    return out


def _passed_over(
    request: TranslateRequest, launches: tuple[CheckedLaunch, ...]
) -> tuple[tuple[CheckedLaunch, ...], tuple[str, ...]]:
    """Launches that nobody asked for by name and that Triton cannot do either: a note each, no refusal.

    Autotuning passes over a configuration that does not fit, as it does with the source; other ones of the kernel are there. A
    general kernel is tried with its greatest sizes, which need more LDS than the others.
    """
    there = {x.outcome.spec.kernel for x in launches if x.status == "translated"}
    asked = {spec.id for spec in request.launches}
    out, notes = [], []
    for x in launches:
        beyond = x.status == "refused" and x.outcome.status == "translated" and x.outcome.spec.id not in asked
        if beyond and x.outcome.spec.kernel in there:
            what = "such a launch is refused" if asked else "autotuning passes over it"
            notes.append(f"{x.outcome.spec.id}: {x.diagnostics[0].message}, and so it is for Triton: {what}")
            x = replace(x, status="passed-over", diagnostics=())
        out.append(x)
    return tuple(out), tuple(notes)


def write_output(report: FileReport) -> FileReport:
    """Write what `process_file` made: the output when it is good, `NAME.rejected.py` when it does not compile or is wrong."""
    if report.text is None:
        return report
    output = report.planned.output
    bare = replace(report, text=None)
    try:
        if report.status == "translated":
            notes = _keep_edits(output, report.text)
            write_whole(output, with_verdict(report.text, report.validations, report.clocks))
            return replace(bare, output=output, notes=(*report.notes, *notes))
        if report.status in ("failed", "mismatch"):
            # Code that does not compile or is wrong is no result, but whoever looks into it needs it.
            return write_rejected(bare, report.text)
        return bare
    except TranslationError as error:
        return replace(bare, status="failed", diagnostics=(*report.diagnostics, *error.diagnostics))


def write_rejected(report: FileReport, text: str) -> FileReport:
    """Write a text that is no result beside where a good one would be; -> the report about that file."""
    output = report.planned.output
    path = rejected_path(output)
    wrong = [(x.outcome.spec.id, x.validation) for x in report.launches if x.validation.get("status") == "mismatch"]
    findings = [f"{id}: {mismatch_text(found)}" for id, found in wrong]
    shown, by = with_findings(text, findings) if report.status == "mismatch" else (text, 0)
    write_whole(path, shown)
    launches = tuple(_moved(checked, output, path, by) for checked in report.launches)
    what = "is wrong" if report.status == "mismatch" else "did not compile"
    return replace(report, launches=launches, notes=(*report.notes, f"the text that {what} is in {path}"))


def mismatch_text(found: dict) -> str:
    """What was found, and on which inputs."""
    variant = f" (with {found['variant']})" if found.get("variant") else ""
    return f"{found.get('reason') or 'its outputs differ'}{variant}"


def _mismatch(found: dict, output: str) -> Diagnostic:
    """A mismatch as an error at the line of the output that stored the first wrong element, or that broke a rule."""
    place = (found.get("hazards") or [found])[0]
    line = place.get("line", 0) if place.get("file") == output else 0
    message = "the translation computes something else than its source"
    help = "this is a bug in gluonize: report it with the rejected file and the launch"
    return Diagnostic("mismatch", message, output, line, place.get("column", 0), mismatch_text(found), help)


def _keep_edits(output: str, text: str) -> tuple[str, ...]:
    """Before a file that was edited by hand is replaced: keep it as `OUT.edited`; -> a note that says so."""
    found = read_generated(output)
    if found is None or not found.edited or found.bare == without_line(text).replace("\r\n", "\n"):
        return ()
    kept = f"{output}.edited"
    for number in itertools.count(2):
        if not os.path.exists(kept):
            break
        kept = f"{output}.edited{number}"
    with open(output, encoding="utf-8", newline="") as file:
        write_whole(kept, file.read())
    return (f"{output} was edited by hand: that text is in {kept}; gluonize update merges edits",)


def _moved(checked: CheckedLaunch, old: str, new: str, by: int) -> CheckedLaunch:
    """Findings that point into the output, pointing into the file that really holds the text, `by` lines below."""
    return replace(
        checked,
        diagnostics=tuple(Diagnostic(**moved(found.as_json(), old, new, by)) for found in checked.diagnostics),
        validation=moved(checked.validation, old, new, by),
    )


def _check(
    outcome: LaunchOutcome, draft: str, planned: PlannedFile, options: TranslateOptions, pool: WorkerPool,
    validating: Validating | None,
) -> Callable[[], CheckedLaunch]:  # fmt: skip
    """Start to compile both sides of one launch; -> what waits for that, and for its validation, and compares them."""
    checked = CheckedLaunch(outcome, outcome.status, outcome.diagnostics)
    if outcome.status != "translated" or not options.compile or planned.request.emit:
        return lambda: checked
    request, spec = planned.request, outcome.spec
    job, more = (LOWER_AND_WALK, {"costs_only": True}) if options.parity else (LOWER, {})
    ours = _submit(pool, job, draft, plain_launch(spec) if is_gluon_launch(spec) else spec, planned, options, **more)
    own = as_launched(spec, request.choices_for(spec.kernel))
    theirs = _submit(pool, job, request.source, own, planned, options, **more) if options.parity else None
    return functools.partial(_compared, checked, draft, planned, options, pool, ours, theirs, validating)


def _compared(
    checked: CheckedLaunch, draft: str, planned: PlannedFile, options: TranslateOptions, pool: WorkerPool,
    ours: Future, theirs: Future | None, validating: Validating | None,
) -> CheckedLaunch:  # fmt: skip
    """What became of the jobs of one launch."""
    request, spec = planned.request, checked.outcome.spec
    gluon, problems = _result(ours)
    triton, complaints = _result(theirs)
    problems = tuple(replace(d, file=planned.output if d.file == draft else d.file) for d in problems)
    if gluon and not problems and (overflow := gluon.lds_overflow()):
        problems = (overflow,)
        if triton is None and not complaints:
            own = as_launched(spec, request.choices_for(spec.kernel))
            triton, complaints = _result(_submit(pool, LOWER, request.source, own, planned, options))
        complaints = complaints or tuple(filter(None, [triton.lds_overflow()] if triton else []))
    if crossing := _crossing(problems, spec, request.source):
        return replace(checked, status="refused", diagnostics=crossing)
    if problems and complaints:
        # Triton itself cannot do this launch on this target: a refusal, with Triton's own reason.
        first = problems[0]
        why = f"Triton's own compile of the source fails too: {complaints[0].message}: {complaints[0].why}"
        return replace(checked, status="refused", diagnostics=(replace(first, why=why), *problems[1:]))
    if problems:
        return replace(checked, status="failed", diagnostics=problems)
    parity = Parity(spec.id, request.target, gluon.metrics, triton.metrics) if triton else None
    clocks = clocks_beside(gluon, triton) if triton else None
    found = {"status": "skipped"}
    if validating is not None:
        try:
            found = validating.found(spec)
        except TranslationError as error:
            reason = error.diagnostics[0].message
            found = {
                "status": "not_runnable",
                "reason": reason,
                "diagnostics": [d.as_json() for d in error.diagnostics],
            }
        except InternalError as error:
            found = {"status": "not_runnable", "reason": "a bug in gluonize", "bug": str(error)}
        found = moved(found, draft, planned.output, 0)
        if found.get("status") == "mismatch":
            checked = replace(checked, diagnostics=(*checked.diagnostics, _mismatch(found, planned.output)))
    return replace(checked, gluon=gluon, triton=triton, parity=parity, clocks=clocks, validation=found)


def _crossing(problems: tuple[Diagnostic, ...], spec: LaunchSpec, source: str) -> tuple[Diagnostic, ...]:
    """The refusal of a cluster whose workgroups would have to tell each other something, which the compiler alone sees."""
    if not any(_CROSSING in problem.why for problem in problems):
        return ()
    message = (
        f"num_ctas={spec.options.get(CTAS, 1)}: a value of {spec.kernel} is needed by a workgroup that does not have it"
    )
    why = f"{problems[0].message}: {_CROSSING}"
    return (Diagnostic("clusters", message, source, why=why, help="launch with num_ctas=1"),)


def _submit(
    pool: WorkerPool, function: str, path: str, spec: LaunchSpec, planned: PlannedFile, options: TranslateOptions,
    **more: bool,
):  # fmt: skip
    request = planned.request
    what = f"{spec.kernel} of {os.path.basename(path)} on {request.target}"
    return pool.submit(
        function, path, spec, request.target, request.search_path, options.import_hosts, what=what, **more
    )


def _result(future) -> tuple[Lowered | None, tuple[Diagnostic, ...]]:
    if future is None:
        return None, ()
    try:
        return future.result(), ()
    except TranslationError as error:
        if any(found.code == UNUSABLE_CACHE for found in error.diagnostics):
            raise  # it says nothing of the translation
        return None, error.diagnostics
    except InternalError as error:
        return None, (Diagnostic("internal-error", "a bug in gluonize while compiling", why=str(error)),)
    except CancelledError:
        raise KeyboardInterrupt from None
