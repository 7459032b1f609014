"""`gluonize translate`: plan, run in child processes, print, and write the results."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from gluonize.judge.machine.coverage import Coverage
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, print_diagnostics, rich_console
from gluonize.product.cli.finding_formats import of_report, reported
from gluonize.product.cli.results import result_entries, write_json
from gluonize.product.cli.translate.guess_table import correction_line, missing_lines, table_lines, write_launches
from gluonize.product.cluster.open_pool import open_pool
from gluonize.product.project.output.verdict import united_coverage
from gluonize.product.project.translate.plan import PlannedFile, TranslateOptions, plan_translation
from gluonize.product.project.translate.run import FileReport, mismatch_text, process_file, write_output
from gluonize.product.review.annotations import Annotation

__all__ = ["TranslateOptions", "run_translate"]


def run_translate(options: TranslateOptions, verbosity: Verbosity) -> int:
    """Translate what the options name; returns the exit status."""
    with reported(options.format, options.json) as found:
        return _run_translate(options, verbosity, found)


def _run_translate(options: TranslateOptions, verbosity: Verbosity, found: list[Annotation]) -> int:
    plan = plan_translation(options)
    if not options.cache:
        os.environ["TRITON_ALWAYS_COMPILE"] = "1"  # what the compiler keeps is not used either
    to_stderr = options.json == "-" or options.format != "text"
    if options.retile:
        options, plan = _retiled(options, plan, verbosity, to_stderr)
    printer = _Printer(verbosity, to_stderr, batch=options.source is None)
    reports = []
    with _progress(len(plan), verbosity) as advance:
        for report in _reports(plan, options):
            reports.append(report)
            advance()
            printer.file(report)
            found += () if _passed_by(report) else of_report(report)
    if options.write_launches:
        write_launches(options.write_launches, [d for report in reports for d in report.derivations])
    if options.json:
        write_json(options.json, [entry for report in reports for entry in result_entries(report)])
    printer.summary(reports)
    return _status(reports)


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


MOST_KEPT = 5  # loops that a batch names without --verbose
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
    failed = any(r.status in ("failed", "mismatch") or any(x.status == "failed" for x in r.launches) for r in reports)
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


def validation_line(found: dict, together: Coverage | None = None) -> str:
    """`validated`, and what a reader should know of how. together: what all launches of the file ran."""
    if found["status"] == "not_runnable":
        return f"not validated: {found.get('reason', '')}".rstrip(": ")
    if found["status"] == "mismatch":
        return f"mismatch: {mismatch_text(found)}"
    word = found["status"]
    if found.get("coverage"):
        own = Coverage.of_json(found["coverage"])
        word = (own.with_others(together) if together is not None else own).verdict()
    made_up = ", ".join(f"{name} = {value}" for name, value in found.get("made_up", {}).items())
    return f"{word}, with made-up values: {made_up}" if made_up else word


class _Printer:
    """What a person sees. Results go to standard output, or to standard error when the JSON goes there."""

    def __init__(self, verbosity: Verbosity, to_stderr: bool, batch: bool):
        self.verbosity = verbosity
        self.batch = batch
        self.console = rich_console(verbosity, sys.stderr if to_stderr else sys.stdout)

    def file(self, report: FileReport) -> None:
        """One output file: kernels, choices, assumptions; one line in batch mode. Diagnostics always."""
        if not self.verbosity.quiet:
            if self.batch and not self.verbosity.verbose:
                request = report.planned.request
                found = {x.validation["status"] for x in report.launches} - {"skipped"}
                if found == {"validated"} and (together := united_coverage(report.validations)) and together.gaps():
                    found = {"validated in part"}
                self.say(f"{report.status:10s} {request.target:8s} {','.join(sorted(found)):12s} {report.planned.id}")
            else:
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
        written = report.output or "nothing written"
        self.say(f"{request.source} -> {written} ({request.target}{_times(report)})")
        for derivation in report.derivations:
            for line in table_lines(derivation):
                self.say(f"  {line}")
        if line := correction_line(report.derivations):
            self.say(f"  to correct a guess: {line}")
        for line in missing_lines(checked.outcome for checked in report.launches):
            self.say(f"  {line}")
        together = united_coverage(report.validations)
        for checked in report.launches:
            if checked.status == "passed-over":
                continue  # a note says why
            self.say(f"  {checked.outcome.spec.kernel} ({checked.outcome.spec.id}): {checked.status}")
            for line in (*checked.outcome.kept_loops, *checked.outcome.choices):
                self.say(f"    {line}")
            for line in checked.outcome.assumptions:
                self.say(f"    assumes {line}")
            if checked.validation["status"] != "skipped":
                self.say(f"    {validation_line(checked.validation, together)}")
        for note in report.notes:
            self.say(f"  note: {note}")

    def summary(self, reports: list[FileReport]) -> None:
        """The parity table, and in batch mode how many of each."""
        from gluonize.judge.lower.parity_table import parity_summary, parity_table

        if self.verbosity.quiet:
            return
        compared = [x.parity for report in reports for x in report.launches if x.parity]
        if compared and (not self.batch or self.verbosity.verbose):
            self.console.print("\nagainst Triton's own compile of the source (gluon / triton):")
            self.console.print(parity_summary(compared))
            for parity in compared if self.verbosity.verbose else ():
                self.console.print(parity_table(parity))
        if self.batch:
            told = [report for report in reports if not _passed_by(report)]
            counts = {s: sum(r.status == s for r in told) for s in ("translated", "refused", "failed", "mismatch")}
            counts = {status: n for status, n in counts.items() if n or status != "mismatch"}
            counts |= {"without kernels to launch": len(reports) - len(told)} if len(told) < len(reports) else {}
            self.say(", ".join(f"{n} {status}" for status, n in counts.items()))
            for line in reason_lines(reports):
                self.say(line)
            kept = _kept_lines(reports)
            if kept:
                self.say(f"{len(kept)} loop{'s' * (len(kept) > 1)} not pipelined as Triton's compiler does it")
            for line in kept if self.verbosity.verbose else kept[:MOST_KEPT]:
                self.say(f"  {line}")

    def say(self, text: str) -> None:
        self.console.print(text, markup=False)


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


class _progress:
    """A progress bar on standard error while it is a terminal and there is more than one file; else nothing."""

    def __init__(self, total: int, verbosity: Verbosity):
        self.bar = None
        if total > 1 and sys.stderr.isatty() and not verbosity.quiet:
            from rich.progress import Progress

            self.bar = Progress(console=rich_console(verbosity, sys.stderr), transient=True)
            self.task = self.bar.add_task("translating", total=total)

    def __enter__(self):
        if self.bar:
            self.bar.start()
        return self.advance

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.stop()

    def advance(self) -> None:
        if self.bar:
            self.bar.advance(self.task)
