"""`gluonize compile`: all stages and metrics of a kernel, with no GPU."""

from __future__ import annotations

import os

from gluonize.diagnostics import TranslationError
from gluonize.judge.lower.children.worker import WorkerPool, job_count
from gluonize.judge.lower.compile import Lowered
from gluonize.judge.lower.metrics import KernelMetrics
from gluonize.product.cli.console import Verbosity, rich_console
from gluonize.product.cli.machine_code.jobs import (
    MORE,
    CompileOptions,
    fail,
    finish,
    in_full,
    is_shown,
    read_inputs,
    start_jobs,
)
from gluonize.product.project.output.file import launch_stems, make_folder, write_bytes, write_whole


def run_compile(file: str, emit: str | None, options: CompileOptions, verbosity: Verbosity) -> int:
    """Compile every launch for every target; 1 when one does not compile or does not fit its target."""
    inputs = read_inputs(options, file)
    if emit:
        make_folder(emit)
    stems = launch_stems(spec.id for spec in inputs.launches)
    shown = is_shown(options, verbosity)
    whole = in_full(verbosity, inputs.launches, inputs.targets)
    results, compiled = [], []
    with WorkerPool(job_count(options.jobs), timeout=options.timeout) as pool:
        for job in start_jobs(pool, inputs, options, keep_stages=bool(emit)):
            entry = job.entry("compiled")
            try:
                lowered = job.lowered[0].result()
                problems = tuple(filter(None, [lowered.lds_overflow()]))
                entry["metrics"] = lowered.metrics.as_json()
                entry["seconds"] = round(lowered.seconds, 4)
                if emit:
                    entry["files"] = _emit(lowered, os.path.join(emit, f"{stems[job.spec.id]}_{job.target}"))
                compiled.append((job.spec.id, job.target, lowered.metrics))
                if shown and whole:
                    _show(lowered, entry.get("files", {}), verbosity)
            except TranslationError as error:
                problems = error.diagnostics
            if problems:
                fail(entry, problems)
            results.append(entry)
    if compiled and shown and not whole:
        _show_all(compiled, emit, verbosity)
    return finish(options, results, failed=any(entry["status"] == "failed" for entry in results))


def _emit(lowered: Lowered, stem: str) -> dict[str, str]:
    """Write every stage as `STEM.stage`; returns the paths by stage."""
    files = {}
    for stage, content in lowered.stages.items():
        files[stage] = f"{stem}.{stage}"
        (write_bytes if isinstance(content, bytes) else write_whole)(files[stage], content)
    return files


def _show_all(compiled: list[tuple[str, str, KernelMetrics]], emit: str | None, verbosity: Verbosity) -> None:
    """A line for each launch, by its id and target."""
    from gluonize.judge.lower.parity_table import metrics_summary

    console = rich_console(verbosity)
    console.print(metrics_summary(compiled))
    console.print(MORE, *([f"; all stages are in {emit}"] if emit else []), sep="", markup=False)


def _show(lowered: Lowered, files: dict[str, str], verbosity: Verbosity) -> None:
    from gluonize.judge.lower.parity_table import metrics_table

    console = rich_console(verbosity)
    console.print(metrics_table(lowered.kernel, lowered.target, lowered.metrics))
    for stage, path in files.items():
        console.print(f"  {stage}: {path}")
    for note in lowered.notes if verbosity.verbose else ():
        console.print(f"  compiler: {note}", markup=False)
    console.print()
