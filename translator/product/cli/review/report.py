"""`gluonize report`: one self-contained page with everything that a review of a translation needs."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace

from gluonize.diagnostics import Diagnostic, InternalError, TranslationError
from gluonize.judge.lower.children.worker import WorkerPool, job_count
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, print_diagnostics, rich_console
from gluonize.product.cli.review.inputs import TRANSLATE, Review, ReviewOptions, one_target, open_review, request_of
from gluonize.product.project.files.planned import from_provenance
from gluonize.product.project.output.file import check_destination, write_whole
from gluonize.product.project.output.overwrite import check_result, is_page
from gluonize.product.project.output.provenance import read_generated
from gluonize.product.report.checks import LOWER, Checked, Sources, check
from gluonize.product.report.layouts.job import DrawnLayout
from gluonize.product.report.loops.timeline import LoopTimeline
from gluonize.product.report.page.page import ReportData, Upstream, report_page
from gluonize.product.report.review.correspondence import correspond
from gluonize.read.files.source_names import is_path, source_folders, source_name
from gluonize.read.spec.launch import LaunchSpec

LOOPS = "gluonize.product.report.loops.planned:planned_loops"
LAYOUTS = "gluonize.product.report.layouts.job:drawn_layouts"
UPSTREAM = "gluonize.product.report.upstream_job:upstream_text"


@dataclass(frozen=True)
class ReportOptions:
    """output: the page, NAME_TARGET.html beside the translation when None. upstream: compare with upstream's translator."""

    output: str | None = None
    validate: bool = True
    upstream: bool = False
    jobs: int = 0


def run_report(review_options: ReviewOptions, options: ReportOptions, verbosity: Verbosity) -> int:
    """Write the page; 1 when the translation does not compile or computes something else, which the page then shows."""
    target = one_target(review_options.target or "")
    output = options.output or _beside(review_options.source, target)
    check_destination(output)
    check_result(output, (review_options.source, review_options.out, review_options.launches), is_page)
    console = rich_console(verbosity)
    with WorkerPool(job_count(options.jobs), timeout=review_options.timeout) as pool:
        review = open_review(review_options, pool)
        if not review.launches:
            review = replace(review, launches=_recorded(pool, review_options, review))
        if not review.launches:
            message = "no launches: layouts and machine code depend on what the kernel is launched with"
            raise TranslationError(Diagnostic("spec-missing", message, review.source_path, help="give -l FILE"))
        source = review_options.source
        given = Sources(
            source, review.result_text, review.result_name, target, source_folders(source), review_options.import_hosts
        )
        checked = check(pool, given, review.launches, validate=options.validate, stages=True)
        layouts, remarks = _layouts(pool, checked, review, target)
        loops = _loops(pool, review_options, review, target)
        upstream = _upstream(pool, given, checked) if options.upstream else {}
    data = ReportData(
        correspondence=correspond(review.source_text, review.result_text, review.origins),
        source_name=_name(review.source_path),
        result_name=os.path.basename(review.result_name),
        target=target,
        checked=checked,
        layouts=layouts,
        upstream=upstream,
        assumptions=_assumptions(review),
        remarks=(*_choices(review), *remarks),
        loops=loops,
    )
    write_whole(output, report_page(data))
    problems = [p for c in checked for p in c.problems if c.gluon is None]
    print_diagnostics(problems)
    if not verbosity.quiet:
        console.print(f"{output}", markup=False)
    wrong = any(c.gluon is None or c.validation["status"] == "mismatch" for c in checked)
    return exit_status.CHECK_FAILED if wrong else exit_status.DONE


def _recorded(pool: WorkerPool, options: ReviewOptions, review: Review) -> tuple[LaunchSpec, ...]:
    """The launches that the translation says it was made for: those of its file, or guessed once more; none of a file without."""
    generated = read_generated(review.result_name)
    if generated is None:
        return ()
    made = replace(from_provenance(generated), source=options.source)
    if made.launches is not None:
        return tuple(replace(spec, source=options.source) for spec in made.specs())
    result = pool.call(TRANSLATE, made.request(), what=f"guessing the launches of {options.source}")
    return tuple(o.spec for o in result.outcomes if o.status == "translated")


