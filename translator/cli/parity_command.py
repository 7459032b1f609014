"""`gluonize parity`: a translation's machine code beside Triton's own compile of the source."""

from __future__ import annotations

from rules.targets import parse_targets
from translator.cli import exit_status
from translator.cli.compile_command import LOWER
from translator.cli.console import Verbosity, print_diagnostics, rich_console
from translator.cli.inputs import check_source, job_count, select_launches, source_folders
from translator.cli.results import check_json, write_json
from translator.diagnostics import TranslationError
from translator.lowering.parity import Parity
from translator.lowering.worker import WorkerPool


def run_parity(
    source: str,
    out: str,
    target: str,
    launches: str,
    kernels: tuple[str, ...],
    json: str | None,
    check: bool,
    jobs: int,
    timeout: float,
    import_hosts: bool,
    verbosity: Verbosity,
) -> int:
    """Compare every launch on every target; 1 when one side does not compile, or with `check` on a regression."""
    rows = parse_targets(target)
    check_json(json)
    check_source(source)
    check_source(out)
    specs = select_launches(launches, source, kernels)
    console = rich_console(verbosity)
    folders = source_folders(source)
    results, found, failed = [], [], False
    with WorkerPool(job_count(jobs), timeout=timeout) as pool:
        pending = []
        for spec in specs:
            for row in rows:
                sides = [
                    pool.submit(
                        LOWER,
                        path,
                        spec,
                        row.name,
                        folders,
                        import_hosts,
                        what=f"{spec.kernel} of {path} on {row.name}",
                    )
                    for path in (out, source)
                ]
                pending.append((spec, row.name, sides))
        for spec, name, sides in pending:
            entry = {"id": spec.id, "kernel": spec.kernel, "target": name, "status": "compared", "diagnostics": []}
            problems, lowered = [], []
            for side in sides:
                try:
                    lowered.append(side.result())
                    problems += filter(None, [lowered[-1].lds_overflow()] if side is sides[0] else [])
                except TranslationError as error:
                    lowered.append(None)
                    problems += error.diagnostics
            for key, side in zip(("metrics", "triton"), lowered):
                entry[key] = side.metrics.as_json() if side else None
            entry["parity"] = None
            if all(lowered):
                compared = Parity(spec.id, name, lowered[0].metrics, lowered[1].metrics)
                entry["parity"] = compared.as_json()
                found.append(compared)
                failed |= check and bool(compared.regressions())
                if not verbosity.quiet and json != "-":
                    _show(compared, console)
            if problems:
                failed = True
                entry["status"] = "failed"
                entry["diagnostics"] = [p.as_json() for p in problems]
                print_diagnostics(problems)
            results.append(entry)
    if len(found) > 1 and not verbosity.quiet and json != "-":
        from translator.lowering.parity_table import parity_summary

        console.print(parity_summary(found))
    if json:
        write_json(json, results)
    bad_input = any(d["code"].startswith(("spec-", "source-")) for entry in results for d in entry["diagnostics"])
    return exit_status.REFUSED if bad_input else exit_status.CHECK_FAILED if failed else exit_status.DONE


def _show(parity: Parity, console) -> None:
    from translator.lowering.parity_table import parity_table

    console.print(parity_table(parity))
    for regression in parity.regressions():
        console.print(f"  worse than Triton: {regression}", style="yellow")
    console.print()
