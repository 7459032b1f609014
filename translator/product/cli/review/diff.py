"""`gluonize diff`: a translation beside its source, in a terminal, as a patch, as a page or as a comment."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from gluonize.diagnostics import Diagnostic, TranslationError, did_you_mean, shown
from gluonize.judge.lower.children.worker import WorkerPool, job_count
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, rich_console
from gluonize.product.cli.review.inputs import Review, ReviewOptions, open_review
from gluonize.product.project.output.file import check_destination, write_whole
from gluonize.product.project.output.overwrite import check_result, is_page, is_text
from gluonize.product.report.review.correspondence import Correspondence, correspond, focused
from gluonize.read.files.source_names import source_folders

FORMATS = ("side", "unified", "html", "github")


@dataclass(frozen=True)
class DiffOptions:
    """format: one of FORMATS. output: a file, None for standard output. context: unchanged lines beside a change, all
    when negative. parity: compile both sides for a github summary."""

    format: str = "side"
    output: str | None = None
    context: int = 3
    parity: bool = True


def run_diff(review_options: ReviewOptions, options: DiffOptions, verbosity: Verbosity) -> int:
    """Show the differences; always 0: that a translation differs from its source is no failure."""
    if options.format not in FORMATS:
        raise TranslationError(
            Diagnostic("usage", f"--format {options.format}: no such format", help=f"one of {', '.join(FORMATS)}")
        )
    if options.output:
        check_destination(options.output)
        inputs = (review_options.source, review_options.out, review_options.launches)
        check_result(options.output, inputs, is_page if options.format == "html" else is_text)
    with WorkerPool(min(2, job_count(0)), timeout=review_options.timeout) as pool:
        review = open_review(review_options, pool)
        found = _of_kernels(
            correspond(review.source_text, review.result_text, review.origins), review, review_options.kernels
        )
        if options.format == "side":
            brief = not (options.output or review_options.kernels or options.context < 0 or verbosity.verbose)
            return _side(review, found, options, verbosity, brief)
        text = _text(review, found, review_options, options, pool)
    if options.output:
        write_whole(options.output, text)
    else:
        sys.stdout.write(text)
        sys.stdout.flush()
    return exit_status.DONE


def _of_kernels(found: Correspondence, review: Review, kernels: tuple[str, ...]) -> Correspondence:
    """Only the kernels that are asked for. Raises: TranslationError `kernel-missing` for one that is not translated."""
    if not kernels:
        return found
    try:
        return focused(found, kernels)
    except KeyError as error:
        there = _kernels(found)
        why = (
            f"{shown(review.result_name)} has {', '.join(there)}" if there else "it has none of the source's functions"
        )
        message = f"no translation of {error.args[0]} to show"
        help = did_you_mean(error.args[0], there or [f.name for f in found.source.functions])
        raise TranslationError(Diagnostic("kernel-missing", message, review.source_path, why=why, help=help)) from None


def _kernels(found: Correspondence) -> list[str]:
    """The kernels of the source that are translated, in its order."""
    origins = sorted(set(found.functions.values()))
    return [found.source.functions[i].name for i in origins if found.source.functions[i].kernel]


def _side(review: Review, found: Correspondence, options: DiffOptions, verbosity: Verbosity, brief: bool) -> int:
    """brief: of several kernels a line each, with what shows one."""
    from gluonize.product.report.review.terminal import print_side_by_side, print_summaries

    names = shown(review.source_path), shown(review.result_name)
    kernels = _kernels(found)
    if brief and len(kernels) > 1:
        console = rich_console(verbosity)
        print_summaries(console, {name: focused(found, (name,)) for name in kernels})
        told = f"side by side: gluonize diff {names[0]} {names[1]} -k {kernels[0]}, or --all"
        console.print(told, markup=False, soft_wrap=True)
        return exit_status.DONE
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            print_side_by_side(rich_console(verbosity, file), found, *names, options.context)
    else:
        print_side_by_side(rich_console(verbosity), found, *names, options.context)
    return exit_status.DONE


def _text(
    review: Review, found: Correspondence, review_options: ReviewOptions, options: DiffOptions, pool: WorkerPool
) -> str:
    names = shown(review.source_path), shown(review.result_name)
    if options.format == "unified":
        from gluonize.product.report.review.text import unified

        return unified(found, *names, options.context if options.context >= 0 else len(found.source.lines))
    if options.format == "html":
        from gluonize.product.report.page.page import diff_page

        return diff_page(found, *names, review.target)
    from gluonize.product.report.review.text import github

    return github(found, *names, review.target, _parity_rows(review, review_options, options, pool))


def _parity_rows(
    review: Review, review_options: ReviewOptions, options: DiffOptions, pool: WorkerPool
) -> list[list[str]]:
    """Figures for the summary; none without a target and launches."""
    if not (options.parity and review.target and review.launches):
        return []
    from gluonize.product.report.checks import Sources, check, summary_rows

    source = review_options.source
    given = Sources(
        source,
        review.result_text,
        review.result_name,
        review.target,
        source_folders(source),
        review_options.import_hosts,
    )
    return summary_rows(check(pool, given, review.launches, validate=False, stages=False))
