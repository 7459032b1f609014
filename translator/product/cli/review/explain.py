"""`gluonize explain`: every choice of a translation with its origin and cost, line by line."""

from __future__ import annotations

import os
from dataclasses import replace

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, rich_console
from gluonize.product.cli.results import write_json
from gluonize.product.cli.review.inputs import ReviewOptions, one_target, request_of
from gluonize.product.project.output.overwrite import check_json
from gluonize.product.report.explain.explanation import STAGES, Explanation
from gluonize.read.files.modules import parse_file
from gluonize.read.files.source_names import check_source
from gluonize.read.spec.selected import select_launches

EXPLAIN = "gluonize.product.report.explain.job:explain_launches"


def run_explain(options: ReviewOptions, line: int | None, after: str, json: str | None, verbosity: Verbosity) -> int:
    """Explain every launch. Raises: TranslationError for what is refused: the refusal is the explanation then."""
    if after not in STAGES:
        raise TranslationError(
            Diagnostic("usage", f"--after {after}: no such stage", help=f"one of {', '.join(STAGES)}")
        )
    target = one_target(options.target or "")
    check_json(json)
    check_source(options.source)
    if (
        line is not None
        and os.path.isfile(options.source)
        and line > (count := len(parse_file(options.source).text.splitlines()))
    ):
        raise TranslationError(Diagnostic("usage", f"--line {line}: {options.source} has {count} lines"))
    given = select_launches(options.launches, options.source, options.kernels) if options.launches else ()
    given = tuple(replace(spec, source=options.source) for spec in given)
    with WorkerPool(1, timeout=options.timeout) as pool:
        what = f"explaining {options.source} for {target}"
        found: tuple[Explanation, ...] = pool.call(EXPLAIN, request_of(options, target, given), after, what=what)
    if line is not None:
        lines = sorted({choice.line for explanation in found for choice in explanation.choices})
        here = tuple(explanation.at(line) for explanation in found)
        found = tuple(explanation for explanation in here if explanation.choices)
        if not found and lines:
            near = min(lines, key=lambda other: (abs(other - line), other))
            message, help = "nothing was decided on this line", f"the nearest line with choices is --line {near}"
            raise TranslationError(Diagnostic("usage", message, options.source, line, help=help))
    if json:
        write_json(json, [explanation.as_json() for explanation in found])
    if json != "-" and not verbosity.quiet:
        _print(found, verbosity, line is None and after == STAGES[-1] and not verbosity.verbose)
    return exit_status.DONE


def _print(found: tuple[Explanation, ...], verbosity: Verbosity, brief: bool) -> None:
    """Launches that differ in element types only are shown once, with the types of the first. brief: of several kernels a summary each."""
    from gluonize.product.report.explain.terminal import print_explanation, print_summary

    console = rich_console(verbosity)
    groups: dict[tuple, list[Explanation]] = {}
    for explanation in found:
        alike = tuple(replace(c, dtype="", cost="", bytes=0) for c in explanation.choices)
        groups.setdefault((explanation.kernel, alike, explanation.layouts), []).append(explanation)
    short = len({explanation.kernel for explanation in found}) > 1 and brief
    for i, group in enumerate(groups.values()):
        shown = replace(group[0], launch=", ".join(e.launch for e in group))
        if short:
            print_summary(console, shown)
            continue
        if i:
            console.print()
        sources = {name: parse_file(name).text.splitlines() for name in {c.file for c in shown.choices} if name}
        print_explanation(console, shown, sources, verbosity.verbose)
    if short:
        console.print("line by line: -k KERNEL, --line N, or -v for all", markup=False)
