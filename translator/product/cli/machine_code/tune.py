"""`gluonize tune`: the candidates for a kernel's pipelined loops with their figures, and which one would be chosen."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from gluonize.decide.choices.chosen import Choices
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, print_diagnostics, rich_console
from gluonize.product.cli.results import write_json
from gluonize.product.cli.translate.retile import retile
from gluonize.product.cluster.open_pool import open_pool
from gluonize.product.project.output.file import check_destination, launch_stems, make_folder, write_whole
from gluonize.product.project.output.overwrite import check_json
from gluonize.product.project.translate.plan import assignments_of
from gluonize.product.project.translate.run import VALIDATE
from gluonize.read.files.source_names import check_source, source_folders, source_name
from gluonize.read.spec.selected import select_launches
from gluonize.read.text.style import style_of
from gluonize.request import TranslateRequest
from gluonize.rules.targets import parse_targets
from gluonize.rules.targets import target as target_row
from gluonize.search.choose import Tried, best, figures_of, mean_costs, try_candidates
from gluonize.search.planning import planned
from rich.table import Table

UNIT = "clk"
# Candidates that are shown of one launch, and of each where there are several, beside the one that is chosen.
_ROWS, _ROWS_EACH = 12, 2


@dataclass(frozen=True)
class TuneOptions:
    """The options of `gluonize tune`, as given."""

    source: str
    target: str
    launches: str | None = None
    kernels: tuple[str, ...] = ()
    out_dir: str | None = None
    json: str | None = None
    num_buffers: int | None = None
    validate: bool = True
    import_hosts: bool = False
    assignments: tuple[str, ...] = ()
    jobs: int = 0
    timeout: float = 120.0
    cache: bool = True
    cluster: str | None = None
    retile: str | None = None


def run_tune(options: TuneOptions, verbosity: Verbosity) -> int:
    """One table per launch and target; 1 when a candidate is wrong on the reference machine."""
    rows = parse_targets(options.target)
    check_json(options.json)
    check_source(options.source)
    launches = select_launches(options.launches, options.source, options.kernels) if options.launches else ()
    if options.retile:
        _check_retile(options, len(rows))
    if options.out_dir:
        make_folder(options.out_dir)
    quiet = verbosity.quiet or options.json == "-"
    console = rich_console(verbosity)
    results, wrong, failed = [], False, False
    with open_pool(options.jobs, options.timeout, options.cache, options.cluster) as pool:
        for row in rows:
            request = TranslateRequest(
                source=options.source,
                target=row.name,
                kernels=options.kernels,
                launches=launches,
                search_path=source_folders(options.source),
                assignments=assignments_of(options.assignments),
                import_hosts=options.import_hosts,
                num_buffers=options.num_buffers,
                optimize="aggressive",
                style=style_of(options.source),
            )
            if options.retile:
                request = replace(
                    request, launches=retile(request, options.retile, pool, verbosity, options.json == "-")
                )
            specs = planned(request, pool)
            stems = launch_stems(spec.id for spec in specs)
            tried: list[Tried] = []
            for spec in specs:
                own = try_candidates(request, spec, pool)
                tried += own
                files = _write(options, own, stems[spec.id], row.name) if options.out_dir else {}
                verdicts = _validate(options, own, request, files, pool) if options.validate else {}
                entries = [_entry(t, own, files, verdicts) for t in own]
                wrong |= any(e["validation"] == "mismatch" for e in entries)
                failed |= all(e["metrics"] is None for e in entries)
                results.append({"id": spec.id, "kernel": spec.kernel, "target": row.name, "candidates": entries})
            chosen = best(tried)
            for result in results:
                if result["target"] == row.name:
                    own = [t for t in tried if t.spec.kernel == result["kernel"]]
                    choices = chosen[result["kernel"]]
                    figures = figures_of(own, result["id"], choices)
                    result["chosen"], result["why"] = choices.name, _why(own, result["id"], choices)
                    if not quiet:
                        most = None if verbosity.verbose else _ROWS if len(specs) * len(rows) == 1 else _ROWS_EACH
                        console.print(_table(result, figures.choices.name if figures else "", most), markup=False)
                        for line in _lines_below(result, verbosity.verbose):
                            console.print(line, style="bright_black", markup=False)
            if failed:
                print_diagnostics([d for t in tried for d in t.diagnostics][:3])
    if not quiet:
        console.print(_unit(results), *([] if verbosity.verbose else ["all candidates: -v"]), sep="\n", markup=False)
    if options.json:
        write_json(options.json, results)
    if options.out_dir and not quiet:
        console.print(
            f"To time them on the GPU: gluonize bench {options.out_dir} -t {options.target} "
            f"-l {options.retile or options.launches or 'LAUNCHES.json'} --source {options.source}",
            markup=False,
        )
    return exit_status.CHECK_FAILED if wrong or failed else exit_status.DONE


def _check_retile(options: TuneOptions, targets: int) -> None:
    """Raises: TranslationError."""
    if targets > 1 or not options.launches:
        message, help = (
            "--retile searches tiles for the launches of a file, on one target",
            "give -l FILE and one target",
        )
        raise TranslationError(Diagnostic("usage", message, options.source, help=help))
    check_destination(options.retile or "")


def _write(options: TuneOptions, tried: list[Tried], stem: str, target: str) -> dict[str, str]:
    """Candidate name -> the file it was written to; candidates with the same text as an earlier one have none."""
    files = {}
    for t in tried:
        if t.lowered is not None:
            path = os.path.join(options.out_dir or "", f"{stem}_{target}_{t.choices.name}.py")
            write_whole(path, t.text)
            files[t.choices.name] = path
    return files


def _validate(options: TuneOptions, tried: list[Tried], request: TranslateRequest, files: dict[str, str], pool) -> dict:
    """Candidate name -> status on the reference machine."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="gluonize-tune-") as folder:
        pending = {}
        for i, t in enumerate(tried):
            if t.lowered is None:
                continue
            path = files.get(t.choices.name)
            if path is None:
                path = os.path.join(folder, f"{source_name(options.source)}_{i}.py")
                write_whole(path, t.text)
            arguments = (request.source, path, t.spec, request.target, request.search_path, request.import_hosts)
            pending[t.choices.name] = pool.submit(VALIDATE, *arguments, what=f"validating {t.choices.name}")
        verdicts = {}
        for name, future in pending.items():
            try:
                verdicts[name] = future.result()["status"]
            except TranslationError as error:
                verdicts[name] = f"not_runnable: {error.diagnostics[0].code}"
        return verdicts


