"""Bringing one generated file up to date: written anew, or merged with what was edited by hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.product.project.cache.recorded import Reads
from gluonize.product.project.cache.results import ContentCache
from gluonize.product.project.checks.check import changes, conflict_lines, syntax_problems
from gluonize.product.project.checks.validation import validate_file
from gluonize.product.project.edits.base import Base, find_base
from gluonize.product.project.edits.merge import Merge, merge_texts
from gluonize.product.project.files.planned import ProjectFile
from gluonize.product.project.output.file import make_folder, write_whole
from gluonize.product.project.output.layout_free import same_code
from gluonize.product.project.output.provenance import (
    GeneratedFile,
    parse_provenance,
    read_generated,
    stamped,
    without_line,
)
from gluonize.product.project.output.verdict import level_of, verdict, with_verdict, without_verdict
from gluonize.product.project.translate.plan import PlannedFile, TranslateOptions
from gluonize.product.project.translate.report import CheckedLaunch
from gluonize.product.project.translate.run import (
    FileReport,
    checked_report,
    process_file,
    write_output,
    write_rejected,
)
from gluonize.read.text.style import CodeStyle
from gluonize.request import TranslateResult

_EDITED = "its hand edits are part of it: look at them first; if a new translation of the source without them is wrong too, report that"
_NOTHING_NEW = "edited by hand; its source and launches did not change, so there is nothing to merge"
ACTIONS = ("current", "written", "merged", "conflicts", "refused", "failed")


@dataclass(frozen=True)
class Updated:
    """What became of one file.

    action: `current`: nothing to do; `written`: generated anew; `merged`: with the hand edits; `conflicts`: the same, with
    conflict markers to resolve; `refused`: left as it is; `failed`: what was made does not pass its checks, and the file is
    left as it is. base: where the text came from that the edits started from.
    """

    file: ProjectFile
    action: str
    report: FileReport | None = None
    merge: Merge | None = None
    base: Base | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self):
        assert self.action in ACTIONS, f"unknown action {self.action!r}"


def update_file(
    file: ProjectFile,
    options: TranslateOptions,
    pool: WorkerPool,
    cache: ContentCache,
    merge: bool,
    use_git: bool = True,
) -> Updated:
    """Update one file. merge False: refuse files that were edited by hand instead."""
    try:
        generated = read_generated(file.output)
        exists = os.path.exists(file.output)
        if generated is not None and conflict_lines(generated.bare):
            help = "resolve them (between <<<<<<< and >>>>>>>) first"
            return Updated(
                file,
                "refused",
                diagnostics=(Diagnostic("conflicts", "it has unresolved conflicts", file.output, help=help),),
            )
        if generated is not None and generated.edited and (broken := syntax_problems(file.output)):
            return Updated(file, "refused", diagnostics=broken)
        if exists and not changes(file, generated):
            if generated is not None and generated.edited:
                return Updated(file, "current", notes=(_NOTHING_NEW, *_judged_again(file, options, pool, cache)))
            return Updated(file, "current")
        # The text first, without checks: it may be what is there already.
        report = _generate(file, replace(options, compile=False), pool)
        if report.text is None:
            return Updated(file, "refused", report, diagnostics=_problems(report))
        if exists and generated is None:
            return _adopt(file, report)
        if generated is not None and generated.edited and not same_code(generated.bare, without_line(report.text)):
            if not merge:
                help = f"gluonize update {file.output} merges the edits with the new translation"
                found = Diagnostic(
                    "edited", "this file was edited by hand and is not overwritten", file.output, help=help
                )
                return Updated(file, "refused", diagnostics=(found,))
            return _merge(file, generated, report, options, pool, cache, use_git)
        make_folder(os.path.dirname(file.output) or os.curdir)
        checked = write_output(_generate(file, options, pool))
        if checked.output is None:
            return Updated(file, "failed", checked, diagnostics=_problems(checked), notes=checked.notes)
        return Updated(file, "written", checked, diagnostics=_problems(checked))
    except TranslationError as error:
        return Updated(file, "refused", diagnostics=error.diagnostics)


def _judged_again(
    file: ProjectFile, options: TranslateOptions, pool: WorkerPool, cache: ContentCache
) -> tuple[str, ...]:
    """Has a file that was edited by hand say of its validation what is true of it now; -> a note where that is something else."""
    with open(file.output, encoding="utf-8", newline="") as old:
        text = old.read()
    if not (options.compile and options.validate) or level_of(text) == "none":
        return ()
    found = [launch.found for launch in validate_file(file, pool, cache)]
    judged = with_verdict(without_verdict(text), found)
    if judged == text:
        return ()
    write_whole(file.output, judged)
    return (f"with the edits it is {verdict(found) or 'not validated'}; its header says so now",)


def _generate(file: ProjectFile, options: TranslateOptions, pool: WorkerPool) -> FileReport:
    planned = PlannedFile(file.request(), file.output, os.path.basename(file.output))
    return process_file(planned, replace(options, launches=file.launches), pool)


def _adopt(file: ProjectFile, report: FileReport) -> Updated:
    """A file without a provenance line: fine when it is what would be written, else nobody knows what it is."""
    with open(file.output, encoding="utf-8", errors="replace") as old:
        text = old.read()
    if same_code(without_line(text), without_line(report.text)):
        write_whole(file.output, report.text)
        return Updated(file, "written", report)
    why = "without the line `# gluonize: ...` it cannot be told from a file that was written by hand"
    help = "move it away and run gluonize update again"
    found = Diagnostic(
        "no-provenance", "there is a file that does not say what it was made from", file.output, why=why, help=help
    )
    return Updated(file, "refused", diagnostics=(found,))


def _merge(
    file: ProjectFile, generated: GeneratedFile, report: FileReport, options: TranslateOptions, pool: WorkerPool,
    cache: ContentCache, use_git: bool,
) -> Updated:  # fmt: skip
    base = find_base(generated, cache, _regenerate(options, pool), file.search)
    if base is None:
        why = f"the text that it was edited from (digest {generated.provenance.output}) is in no commit and not in the cache"
        help = "commit generated files before editing them; this time, translate to another file and merge by hand"
        found = Diagnostic("no-base", "there is nothing to merge from", file.output, why=why, help=help)
        return Updated(file, "refused", diagnostics=(found,))
    provenance, new = parse_provenance(report.text), without_line(report.text).replace("\r\n", "\n")
    if provenance is None:
        raise TranslationError(Diagnostic("no-provenance", "the new translation has no header", file.output))
    labels = (f"{file.output} (edited)", f"generated before ({base.origin})", f"generated from {file.source}")
    merge = _merged((base.text, generated.bare, new), labels, file.style, use_git)
    # The digest stays that of the generated text: the next merge starts from there.
    text = stamped(merge.text, provenance, file.style.line_length, new)
    if merge.conflicts:
        # The provenance line moved everything below it; report where the markers are in the file.
        lines = tuple(i for i, line in enumerate(text.splitlines(), 1) if line.startswith(f"{'<' * 7} {labels[0]}"))
        write_whole(file.output, text)
        return Updated(file, "conflicts", report, replace(merge, conflicts=lines), base)
    result = TranslateResult("translated", text, tuple(x.outcome for x in report.launches))
    # Not from the cache: which files the checks depend on is not known here.
    checked = checked_report(replace(report, launches=()), result, options, pool, ContentCache(None), Reads())
    problems = _problems(checked)
    if checked.status != "translated":
        checked = write_rejected(replace(checked, text=None, launches=tuple(map(_of_edited, checked.launches))), text)
        return Updated(file, "failed", checked, merge, base, _problems(checked), checked.notes)
    write_whole(file.output, with_verdict(text, checked.validations, checked.clocks))
    return Updated(file, "merged", checked, merge, base, problems)


def _of_edited(checked: CheckedLaunch) -> CheckedLaunch:
    """A launch whose findings may be due to what was edited by hand, which is where to look first."""
    found = (replace(d, help=_EDITED) if d.code == "mismatch" else d for d in checked.diagnostics)
    return replace(checked, diagnostics=tuple(found))


def _merged(texts: tuple[str, str, str], labels: tuple[str, str, str], style: CodeStyle, use_git: bool) -> Merge:
    """Merge base, edited and new text. Where conflicts are only due to a formatter, all three are laid out alike first."""
    merge = merge_texts(*texts, labels, use_git)
    if merge.conflicts:
        alike = merge_texts(*(style.laid_out(text, whole=True) for text in texts), labels, use_git)
        if len(alike.conflicts) < len(merge.conflicts):
            return alike
    return merge


def _regenerate(options: TranslateOptions, pool: WorkerPool) -> Callable[[ProjectFile], str]:
    def regenerate(file: ProjectFile) -> str:
        report = _generate(file, replace(options, compile=False), pool)
        if report.text is None:
            raise TranslationError(*_problems(report))
        return without_line(report.text).replace("\r\n", "\n")

    return regenerate


def _problems(report: FileReport) -> tuple[Diagnostic, ...]:
    return (*report.diagnostics, *(found for checked in report.launches for found in checked.diagnostics))
