"""`gluonize parity`: a translation's machine code beside Triton's own compile of the source."""

from __future__ import annotations

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.judge.cycles.clocks import GATE, Clocks, clocks_beside
from gluonize.judge.lower.compile import Lowered
from gluonize.judge.lower.parity import Parity
from gluonize.product.cli.console import Verbosity, rich_console
from gluonize.product.cli.machine_code.jobs import (
    LOWER_AND_WALK,
    MORE,
    CompileJob,
    CompileOptions,
    fail,
    finish,
    in_full,
    is_shown,
    read_inputs,
    start_jobs,
)
from gluonize.product.cluster.open_pool import open_pool


def run_parity(
    source: str, out: str, check: bool, options: CompileOptions, verbosity: Verbosity, gate: float | None = None
) -> int:
    """Compare every launch on every target; 1 when one side does not compile, with `check` on a regression, or where the hottest loop is
    predicted to take more than `gate` times the clocks of Triton's."""
    inputs = read_inputs(options, source, out)
    console = rich_console(verbosity)
    shown = is_shown(options, verbosity)
    whole = in_full(verbosity, inputs.launches, inputs.targets)
    results, found, slower = [], [], False
    with open_pool(options.jobs, options.timeout, options.cache, options.cluster) as pool:
        for job in start_jobs(pool, inputs, options, job=LOWER_AND_WALK):
            entry = job.entry("compared")
            gluon, triton, problems = _both(job)
            entry["metrics"] = gluon.metrics.as_json() if gluon else None
            entry["triton"] = triton.metrics.as_json() if triton else None
            entry["cycles"] = gluon.cycles.as_json() if gluon else None
            entry["triton_cycles"] = triton.cycles.as_json() if triton else None
            entry["parity"] = None
            if gluon and triton:
                compared = Parity(job.spec.id, job.target, gluon.metrics, triton.metrics)
                clocks = clocks_beside(gluon, triton)
                entry["parity"] = compared.as_json() | (clocks.as_json() if clocks else {})
                found.append(compared)
                slower |= bool(clocks and gate and clocks.above(gate))
                if shown and (overflow := triton.lds_overflow()):
                    console.print(f"Triton's own compile could not be launched: {overflow.message}", style="yellow")
                if shown and clocks is not None:  # first, as it decides
                    style = "yellow" if clocks.above(gate or GATE) else "green" if clocks.ratio <= 1 else None
                    console.print(f"{compared.kernel} on {compared.target}: {clocks.line()}", style=style)
                if shown and whole:
                    _show(compared, gluon, triton, console, clocks, gate)
            if problems:
                fail(entry, problems)
            results.append(entry)
    if len(found) > 1 and shown:
        from gluonize.judge.lower.parity_table import parity_summary

        console.print(parity_summary(found))
        if not whole:
            console.print(MORE)
    regressed = check and any(compared.regressions() for compared in found)
    return finish(options, results, failed=regressed or slower or any(entry["status"] == "failed" for entry in results))


def _both(job: CompileJob) -> tuple[Lowered | None, Lowered | None, tuple[Diagnostic, ...]]:
    """Both compiles, None for one that fails, and what is wrong: the LDS of the translation has to fit as well."""
    sides: list[Lowered | None] = []
    problems: list[Diagnostic] = []
    for future in reversed(job.lowered):
        try:
            sides.append(future.result())
        except TranslationError as error:
            sides.append(None)
            problems += error.diagnostics
    gluon, triton = sides
    overflow = gluon.lds_overflow() if gluon else None
    return gluon, triton, tuple(filter(None, [*problems, overflow]))


def _show(parity: Parity, gluon: Lowered, triton: Lowered, console, clocks: Clocks | None, gate: float | None) -> None:
    from gluonize.judge.cycles.text import table_of_loops
    from gluonize.judge.lower.parity_table import parity_table

    console.print(parity_table(parity))
    console.print(table_of_loops("predicted clocks of one iteration of a workgroup", gluon.cycles, triton.cycles))
    if parity.note:
        console.print(f"  {parity.note}")
    above = clocks.above(gate or GATE) if clocks is not None else ""
    for regression in filter(None, (above, *parity.regressions())):
        console.print(f"  worse than Triton: {regression}", style="yellow")
    console.print()
