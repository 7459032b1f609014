"""`gluonize translate`: plan, run in child processes, print, and write the results."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, print_diagnostics, progress, rich_console
from gluonize.product.cli.finding_formats import of_report, reported
from gluonize.product.cli.results import result_entries, write_json
from gluonize.product.cli.translate.guess_table import correction_lines, missing_lines, table_lines, write_launches
from gluonize.product.cli.translate.result_lines import (
    GOOD,
    HOW_TO_CORRECT,
    OPEN,
    WRONG,
    attention_lines,
    kernel_lines,
    launch_lines,
    launches_by_kernel,
    validation_line,
)
from gluonize.product.cluster.open_pool import open_pool
from gluonize.product.project.output.verdict import united_coverage
from gluonize.product.project.translate.plan import RAISE, PlannedFile, TranslateOptions, plan_translation
from gluonize.product.project.translate.report import CheckedLaunch, FileReport
from gluonize.product.project.translate.run import process_file, write_output
from gluonize.product.review.annotations import Annotation

if TYPE_CHECKING:
    from gluonize.product.cli.translate.raised_instead import RaisedLaunch

__all__ = ["TranslateOptions", "run_translate"]


def run_translate(options: TranslateOptions, verbosity: Verbosity) -> int:
    """Translate what the options name; returns the exit status."""
    with reported(options.format, options.json) as found:
        return _run_translate(options, verbosity, found)


def _run_translate(options: TranslateOptions, verbosity: Verbosity, found: list[Annotation]) -> int:
    if options.fallback == RAISE:
        options = replace(options, keep_going=True)
    plan = plan_translation(options)
    if not options.cache:
        os.environ["TRITON_ALWAYS_COMPILE"] = "1"  # what the compiler keeps is not used either
    to_stderr = options.json == "-" or options.format != "text"
    if options.retile:
        options, plan = _retiled(options, plan, verbosity, to_stderr)
    printer = _Printer(verbosity, to_stderr, batch=options.source is None)
    reports = []
    with progress("translating", len(plan), verbosity) as advance:
        for report in _reports(plan, options):
            reports.append(report)
            advance()
            printer.file(report)
            found += () if _passed_by(report) else of_report(report)
    if options.write_launches:
        write_launches(options.write_launches, [d for report in reports for d in report.derivations])
    raised = _raised_instead(reports, options) if options.fallback == RAISE else []
    if options.json:
        of_launch = {(one.source, one.target, one.spec.id): {"raised": one.as_json()} for one in raised}
        entries = [entry for report in reports for entry in result_entries(report)]
        keys = [(entry["source"], entry["target"], entry["id"]) for entry in entries]
        write_json(options.json, [entry | of_launch.get(key, {}) for key, entry in zip(keys, entries)])
    printer.summary(reports)
    return _status_with(raised, reports, printer)


def _raised_instead(reports: list[FileReport], options: TranslateOptions) -> list[RaisedLaunch]:
    """Raise what was refused."""
    from gluonize.product.cli.translate.raised_instead import raise_refused  # with the compiler's modules

    with open_pool(options.jobs, options.timeout, options.cache, options.cluster) as pool:
        return raise_refused(reports, pool)


def _status_with(made: list[RaisedLaunch], reports: list[FileReport], printer: _Printer) -> int:
    """Say last what was raised, and give the status of the command: what is raised and validated is no refusal."""
    for one in made:
        for line in one.lines():
            printer.say(line, _STYLES[OPEN] if one.good else _STYLES[WRONG])
    done = {one.spec.id for one in made if one.good}
    status = _status(reports)
    if status != exit_status.REFUSED or any(not one.good for one in made) or not made:
        return status
    left = [
        replace(r, status="translated", launches=tuple(x for x in r.launches if x.outcome.spec.id not in done))
        for r in reports
    ]
    return _status(left)


def _retiled(
    options: TranslateOptions, plan: tuple[PlannedFile, ...], verbosity: Verbosity, to_stderr: bool
) -> tuple[TranslateOptions, tuple[PlannedFile, ...]]:
    """The same for launches with other tiles, which then have a file of their own."""
    from gluonize.product.cli.translate.retile import retile  # with the model of cycles

    with open_pool(options.jobs, options.timeout, options.cache, options.cluster) as pool:
        retile(plan[0].request, options.retile, pool, verbosity, to_stderr)
    options = replace(options, launches=options.retile, retile=None)
    return options, plan_translation(options)


def _reports(plan: tuple[PlannedFile, ...], options: TranslateOptions) -> Iterator[FileReport]:
    """Reports in the order of the plan; without keep_going none after the first file that has no output.

    A launch with something wrong in it is no such file: the others are not waiting for it.
    """
    with (
        open_pool(options.jobs, options.timeout, options.cache, options.cluster) as pool,
        ThreadPoolExecutor(pool.jobs) as threads,
    ):
        pending = [threads.submit(process_file, planned, options, pool) for planned in plan]
        try:
            for future in pending:
                report = write_output(future.result())
                yield report
                goes_on = options.keep_going or options.sources or _is_of_launch(report)
                if report.output is None and not goes_on:
                    break
        finally:
            # Nothing is left to do, or the rest is not wanted any more: after a refusal, an error or Ctrl-C.
            for future in pending:
                future.cancel()
            if not all(future.done() for future in pending):
                pool.kill()


MOST_KEPT = 5  # loops that are named without --verbose
_NAMED_WRONGLY = ("kernel-missing", "source-missing", "source-unreadable")


def _is_of_launch(report: FileReport) -> bool:
    """Whether what is wrong is the launch, and not the source or the translation."""
    found = (*report.diagnostics, *(d for x in report.launches for d in x.diagnostics))
    return all(d.code.startswith("spec-") or d.code in _NAMED_WRONGLY for d in found)


def _status(reports: list[FileReport]) -> int:
    if any(report.bugs for report in reports):
        return exit_status.BUG
    reports = [report for report in reports if not _passed_by(report)]
    refused = any(r.status == "refused" or any(x.status == "refused" for x in r.launches) for r in reports)
    if refused or any(d.code == "output-unwritable" for r in reports for d in r.diagnostics):
        return exit_status.REFUSED
    # Where all launches were given, they are the user's choice, whatever host code has besides.
    derived = [x for report in reports for x in report.host_launches if not report.planned.request.launches]
    if any(launch.status == "refused" for launch in derived):
        return exit_status.REFUSED
    failed = any(r.status in ("failed", "mismatch") or any(x.status == "failed" for x in r.launches) for r in reports)
    failed |= any(launch.status == "not-served" for launch in derived)
    return exit_status.CHECK_FAILED if failed else exit_status.DONE


def _passed_by(report: FileReport) -> bool:
    """Whether a file of a folder has nothing to translate: only helpers of other files, as it turned out."""
    codes = {found.code for found in report.diagnostics}
    return report.output is None and codes == {"source-no-kernels"} and report.planned.several


def reason_lines(reports: list[FileReport]) -> Iterator[str]:
    """What has no output, by reason: how many, the reason, and which files."""
    reasons: dict[str, list[str]] = {}
    for report in reports:
        if report.output is None and not _passed_by(report):
            found = [*report.diagnostics, *(d for x in report.launches for d in x.diagnostics)]
            reason = f"{found[0].message} [{found[0].code}]" if found else report.status
            reasons.setdefault(reason, []).append(report.planned.id)
    for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield f"{len(names):4d}  {reason}: {shown}"


class _Printer:
    """What a person sees. Results go to standard output, or to standard error when the JSON goes there."""

    def __init__(self, verbosity: Verbosity, to_stderr: bool, batch: bool):
        self.verbosity = verbosity
        self.batch = batch
        self.console = rich_console(verbosity, sys.stderr if to_stderr else sys.stdout)

    def file(self, report: FileReport) -> None:
        """One output file: a line per kernel and what needs attention, with -v all that was decided. Diagnostics always."""
        if not self.verbosity.quiet and not _passed_by(report):
            self._file(report)
        sys.stdout.flush()
        if _passed_by(report):
            return
        told = [d for x in report.launches if x.status != "passed-over" for d in x.diagnostics]
        print_diagnostics([*report.diagnostics, *told])
        for bug in report.bugs:
            print(bug, file=sys.stderr)

    def _file(self, report: FileReport) -> None:
        request = report.planned.request
        if request.standalone and report.launches and not self.verbosity.verbose:
            for mark, line in kernel_lines(report):
                self.say(f"{line}  {request.target}  {report.planned.id}", _STYLES.get(mark))
            return
        written = report.output or "nothing written"
        self.say(f"{request.source} -> {written} ({request.target}{_times(report)})")
        for mark, line in kernel_lines(report):
            self.say(line, _STYLES.get(mark))
        if self.verbosity.verbose:
            self._details(report)
        else:
            for line in attention_lines(report, self.batch):
                self.say(f"  {line}")

    def _details(self, report: FileReport) -> None:
        """What was guessed, chosen and assumed."""
        for derivation in report.derivations:
            for line in table_lines(derivation):
                self.say(f"  {line}")
        if lines := correction_lines(report.derivations):
            self.say(f"  to correct a guess: {lines[0]}")
            for line in lines[1:]:
                self.say(f"    {line}")
        for line in missing_lines(checked.outcome for checked in report.launches):
            self.say(f"  {line}")
        together = united_coverage(report.validations)
        for kernel, launches in launches_by_kernel(report).items():
            own = [checked for checked in launches if checked.status != "passed-over"]  # a note says why
            shared = (
                [line for line in _lines_of(own[0]) if all(line in _lines_of(x) for x in own)] if len(own) > 1 else []
            )
            if shared:
                self.say(f"  {kernel}: what its {len(own)} launches share")
            for line in shared:
                self.say(f"    {line}")
            for checked in own:
                self.say(f"  {kernel} ({checked.outcome.spec.id}): {checked.status}")
                for line in _lines_of(checked):
                    if line not in shared:
                        self.say(f"    {line}")
                if checked.validation["status"] != "skipped":
                    self.say(f"    {validation_line(checked.validation, together)}")
        for note in report.notes:
            self.say(f"  note: {note}")

    def summary(self, reports: list[FileReport]) -> None:
        """Of many files how many of each; with -v the parity table; last, launches in host code."""
        if self.verbosity.quiet:
            return
        compared = [x.parity for report in reports for x in report.launches if x.parity]
        if compared and self.verbosity.verbose:
            from gluonize.judge.lower.parity_table import parity_summary, parity_table

            self.console.print("\nagainst Triton's own compile of the source (gluon / triton):")
            self.console.print(parity_summary(compared))
            for parity in compared:
                self.console.print(parity_table(parity))
        if self.batch:
            told = [report for report in reports if not _passed_by(report)]
            counts = {s: sum(r.status == s for r in told) for s in ("translated", "refused", "failed", "mismatch")}
            counts = {status: n for status, n in counts.items() if n or status != "mismatch"}
            counts |= {"without kernels to launch": len(reports) - len(told)} if len(told) < len(reports) else {}
            self.say(", ".join(f"{n} {status}" for status, n in counts.items()))
            guessed = sum(len(d.guesses) for report in told for d in report.derivations)
            if guessed and not self.verbosity.verbose:
                self.say(f"{guessed} value{'s' * (guessed != 1)} guessed; to correct one: {HOW_TO_CORRECT}")
            for line in reason_lines(reports):
                self.say(line)
        kept = _kept_lines(reports)
        if kept:
            self.say(
                f"{len(kept)} loop{'s' * (len(kept) > 1)} not pipelined as Triton's compiler does it", _STYLES[OPEN]
            )
        for line in kept if self.verbosity.verbose else kept[:MOST_KEPT]:
            self.say(f"  {line}")
        for status, line in launch_lines(reports, self.batch and not self.verbosity.verbose):
            self.say(line, _STYLES.get(status))

    def say(self, text: str, style: str | None = None) -> None:
        if not self.console.encoding.lower().startswith("utf"):
            text = text.replace(GOOD, "+").replace(WRONG, "x")
        self.console.print(text, markup=False, style=style)


def _lines_of(checked: CheckedLaunch) -> list[str]:
    """What was chosen and assumed for a launch."""
    return [*checked.outcome.choices, *(f"assumes {line}" for line in checked.outcome.assumptions)]


_STYLES = {
    GOOD: "green",
    OPEN: "yellow",
    WRONG: "red",
    "unread": "yellow",
    "not-served": "bold red",
    "refused": "bold red",
}


def _kept_lines(reports: list[FileReport]) -> list[str]:
    """One line for each loop that is not pipelined as Triton's compiler does it."""
    return list(
        dict.fromkeys(
            f"{report.planned.request.source}: {kept}"
            for report in reports
            for checked in report.launches
            for kept in checked.outcome.kept_loops
        )
    )


def _times(report: FileReport) -> str:
    """`, translated in 0.12 s, with all checks 4.56 s`; of the translation only what this run spent on it."""
    if not report.elapsed:
        return ""
    total = f"{report.elapsed:.2f} s"
    if report.elapsed < report.seconds:  # the seconds are those of an earlier run
        return f", from earlier results in {total}"
    return f", translated in {report.seconds:.2f} s, with all checks {total}"