def _entry(t: Tried, own: list[Tried], files: dict[str, str], verdicts: dict[str, str]) -> dict:
    figures = figures_of(own, t.spec.id, t.choices)
    compiled = (t.choices if t.same_as is None else t.same_as).name
    return {
        "candidate": t.choices.name,
        "same_as": compiled if t.same_as is not None else None,
        "file": files.get(compiled),
        "cycles": round(figures.cost.cycles, 3) if figures and figures.cost else None,
        "efficiency": figures.cost.efficiency if figures and figures.cost else None,
        "predicted": figures.lowered.cycles.as_json() if figures and figures.lowered else None,
        "metrics": figures.lowered.metrics.as_json() if figures and figures.lowered else None,
        "validation": verdicts.get(compiled, "skipped"),
        "diagnostics": [d.as_json() for d in t.diagnostics],
    }


def _table(result: dict, chosen_text: str, most: int | None) -> Table:
    """The candidates of one launch, the cheapest first; one whose text is that of an earlier one is named beside that. most: of them are
    shown, with the one that is chosen and what it is compared with; None: all."""
    title = f"{result['id']} on {result['target']}: {result['chosen']} would be chosen"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("candidate")
    for name in ("", UNIT, "matrix cores", "loop", "matrix", "barriers", "VGPRs", "spills", "LDS bytes"):
        table.add_column(name, justify="right")
    table.add_column("")
    lds = target_row(result["target"]).lds_bytes
    own = [entry for entry in result["candidates"] if not entry["same_as"]]
    own.sort(key=lambda e: (e["cycles"] is None, e["cycles"] or 0))
    for number, entry in enumerate(own):
        if most is not None and number >= most and entry["candidate"] not in (chosen_text, Choices().name):
            continue
        metrics = entry["metrics"]
        chosen = "*" if entry["candidate"] == chosen_text else ""
        if metrics is None:
            why = entry["diagnostics"][0]["message"] if entry["diagnostics"] else ""
            table.add_row(entry["candidate"], chosen, *["-"] * 8, why)
            continue
        loop = metrics["loop"] or metrics
        note = "LDS does not fit" if metrics["lds_bytes"] > lds else entry["validation"]
        efficiency = "" if entry["efficiency"] is None else f"{entry['efficiency']:.1%}"
        cells = (f"{entry['cycles']:.1f}", efficiency, loop["insns"], loop["mma"], loop["barrier"])
        cells += (metrics["vgpr"], metrics["spill"], metrics["lds_bytes"])
        table.add_row(entry["candidate"], chosen, *map(str, cells), note)
    return table


def _unit(results: list[dict]) -> str:
    """What the cost is of."""
    work = any(entry["efficiency"] is not None for result in results for entry in result["candidates"])
    per = "million matrix operations" if work else "iteration of a program"
    return f"{UNIT}: predicted clocks of compute units per {per}, less is better; one choice is made for all launches of a kernel"


def _lines_below(result: dict, verbose: bool) -> list[str]:
    """Why the chosen one wins where it is not the cheapest of this launch, and candidates with the same text."""
    lines = [f"*: {result['why']}"] if result["why"] else []
    same: dict[str, list[str]] = {}
    for entry in result["candidates"]:
        if entry["same_as"] and verbose:
            same.setdefault(entry["same_as"], []).append(entry["candidate"])
    return lines + [f"the same code as {name}: {', '.join(names)}" for name, names in same.items()]


def _why(own: list[Tried], spec_id: str, chosen: Choices) -> str:
    """Why choices that are not the cheapest for one launch are chosen; "" where they are."""
    figures = {t.choices: f for t in own if t.spec.id == spec_id and (f := figures_of(own, spec_id, t.choices))}
    costs = {x: f.cost for x, f in figures.items() if f.cost is not None}
    if chosen not in costs:
        return "no candidate compiles and fits for every launch"
    cheaper = [x for x, cost in costs.items() if round(cost.cycles, 3) < round(costs[chosen].cycles, 3)]
    if not cheaper:
        return ""
    least = min(cheaper, key=lambda x: costs[x].cycles)
    means = mean_costs(own)
    launches = len({t.spec.id for t in own})
    if least in means:
        others = f"the least in the mean over {launches} launches: {means[chosen]:.1f}, {least.name} {means[least]:.1f}"
        return f"{chosen.name} is {others}"
    fits = "does not fit into LDS" if not costs[least].fits else "does not compile and fit for every launch"
    return f"{least.name} is cheaper here and {fits}"
