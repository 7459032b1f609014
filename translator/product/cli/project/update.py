"""`gluonize update`: bring generated files up to date and keep what was edited by hand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, print_diagnostics, rich_console
from gluonize.product.cli.finding_formats import reported
from gluonize.product.cli.project.check import nothing_found, project_files
from gluonize.product.cli.translate.result_lines import HOW_TO_CORRECT, attention_lines, kernel_lines, launch_lines
from gluonize.product.cluster.open_pool import open_pool
from gluonize.product.project.cache.results import ContentCache
from gluonize.product.project.edits.update import Updated, update_file
from gluonize.product.project.files.config import find_config
from gluonize.product.project.files.planned import ProjectFile
from gluonize.product.project.translate.plan import TranslateOptions
from gluonize.product.project.translate.report import FileReport
from gluonize.product.review.annotations import Annotation, errors


def run_update(
    paths: Sequence[str], config: str | None, options: TranslateOptions, verbosity: Verbosity, merge: bool = True
) -> int:
    """Update the named files, or all of the project; 1 for conflicts and failed checks, 2 when something was refused.

    merge False (`gluonize translate` without arguments): leave files that were edited by hand alone.
    """
    with reported(options.format) as found:
        return _run_update(paths, config, options, verbosity, merge, found)


def _run_update(
    paths: Sequence[str], config: str | None, options: TranslateOptions, verbosity: Verbosity, merge: bool,
    found: list[Annotation],
) -> int:  # fmt: skip
    files = project_files(paths, config, options.search)
    if not merge and not files and not config and not find_config():
        help = "name a file or a module, or add [tool.gluonize] to pyproject.toml"
        raise TranslationError(Diagnostic("usage", "no SOURCE given, and no configuration found", help=help))
    cache = ContentCache.of_user(options.cache)
    console = rich_console(verbosity, sys.stdout if options.format == "text" else sys.stderr)
    if not files:
        raise nothing_found(paths)
    done: list[Updated] = []
    pool = open_pool(options.jobs, options.timeout, options.cache, options.cluster)
    with pool, ThreadPoolExecutor(pool.jobs) as threads:
        pending = [threads.submit(update_file, file, options, pool, cache, merge) for file in files]
        try:
            for future in pending:
                done.append(future.result())
                _print(done[-1], console, verbosity, len(files) > 1)
                found += errors(done[-1].diagnostics)
        finally:
            for future in pending:
                future.cancel()
            if not all(future.done() for future in pending):
                pool.kill()
    if done and not verbosity.quiet:
        counts = {action: sum(u.action == action for u in done) for action in dict.fromkeys(u.action for u in done)}
        listed = ", ".join(f"{count} {action}" for action, count in counts.items())
        console.print(f"{len(done)} generated file{'s' * (len(done) != 1)}: {listed}")
        guessed = sum(len(d.guesses) for u in done if _told(u) is not None for d in u.report.derivations)
        if guessed and len(done) > 1 and not verbosity.verbose:
            console.print(
                f"{guessed} value{'s' * (guessed != 1)} guessed; to correct one: {HOW_TO_CORRECT}", markup=False
            )
        for _, line in launch_lines([updated.report for updated in done if updated.report is not None], True):
            console.print(line, markup=False)
    return _status(done)


def _status(done: list[Updated]) -> int:
    if any(updated.report is not None and updated.report.bugs for updated in done):
        return exit_status.BUG
    if any(updated.action == "refused" for updated in done):
        return exit_status.REFUSED
    return exit_status.CHECK_FAILED if any(u.action in ("conflicts", "failed") for u in done) else exit_status.DONE


def _told(updated: Updated) -> FileReport | None:
    """What the kernels' lines are of; None of a file that was not written, or of which nothing was asked."""
    report = updated.report if updated.action in ("written", "merged") else None
    return None if report is None or all(x.validation["status"] == "skipped" for x in report.launches) else report


def _print(updated: Updated, console, verbosity: Verbosity, one_of_many: bool) -> None:
    """One line for the file, then what was merged and what is left to do; diagnostics always. one_of_many: what is the same for all files
    is said after them."""
    file: ProjectFile = updated.file
    if not verbosity.quiet and (updated.action != "current" or updated.notes or verbosity.verbose):
        style = {"current": None, "written": "green", "merged": "green"}.get(updated.action, "red")
        console.print(f"{file.output}: {updated.action}", markup=False, style=style)
        if updated.base is not None:
            exact = "" if updated.base.exact else " (made again, not the very text)"
            console.print(f"  hand edits are what differs from {updated.base.origin}{exact}", markup=False)
        for function, old, new in updated.merge.renames if updated.merge else ():
            console.print(f"  {function}: {old} is called {new}", markup=False)
        report = _told(updated)
        for _, line in kernel_lines(report) if report is not None else ():
            console.print(f"  {line}", markup=False)
        for line in attention_lines(report, one_of_many) if report is not None else ():
            console.print(f"    {line}", markup=False)
        for note in updated.notes:
            if report is None or note not in report.notes:
                console.print(f"  {note}", markup=False)
    if updated.merge and updated.merge.conflicts:
        lines = ", ".join(map(str, updated.merge.conflicts))
        console.print(f"  conflicts to resolve at line{'s' * (len(updated.merge.conflicts) > 1)} {lines}", markup=False)
    sys.stdout.flush()
    print_diagnostics(updated.diagnostics)
    for bug in updated.report.bugs if updated.report is not None else ():
        print(bug, file=sys.stderr)
