"""`gluonize check`: are the generated files still what their sources and launches give, and do they compute the same?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.judge.cycles.clocks import GATE
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, print_diagnostics, progress
from gluonize.product.cli.finding_formats import reported
from gluonize.product.cli.project.check_text import CheckPrinter, state_entry, write_states
from gluonize.product.cluster.open_pool import open_pool
from gluonize.product.project.cache.results import ContentCache
from gluonize.product.project.checks.check import FileState, fails, file_state
from gluonize.product.project.checks.checked_file import CheckedFile
from gluonize.product.project.checks.findings import of_launches, of_state
from gluonize.product.project.checks.validation import validate_file
from gluonize.product.project.files.changed import changed_since, settings_changed
from gluonize.product.project.files.config import find_config, read_config
from gluonize.product.project.files.planned import ProjectFile, concerned, discover, from_config
from gluonize.product.project.output.file import STANDARD_OUTPUT, check_destination, write_whole
from gluonize.product.project.output.overwrite import check_json
from gluonize.product.project.output.verdict import LEVELS
from gluonize.product.report.review.correspondence import origins
from gluonize.product.review.annotations import Annotation, errors
from gluonize.read.files.near import near_file

# States of files whose text can be run.
RUNNABLE = ("current", "edited", "outdated")


@dataclass(frozen=True)
class CheckOptions:
    """The options of `gluonize check`, as given. paths: none for all of the project. validated: one of LEVELS. gate: how many of the clocks of
    Triton's compile a hottest loop may be predicted to take, 0 for any number. validate: run the
    files as they lie there. changed_since: a revision of git. comment: where the text for a pull request goes. search: see `ProjectFile`.
    """

    paths: tuple[str, ...] = ()
    config: str | None = None
    allow_edits: bool = False
    validated: str = "none"
    gate: float = GATE
    validate: bool = False
    changed_since: str | None = None
    comment: str | None = None
    format: str = "text"
    json: str | None = None
    jobs: int = 0
    timeout: float = 60.0
    cache: bool = True
    search: tuple[str, ...] = ()
    cluster: str | None = None


def run_check(options: CheckOptions, verbosity: Verbosity) -> int:
    """Check the named files, or all; 0 when all are current and validated as far as asked, 1 when not, 2 when a source is refused."""
    with reported(options.format, options.json) as found:
        return _run_check(options, verbosity, found)


def _run_check(options: CheckOptions, verbosity: Verbosity, found: list[Annotation]) -> int:
    if options.validated not in LEVELS:
        raise TranslationError(Diagnostic("usage", f"--validated takes {', '.join(LEVELS)}, not {options.validated}"))
    check_json(options.json)
    if options.comment:
        check_destination(options.comment)
    files = _chosen_files(options)
    to_stderr = options.json == STANDARD_OUTPUT or options.format != "text"
    printer = CheckPrinter(verbosity, to_stderr=to_stderr, allow_edits=options.allow_edits)
    cache = ContentCache.of_user(options.cache)
    with progress("checking", len(files), verbosity) as advance:
        states = []
        for state in states_of(files, options.jobs, options.timeout, cache, options.cluster):
            states.append(state)
            advance()
    printer.summary(states)
    for state in states:
        printer.file(state)
        found += of_state(state, options.allow_edits, origins)
    checked = [CheckedFile(state) for state in states]
    if options.validate:
        checked = _validated(states, options, cache, printer, found)
    for one in checked:
        if LEVELS.index(one.level) < LEVELS.index(options.validated):
            less = _less_validated(one.state.file.output, options.validated)
            found += errors([less])
            print_diagnostics([less])
        if _slow(one, options):
            slow = _above_gate(one, options.gate)
            found += errors([slow])
            print_diagnostics([slow])
    printer.advice(states)
    if options.json:
        write_states(options.json, [state_entry(x.state, x.level, x.launches, x.clocks) for x in checked])
    if options.comment:
        from gluonize.product.cli.project.check_comment import comment_of

        write_whole(options.comment, comment_of(checked, options.jobs, options.timeout, cache, options.cluster))
    return _status(checked, options)


def _chosen_files(options: CheckOptions) -> tuple[ProjectFile, ...]:
    """The files of the project that the options are about; only with `--changed-since` there may be none."""
    files = project_files(options.paths, options.config, options.search)
    if not files:
        raise nothing_found(options.paths)
    if options.changed_since is None:
        return files
    changed = changed_since(options.changed_since)
    config = options.config or find_config()
    if config and os.path.realpath(config) in map(os.path.realpath, changed):
        if settings_changed(config, options.changed_since):
            return files
    return concerned(files, changed)


def _status(checked: Sequence[CheckedFile], options: CheckOptions) -> int:
    if any(x.state.state == "refused" for x in checked):
        return exit_status.REFUSED
    less = any(LEVELS.index(x.level) < LEVELS.index(options.validated) for x in checked)
    failed = less or any(_slow(x, options) or x.wrong or fails(x.state, options.allow_edits) for x in checked)
    return exit_status.CHECK_FAILED if failed else exit_status.DONE


def _validated(
    states: Sequence[FileState], options: CheckOptions, cache: ContentCache, printer: CheckPrinter,
    found: list[Annotation],
) -> list[CheckedFile]:  # fmt: skip
    """Run every file that can be run on its launches, print and collect what was found, in the order of the files."""
    out = []
    pool = open_pool(options.jobs, options.timeout, options.cache, options.cluster)
    with pool, ThreadPoolExecutor(pool.jobs) as threads:
        pending = [
            threads.submit(validate_file, state.file, pool, cache) if state.state in RUNNABLE else None
            for state in states
        ]
        for state, future in zip(states, pending):
            if future is None:
                out.append(CheckedFile(state))
                continue
            try:
                launches = future.result()
            except TranslationError as error:
                out.append(CheckedFile(state, refused=error.diagnostics))
                print_diagnostics(error.diagnostics)
                found += errors(error.diagnostics)
                continue
            out.append(CheckedFile(state, launches))
            printer.launches(state, launches)
            problems = of_launches(state, launches)
            print_diagnostics(problems)
            found += errors(problems)
    return out


def _slow(checked: CheckedFile, options: CheckOptions) -> bool:
    """Whether a loop of a file is predicted to take more clocks than it may."""
    return bool(options.gate) and (checked.clocks or 0.0) > options.gate


def _above_gate(checked: CheckedFile, gate: float) -> Diagnostic:
    message = f"a hottest loop is predicted to take {checked.clocks:.2f} of the clocks of Triton's compile, and {gate:.2f} at most are allowed"
    why = "its header says what was predicted when it was translated"
    help = "gluonize parity says where they go, --optimize search looks for another form; --gate RATIO allows more, 0 any number"
    return Diagnostic("clocks", message, checked.state.file.output, why=why, help=help)


def _less_validated(output: str, asked: str) -> Diagnostic:
    messages = {
        "fully": "it was validated less than fully",
        "proved": "it is not proved to compute what its source computes",
    }
    message = messages.get(asked, "it was not validated")
    why = "its header says how far it was, and an edited file was not validated as it is"
    help = "gluonize translate validates again; a launch that takes the branch that did not run may be missing"
    return Diagnostic("validated-less", message, output, why=why, help=help)


def nothing_found(paths: Sequence[str]) -> TranslationError:
    """The refusal of a command that would pass without having looked at anything."""
    message = "no generated file is made from it" if paths else "there are no generated files here"
    help = "name generated files or their sources, or add [tool.gluonize] to pyproject.toml"
    return TranslationError(*(Diagnostic("nothing-to-check", message, path, help=help) for path in paths or ("",)))


def project_files(
    paths: Sequence[str], config: str | None = None, search: tuple[str, ...] = ()
) -> tuple[ProjectFile, ...]:
    """The generated files that a command is for: all of the project, or those that have to do with `paths`.

    search: folders in which files that they name are looked for first.
    Raises: TranslationError for a path that does not exist, and for a bad configuration.
    """
    found = config or find_config()
    files = from_config(read_config(found)) if found else ()
    asked = {os.path.realpath(file.output) for file in files}
    if not found or paths:  # files that no configuration mentions say themselves how they were made
        files += tuple(file for file in discover(search=search) if os.path.realpath(file.output) not in asked)
    if not paths:
        return files
    chosen = concerned(files, paths)
    covered = {os.path.realpath(file.output) for file in files}
    gone = [path for path in paths if not os.path.exists(path) and os.path.realpath(path) not in covered]
    if gone:
        raise TranslationError(
            *(Diagnostic("source-missing", "no such file", path, help=near_file(path)) for path in gone)
        )
    return (*chosen, *_elsewhere(paths, covered, search))


def _elsewhere(paths: Sequence[str], covered: set[str], search: tuple[str, ...]) -> Iterator[ProjectFile]:
    """Generated files among `paths` that are outside the working folder."""
    from gluonize.product.project.files.planned import from_provenance
    from gluonize.product.project.output.provenance import read_generated

    for path in paths:
        if os.path.realpath(path) not in covered and path.endswith(".py") and (file := read_generated(path)):
            yield from_provenance(file, search)


def states_of(
    files: Sequence[ProjectFile], jobs: int, timeout: float, cache: ContentCache, cluster: str | None = None
) -> Iterator[FileState]:
    """The state of every file, in order; child processes start only when digests leave something open."""
    settled: dict[int, FileState] = {}
    for index, file in enumerate(files):
        try:
            settled[index] = file_state(file, cache, _undecided)
        except _Undecided:
            pass
    if len(settled) == len(files):
        yield from settled.values()
        return
    from gluonize.product.project.translate.run import TRANSLATE
    from gluonize.product.project.output.provenance import without_line
    from gluonize.product.project.cache.translation import translate_cached

    with open_pool(jobs, timeout, False, cluster) as pool, ThreadPoolExecutor(pool.jobs) as threads:

        def regenerate(file: ProjectFile) -> str:
            result, _ = translate_cached(file.request(), TRANSLATE, pool, cache)
            if result.text is None:
                found = (*result.diagnostics, *(d for outcome in result.outcomes for d in outcome.diagnostics))
                raise TranslationError(*found)
            return without_line(result.text).replace("\r\n", "\n")

        pending = {
            index: threads.submit(file_state, file, cache, regenerate)
            for index, file in enumerate(files)
            if index not in settled
        }
        for index in range(len(files)):
            yield settled[index] if index in settled else pending[index].result()


class _Undecided(Exception):
    """Only a translation can tell."""


def _undecided(_: ProjectFile) -> str:
    raise _Undecided
