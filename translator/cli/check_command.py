"""`gluonize check`: are the generated files still what their sources and launches give?"""

from __future__ import annotations

import difflib
import json as json_module
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from translator.cli import exit_status
from translator.cli.argv import STANDARD_OUTPUT
from translator.cli.console import Verbosity, print_diagnostics, rich_console
from translator.cli.inputs import job_count
from translator.diagnostics import Diagnostic, TranslationError
from translator.project.cache import ContentCache
from translator.project.check import FileState, file_state
from translator.project.config import find_config, read_config
from translator.project.verdict import LEVELS, level_of
from translator.project.planned import ProjectFile, concerned, discover, from_config

JSON_VERSION = 1


def run_check(
    paths: Sequence[str], config: str | None, allow_edits: bool, validated: str, json: str | None, jobs: int,
    timeout: float, cache: bool, verbosity: Verbosity,
) -> int:  # fmt: skip
    """Check the named files, or all; 0 when all are current and validated as far as asked, 1 when not, 2 when a source is refused."""
    from translator.cli.results import check_json

    if validated not in LEVELS:
        raise TranslationError(Diagnostic("usage", f"--validated takes {', '.join(LEVELS)}, not {validated}"))
    check_json(json)
    files = project_files(paths, config)
    if not files:
        raise nothing_found(paths)
    states = []
    printer = _Printer(verbosity, to_stderr=json == STANDARD_OUTPUT, allow_edits=allow_edits)
    for state in states_of(files, jobs, timeout, ContentCache.of_user(cache)):
        states.append(state)
        printer.file(state)
    less = [state.file.output for state in states if LEVELS.index(_level(state)) < LEVELS.index(validated)]
    for output in less:
        print_diagnostics([_less_validated(output, validated)])
    printer.summary(states)
    if json:
        _write_json(json, states)
    if any(state.state == "refused" for state in states):
        return exit_status.REFUSED
    failed = less or any(fails(state, allow_edits) for state in states)
    return exit_status.CHECK_FAILED if failed else exit_status.DONE


def _level(state: FileState) -> str:
    """How far the file was validated, by its header; an edited text was not."""
    if state.edited or state.state not in ("current", "outdated"):
        return "none"
    with open(state.file.output, encoding="utf-8", errors="replace") as file:
        return level_of(file.read())


def _less_validated(output: str, asked: str) -> Diagnostic:
    message = f"it was validated less than {asked}" if asked == "fully" else "it was not validated"
    why = "its header says how far it was, and an edited file was not validated as it is"
    help = "gluonize translate validates again; a launch that takes the branch that did not run may be missing"
    return Diagnostic("validated-less", message, output, why=why, help=help)


def nothing_found(paths: Sequence[str]) -> TranslationError:
    """The refusal of a command that would pass without having looked at anything."""
    message = "no generated file is made from it" if paths else "there are no generated files here"
    help = "name generated files or their sources, or add [tool.gluonize] to pyproject.toml"
    return TranslationError(*(Diagnostic("nothing-to-check", message, path, help=help) for path in paths or ("",)))


def project_files(paths: Sequence[str], config: str | None = None) -> tuple[ProjectFile, ...]:
    """The generated files that a command is for: all of the project, or those that have to do with `paths`.

    Raises: TranslationError for a path that does not exist, and for a bad configuration.
    """
    found = config or find_config()
    files = from_config(read_config(found)) if found else ()
    asked = {os.path.realpath(file.output) for file in files}
    if not found or paths:  # files that no configuration mentions say themselves how they were made
        files += tuple(file for file in discover() if os.path.realpath(file.output) not in asked)
    if not paths:
        return files
    chosen = concerned(files, paths)
    covered = {os.path.realpath(file.output) for file in files}
    gone = [path for path in paths if not os.path.exists(path) and os.path.realpath(path) not in covered]
    if gone:
        raise TranslationError(*(Diagnostic("source-missing", "no such file", path) for path in gone))
    return (*chosen, *_elsewhere(paths, covered))


