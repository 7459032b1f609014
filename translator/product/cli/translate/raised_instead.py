"""`--fallback raise`: what cannot be translated is compiled by Triton, and what that made is raised. Said loudly: it is another thing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from gluonize.diagnostics import Diagnostic, InternalError, TranslationError
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.product.cli.raising import launches_path, write_raised
from gluonize.product.project.translate.report import FileReport
from gluonize.raised.kernel import Raised, raise_module
from gluonize.read.spec.launch import LaunchSpec

LOWER = "gluonize.judge.lower.jobs:lower_file"
VALIDATE = "gluonize.judge.verdict.run:validate_pair"


@dataclass(frozen=True)
class RaisedLaunch:
    """What became of one launch that was refused, of a source for a target. path: of the file, "" where there is none. verdict: of the
    reference machine. why: it was refused; problems: why it could not be raised either."""

    source: str
    target: str
    spec: LaunchSpec
    path: str
    verdict: str
    why: str
    problems: tuple[Diagnostic, ...] = ()

    @property
    def good(self) -> bool:
        return bool(self.path) and self.verdict == "validated"

    def as_json(self) -> dict:
        """The field `raised` of a result."""
        return {
            "output": self.path or None,
            "launches": str(launches_path(Path(self.path))) if self.path else None,
            "verdict": self.verdict or None,
            "why": self.why,
            "diagnostics": [problem.as_json() for problem in self.problems],
        }

    def lines(self) -> Iterator[str]:
        """What a person is told of it."""
        if not self.path:
            problem = self.problems[0]
            why = f" ({problem.why})" * bool(problem.why)
            yield f"{self.spec.kernel} ({self.spec.id}): not raised either: {problem.message}{why}"
            return
        yield f"{self.spec.kernel} ({self.spec.id}): RAISED, NOT TRANSLATED: {self.path} is what Triton compiled, {self.verdict}"
        yield f"  translation refused: {self.why}"
        yield f"  it holds for this launch alone, with its constexprs; its launch: {launches_path(Path(self.path))}"


def refused_launches(report: FileReport) -> Iterator[tuple[LaunchSpec, str]]:
    """The launches of a file that have no translation, each with the reason."""
    if report.launches:
        for checked in report.launches:
            if checked.status == "refused":
                found = (*checked.diagnostics, *report.diagnostics)
                yield checked.outcome.spec, found[0].message if found else "refused"
    elif report.status == "refused" and report.diagnostics:
        for spec in report.planned.request.launches:
            if isinstance(spec, LaunchSpec):
                yield spec, report.diagnostics[0].message


def raise_refused(reports: Iterable[FileReport], pool: WorkerPool) -> list[RaisedLaunch]:
    """Raise every launch that was refused, beside where its translation would be: `NAME_TARGET.KERNEL.raised.py`."""
    made: list[RaisedLaunch] = []
    taken: set[str] = set()
    for report in reports:
        request = report.planned.request
        of = request.source, request.target
        for spec, why in refused_launches(report):
            place = Path(report.planned.output or f"{Path(request.source).stem}_{request.target}.py")
            path, number = place.with_suffix(f".{spec.kernel}.raised.py"), 1
            while str(path) in taken:
                number += 1
                path = place.with_suffix(f".{spec.kernel}_{number}.raised.py")
            taken.add(str(path))
            try:
                module = pool.call(
                    LOWER, request.source, spec, request.target, request.search_path, request.import_hosts, True
                ).stages["ttgir"]
                raised = raise_module(module, name=f"{Path(request.source).name}, {spec.id}", options=spec.options)
            except TranslationError as error:
                made.append(RaisedLaunch(*of, spec, "", "", why, error.diagnostics))
                continue
            write_raised(raised, path)
            verdict = _verdict(raised, path, module, spec, request.target, pool)
            made.append(RaisedLaunch(*of, spec, str(path), verdict, why))
    return made


def _verdict(raised: Raised, path: Path, module: str, spec: LaunchSpec, target: str, pool: WorkerPool) -> str:
    """Whether it compiles, and computes what the module does."""
    values = {name: value for name, value in spec.values.items() if name in raised.spec.signature}
    own = replace(raised.spec, values=values, grid=spec.grid)
    try:
        text = pool.call(LOWER, str(path), own, target, (), False, True).stages["ttgir"]
        found = pool.call(VALIDATE, module, text, own)
    except (TranslationError, InternalError) as error:
        return f"which does not compile: {str(error).splitlines()[0]}"
    return "validated" if found.status == "validated" else f"{found.status}: {found.reason}"
