"""`gluonize cycles`: where a kernel's loops spend their time, predicted from the assembly, Triton's own compile beside it."""

from __future__ import annotations

import os
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.judge.lower.amdgcn import metadata_number
from gluonize.judge.lower.children.worker import WorkerPool, job_count
from gluonize.product.cli.console import Verbosity, rich_console
from gluonize.product.cli.machine_code.jobs import LOWER_AND_WALK, MORE, CompileOptions, fail, finish, in_full, is_shown
from gluonize.product.cli.review.inputs import one_target
from gluonize.product.project.files.planned import from_provenance
from gluonize.product.project.output.overwrite import check_json
from gluonize.product.project.output.provenance import read_generated
from gluonize.read.files.source_names import check_source, is_path, source_folders
from gluonize.read.spec.selected import select_launches
from gluonize.rules.targets import parse_targets, target as target_row

if TYPE_CHECKING:
    from rich.console import Console

    from gluonize.judge.cycles.prediction import KernelCycles

OF_ASSEMBLY = "gluonize.judge.cycles.job:assembly_cycles"
_ASSEMBLY = (".amdgcn", ".s")


@dataclass(frozen=True)
class AssemblyOptions:
    """Of an assembly file: num_warps of a workgroup, 0 to take it from the metadata; lds_bytes of one workgroup."""

    num_warps: int = 0
    lds_bytes: int = 0


def run_cycles(
    file: str, source: str | None, assembly: AssemblyOptions, options: CompileOptions, verbosity: Verbosity
) -> int:
    """Walk every launch on every target; 1 when one does not compile."""
    check_json(options.json)
    if file.endswith(_ASSEMBLY):
        return _of_assembly(file, assembly, options, verbosity)
    if not options.launches:
        help = "give -l FILE, which gluonize translate SOURCE --write-launches FILE writes, or an assembly file"
        raise TranslationError(Diagnostic("usage", "no launch specs given", help=help))
    targets = parse_targets(options.target)
    source = source or _source_of(file)
    files = (source, file) if source else (file,)
    for name in files:
        check_source(name)
    launches = select_launches(options.launches, files[0], options.kernels)
    results = []
    shown = is_shown(options, verbosity)
    whole = in_full(verbosity, launches, targets)
    with WorkerPool(job_count(options.jobs), timeout=options.timeout) as pool:
        jobs = [
            (spec, row.name, [_submit(pool, name, spec, row.name, files[0], options) for name in files])
            for spec in launches
            for row in targets
        ]
        for spec, target, futures in jobs:
            entry = {"id": spec.id, "kernel": spec.kernel, "target": target, "status": "walked", "diagnostics": []}
            sides, problems = _results(futures)
            ours = sides[-1]
            theirs = sides[0] if source else None
            entry["cycles"] = ours.as_json() if ours else None
            entry["triton_cycles"] = theirs.as_json() if theirs else None
            if ours and shown:
                console = rich_console(verbosity)
                (show if whole else show_loops)(f"{spec.id} on {target}", ours, theirs, console, verbosity.verbose)
            if problems:
                fail(entry, problems)
            results.append(entry)
    if shown and not whole:
        rich_console(verbosity).print(MORE)
    return finish(options, results, failed=any(entry["status"] == "failed" for entry in results))


def _submit(pool: WorkerPool, file: str, spec, target: str, source: str, options: CompileOptions) -> Future:
    what = f"{spec.kernel} of {file} on {target}"
    return pool.submit(LOWER_AND_WALK, file, spec, target, source_folders(source), options.import_hosts, what=what)


def _results(futures: list[Future]) -> tuple[list, tuple[Diagnostic, ...]]:
    sides, problems = [], []
    for future in futures:
        try:
            sides.append(future.result().cycles)
        except TranslationError as error:
            sides.append(None)
            problems += error.diagnostics
    return sides, tuple(problems)


def _source_of(file: str) -> str | None:
    """The Triton source that a generated file names, where it is there to be compiled."""
    generated = read_generated(file) if is_path(file) else None
    if generated is None or not is_path(generated.provenance.source):
        return None
    path = from_provenance(generated).source
    return path if os.path.isfile(path) else None


def _of_assembly(file: str, assembly: AssemblyOptions, options: CompileOptions, verbosity: Verbosity) -> int:
    target = one_target(options.target)
    try:
        with open(file, encoding="utf-8") as stream:
            text = stream.read()
    except (OSError, UnicodeDecodeError) as error:
        raise TranslationError(Diagnostic("source-unreadable", f"cannot read {file}", file, why=str(error))) from None
    lanes = metadata_number(text, "max_flat_workgroup_size")
    num_warps = assembly.num_warps or lanes // target_row(target).warp_size
    if not num_warps:
        message = f"{file} does not say how many warps a workgroup has"
        raise TranslationError(Diagnostic("usage", message, help="give --num-warps N"))
    with WorkerPool(1, timeout=options.timeout) as pool:
        found = pool.call(OF_ASSEMBLY, text, target, num_warps, assembly.lds_bytes, what=f"{file} on {target}")
    entry = {"id": os.path.basename(file), "kernel": "", "target": target, "status": "walked", "diagnostics": []}
    entry |= {"cycles": found.as_json(), "triton_cycles": None}
    if not verbosity.quiet and options.json != "-":
        show(f"{entry['id']} on {target}", found, None, rich_console(verbosity), verbosity.verbose)
    return finish(options, [entry], failed=False)


def show_loops(
    title: str, ours: "KernelCycles", theirs: "KernelCycles | None", console: "Console", verbose: bool = False
) -> None:
    """The loops side by side."""
    from gluonize.judge.cycles.text import table_of_loops

    console.print(table_of_loops(title, ours, theirs))


def show(
    title: str, ours: "KernelCycles", theirs: "KernelCycles | None", console: "Console", verbose: bool = False
) -> None:
    """The loops side by side, then what the hot one loses, where, and a timeline."""
    from gluonize.judge.cycles.text import estimate_line, fetch_line, lines_of_loop, table_of_loops

    console.print(table_of_loops(title, ours, theirs))
    for loop in ours.loops if verbose else filter(None, [ours.hot]):
        for line in lines_of_loop(loop):
            console.print(line, markup=False)
    for name, kernel in (("", ours), ("Triton's compile: ", theirs)):
        if kernel is not None and kernel.estimate is not None:
            console.print(f"{name}{estimate_line(kernel.estimate)}", markup=False)
        if kernel is not None and (line := fetch_line(kernel)):
            console.print(f"{name}{line}", markup=False)
    for note in (*ours.notes, *(f"Triton's compile: {x}" for x in (theirs.notes if theirs else ()))):
        console.print(f"note: {note}", markup=False)
    console.print(f"accuracy on {ours.target}: {ours.error}", markup=False)
    console.print()
