"""`gluonize prove`: whether a Gluon kernel computes what its source computes, for every launch that its header admits."""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass

from gluonize.diagnostics import Diagnostic, InternalError, TranslationError, shown
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, print_diagnostics, rich_console
from gluonize.product.cli.finding_formats import reported
from gluonize.product.cli.results import write_json
from gluonize.product.cluster.open_pool import open_pool
from gluonize.product.project.output.overwrite import check_json
from gluonize.product.review.annotations import Annotation, errors
from gluonize.product.project.output.swapped import check_not_swapped, other_target
from gluonize.read.files.source_names import check_source, source_folders
from gluonize.read.spec.selected import select_launches
from gluonize.rules.targets import parse_targets

PROVE = "gluonize.judge.verdict.witness:prove_launch"
STYLES = {"proved": "green", "proved up to the order of sums": "green", "refuted": "red"}


@dataclass(frozen=True)
class ProveOptions:
    """The options of `gluonize prove`, as given. timeout: seconds for one launch."""

    source: str
    out: str
    target: str
    launches: str
    kernels: tuple[str, ...] = ()
    json: str | None = None
    jobs: int = 0
    timeout: float = 60.0
    import_hosts: bool = False
    format: str = "text"
    cache: bool = True
    cluster: str | None = None


def run_prove(a: ProveOptions, verbosity: Verbosity) -> int:
    """Prove every launch on every target; 1 when one is refuted or not proved."""
    with reported(a.format, a.json) as annotations:
        return _run(a, verbosity, annotations)


def _run(a: ProveOptions, verbosity: Verbosity, annotations: list[Annotation]) -> int:
    rows = parse_targets(a.target)
    check_json(a.json)
    check_source(a.source)
    check_source(a.out)
    check_not_swapped(a.source, a.out, "gluonize prove")
    specs = select_launches(a.launches, a.source, a.kernels)
    console = rich_console(verbosity, sys.stdout if a.format == "text" else sys.stderr)
    if (note := other_target(a.out, [row.name for row in rows])) and not verbosity.quiet and a.json != "-":
        console.print(note, markup=False)
    results, failed = [], False
    with open_pool(a.jobs, a.timeout, a.cache, a.cluster) as pool:
        pending = [
            (spec, row.name, pool.submit(
                PROVE, a.source, a.out, spec, row.name, source_folders(a.source), a.import_hosts,
                what=f"proving {spec.kernel} on {row.name}",
            ))
            for spec in specs for row in rows
        ]  # fmt: skip
        for spec, target, future in pending:
            found, problems = _answer(future)
            holds = found["status"].startswith("proved")
            failed |= not holds
            print_diagnostics(problems)
            if not holds:
                annotations += errors(problems or [finding(f"{spec.kernel} ({spec.id})", found, a.out)])
            if not verbosity.quiet and a.json != "-":
                _show(spec.id, target, found, console, verbosity)
            results.append(
                {"id": spec.id, "kernel": spec.kernel, "target": target, "status": found["status"], "proof": found}
            )
    if a.json:
        write_json(a.json, results)
    return exit_status.CHECK_FAILED if failed else exit_status.DONE


def _answer(future) -> tuple[dict, tuple[Diagnostic, ...]]:
    try:
        return future.result(), ()
    except TranslationError as error:
        return {"status": "not proved", "reason": str(error)}, error.diagnostics
    except InternalError as error:
        problem = Diagnostic("internal-error", "a bug in gluonize while proving", why=str(error))
        return {"status": "not proved", "reason": str(error)}, (problem,)


def finding(name: str, found: dict, file: str) -> Diagnostic:
    """A launch that is not proved, at the line of the kernel, or of its source, where that shows."""
    place = found.get("output") or found.get("source") or {}
    code = "refuted" if found["status"] == "refuted" else "not-proved"
    message = f"{name} is {found['status']} to compute what its source computes" if code == "not-proved" else (
        f"{name} computes something else than its source"
    )  # fmt: skip
    return Diagnostic(
        code,
        message,
        place.get("file") or file,
        place.get("line", 0),
        place.get("column", 0),
        why=found.get("reason", ""),
    )


def _show(name: str, target: str, found: dict, console, verbosity: Verbosity) -> None:
    """`matmul/fp16 gfx950: proved`, and of what is not: the pair of lines at which that shows."""
    style = STYLES.get(found["status"], "yellow")
    seconds = f", {found['seconds']:.2f} s" if verbosity.verbose and "seconds" in found else ""
    console.print(f"{name} {target}: [{style}]{found['status']}[/{style}]{seconds}")
    for assumed in found.get("assumed", ()):
        console.print(f"  if {assumed}", markup=False)
    if found.get("reason"):
        console.print(f"  {found['reason']}", markup=False)
    for side, place in (("source", found.get("source")), ("kernel", found.get("output"))):
        if place and place["line"]:
            text = linecache.getline(place["file"], place["line"]).strip()
            console.print(f"  {side} {shown(place['file'])}:{place['line']}: {text}", markup=False, soft_wrap=True)