def _loops(pool: WorkerPool, options: ReviewOptions, review: Review, target: str) -> tuple[LoopTimeline, ...] | None:
    """The planned loops; None for a translation that is not what the translator makes of its source today."""
    request = request_of(options, target, review.launches)
    generated = read_generated(review.result_name)
    try:
        if review.result is None and generated is not None:
            made = replace(from_provenance(generated), source=options.source)
            made = replace(made, launches=options.launches) if options.launches else made
            request = replace(made.request(), launches=review.launches)
        text = review.result_text if review.result is None else None
        return pool.call(LOOPS, request, text, what=f"the loops of {review.source_path}")
    except TranslationError:
        return None  # its source is refused today; the page says what the text shows


def _beside(source: str, target: str) -> str:
    folder = os.path.dirname(source) if is_path(source) else ""
    return os.path.join(folder, f"{source_name(source)}_{target}.html")


def _layouts(
    pool: WorkerPool, checked: tuple[Checked, ...], review: Review, target: str
) -> tuple[dict[str, tuple[DrawnLayout, ...]], list[str]]:
    """Layouts by launch id, and a remark for every launch whose layouts could not be drawn."""
    pending = {
        entry.spec.id: pool.submit(
            LAYOUTS,
            entry.gluon.stages["ttgir"],
            review.result_text,
            entry.spec.kernel.rpartition(".")[2],
            target,
            entry.gluon.num_warps,
            what=f"layouts of {entry.spec.kernel}",
        )
        for entry in checked
        if entry.gluon is not None
    }
    found, remarks = {}, []
    for name, future in pending.items():
        try:
            found[name] = future.result()
        except (TranslationError, InternalError) as error:
            remarks.append(f"layouts of {name} are not drawn: {str(error).splitlines()[0]}")
    return found, remarks


def _upstream(pool: WorkerPool, given: Sources, checked: tuple[Checked, ...]) -> dict[str, Upstream]:
    """What upstream's translator makes of every launch, compiled."""
    out = {}
    for number, entry in enumerate(checked):
        try:
            text = pool.call(
                UPSTREAM, given.source, entry.spec, given.target, given.search_path, what="upstream's translator"
            )
            out[entry.spec.id] = Upstream(_compiled(pool, text, entry.spec, given, number))
        except (TranslationError, InternalError) as error:
            diagnostics = getattr(error, "diagnostics", ())
            out[entry.spec.id] = Upstream(
                None, diagnostics[0].why or diagnostics[0].message if diagnostics else str(error)
            )
    return out


def _compiled(pool: WorkerPool, text: str, spec: LaunchSpec, given: Sources, number: int) -> Checked:
    with tempfile.TemporaryDirectory(prefix="gluonize-") as folder:
        path = os.path.join(folder, f"upstream_{number}.py")  # a child knows an imported module by its name
        write_whole(path, text)
        # Its helpers are modules of Triton that are not read statically.
        arguments = (path, spec, given.target, given.search_path, True)
        return Checked(spec, pool.call(LOWER, *arguments, what=f"upstream's {spec.kernel}"))


def _assumptions(review: Review) -> tuple[str, ...]:
    if review.result is not None:
        return tuple(dict.fromkeys(a for o in review.result.outcomes for a in o.assumptions))
    lines = [line.strip("# ") for line in review.result_text.splitlines()[:60] if line.startswith("#")]
    return tuple(line.removeprefix("assumes ") for line in lines if line.startswith("assumes "))


def _choices(review: Review) -> tuple[str, ...]:
    if review.result is None:
        return ()
    return tuple(
        dict.fromkeys(
            [
                *(str(k) for o in review.result.outcomes for k in o.kept_loops),
                *(c for o in review.result.outcomes for c in o.choices),
                *review.result.notes,
            ]
        )
    )


def _name(path: str) -> str:
    relative = os.path.relpath(path)
    return relative if not relative.startswith("..") else os.path.basename(path)
