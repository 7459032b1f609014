"""`gluonize compile`: all stages and metrics of a kernel, with no GPU."""

from __future__ import annotations

import os

from rules.targets import parse_targets
from translator.cli import exit_status
from translator.cli.console import Verbosity, print_diagnostics, rich_console
from translator.cli.inputs import check_source, job_count, select_launches, source_folders
from translator.cli.output_file import launch_stems, make_folder, write_bytes, write_whole
from translator.cli.results import check_json, write_json
from translator.diagnostics import TranslationError
from translator.lowering.compile import Lowered
from translator.lowering.worker import WorkerPool

LOWER = "translator.lowering.jobs:lower_file"


def run_compile(
    file: str,
    target: str,
    launches: str,
    kernels: tuple[str, ...],
    emit: str | None,
    json: str | None,
    jobs: int,
    timeout: float,
    import_hosts: bool,
    verbosity: Verbosity,
) -> int:
    """Compile every launch for every target; 1 when one does not compile or does not fit its target."""
    rows = parse_targets(target)
    check_json(json)
    check_source(file)
    specs = select_launches(launches, file, kernels)
    if emit:
        make_folder(emit)
    stems = launch_stems(spec.id for spec in specs)
    results, failed = [], False
    with WorkerPool(job_count(jobs), timeout=timeout) as pool:
        pending = [
            (spec, row.name, pool.submit(
                LOWER, file, spec, row.name, source_folders(file), import_hosts, bool(emit),
                what=f"{spec.kernel} on {row.name}",
            ))
            for spec in specs
            for row in rows
        ]  # fmt: skip
        for spec, name, future in pending:
            entry = {"id": spec.id, "kernel": spec.kernel, "target": name, "status": "compiled", "diagnostics": []}
            try:
                lowered = future.result()
                problems = tuple(filter(None, [lowered.lds_overflow()]))
                entry["metrics"] = lowered.metrics.as_json()
                entry["seconds"] = round(lowered.seconds, 4)
                if emit:
                    entry["files"] = _emit(lowered, os.path.join(emit, f"{stems[spec.id]}_{name}"))
                if not verbosity.quiet and json != "-":
                    _show(lowered, entry.get("files", {}), verbosity)
            except TranslationError as error:
                problems = error.diagnostics
            if problems:
                failed = True
                entry["status"] = "failed"
                entry["diagnostics"] = [found.as_json() for found in problems]
                print_diagnostics(problems)
            results.append(entry)
    if json:
        write_json(json, results)
    bad_input = any(d["code"].startswith(("spec-", "source-")) for entry in results for d in entry["diagnostics"])
    return exit_status.REFUSED if bad_input else exit_status.CHECK_FAILED if failed else exit_status.DONE


def _emit(lowered: Lowered, stem: str) -> dict[str, str]:
    """Write every stage as `STEM.stage`; returns the paths by stage."""
    files = {}
    for stage, content in lowered.stages.items():
        files[stage] = f"{stem}.{stage}"
        (write_bytes if isinstance(content, bytes) else write_whole)(files[stage], content)
    return files


def _show(lowered: Lowered, files: dict[str, str], verbosity: Verbosity) -> None:
    from translator.lowering.parity_table import metrics_table

    console = rich_console(verbosity)
    console.print(metrics_table(lowered.kernel, lowered.target, lowered.metrics))
    for stage, path in files.items():
        console.print(f"  {stage}: {path}")
    for note in lowered.notes if verbosity.verbose else ():
        console.print(f"  compiler: {note}", markup=False)
    console.print()