def _elsewhere(paths: Sequence[str], covered: set[str]) -> Iterator[ProjectFile]:
    """Generated files among `paths` that are outside the working folder."""
    from translator.project.planned import from_provenance
    from translator.project.provenance import read_generated

    for path in paths:
        if os.path.realpath(path) not in covered and path.endswith(".py") and (file := read_generated(path)):
            yield from_provenance(file)


def states_of(files: Sequence[ProjectFile], jobs: int, timeout: float, cache: ContentCache) -> Iterator[FileState]:
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
    from translator.cli.translate_run import TRANSLATE
    from translator.lowering.worker import WorkerPool
    from translator.project.provenance import without_line
    from translator.project.translation import translate_cached

    count = job_count(jobs)
    with WorkerPool(count, timeout=timeout) as pool, ThreadPoolExecutor(count) as threads:

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


def fails(state: FileState, allow_edits: bool) -> bool:
    """Whether a state is an error; hand edits of a file whose inputs did not change may be allowed."""
    allowed = state.state == "edited" and (allow_edits or state.file.edits == "allow")
    return state.state != "current" and not allowed


def unified_diff(state: FileState) -> list[str]:
    """From the file to what its source and launches give."""
    label = f"what {state.file.source} gives for {state.file.target}"
    lines = difflib.unified_diff(
        state.found.splitlines(), state.expected.splitlines(), state.file.output, label, lineterm=""
    )
    return list(lines)


class _Printer:
    def __init__(self, verbosity: Verbosity, to_stderr: bool, allow_edits: bool):
        self.verbosity, self.allow_edits = verbosity, allow_edits
        self.console = rich_console(verbosity, sys.stderr if to_stderr else sys.stdout)

    def file(self, state: FileState) -> None:
        """Name a file that is not current, say why, show the difference; all files with -v."""
        failed = fails(state, self.allow_edits)
        if not failed and not self.verbosity.verbose:
            return
        self.say(f"{state.file.output}: {state.state}", style="red" if failed else "green")
        for reason in state.reasons:
            self.say(f"  {reason}")
        if state.state == "outdated" and state.edited:
            self.say("  it was also edited by hand; gluonize update keeps the edits")
        if failed and not self.verbosity.quiet:
            for line in unified_diff(state):
                bold = line.startswith(("---", "+++"))
                self.say(line, style="bold" if bold else {"-": "red", "+": "green", "@": "cyan"}.get(line[:1]))
        sys.stdout.flush()
        print_diagnostics(state.diagnostics)

    def summary(self, states: Sequence[FileState]) -> None:
        if self.verbosity.quiet:
            return
        counts = {name: sum(state.state == name for state in states) for name in dict.fromkeys(s.state for s in states)}
        self.say(
            f"{len(states)} generated file{'s' * (len(states) != 1)}: {', '.join(f'{n} {s}' for s, n in counts.items())}"
        )
        if any(fails(state, self.allow_edits) and state.state in ("outdated", "missing") for state in states):
            self.say("bring them up to date with: gluonize update")
        if any(fails(state, self.allow_edits) and state.state == "edited" for state in states):
            self.say('hand edits are fine with --allow-edits, or edits = "allow" in the configuration')

    def say(self, text: str, style: str | None = None) -> None:
        self.console.print(text, markup=False, style=style)


def _write_json(destination: str, states: Sequence[FileState]) -> None:
    from translator.cli.output_file import write_whole

    entries = [
        {
            "file": state.file.output,
            "source": state.file.source,
            "target": state.file.target,
            "state": state.state,
            "edited": state.edited or state.state == "edited",
            "reasons": list(state.reasons),
            "validated": _level(state),
            "diff": "".join(f"{line}\n" for line in unified_diff(state)),
            "diagnostics": [found.as_json() for found in state.diagnostics],
        }
        for state in states
    ]
    text = json_module.dumps({"version": JSON_VERSION, "files": entries}, indent=1) + "\n"
    if destination == STANDARD_OUTPUT:
        sys.stdout.write(text)
    else:
        write_whole(destination, text)
