"""`gluonize validate`: source and translation on the CPU reference machine."""

from __future__ import annotations

import sys

from gluonize.diagnostics import Diagnostic, InternalError, TranslationError
from gluonize.judge.emulator.checkout import check_target, find_checkout
from gluonize.judge.machine.coverage import Coverage
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, print_diagnostics, rich_console
from gluonize.product.cli.finding_formats import reported
from gluonize.product.cli.results import write_json
from gluonize.product.cli.running.device_validation import validate_on_device
from gluonize.product.cli.running.validate_options import ValidateOptions
from gluonize.product.cluster.open_pool import open_pool
from gluonize.product.project.checks.validation_findings import of_validation
from gluonize.product.project.output.overwrite import check_json
from gluonize.product.project.output.swapped import check_not_swapped, other_target
from gluonize.product.review.annotations import Annotation, errors
from gluonize.read.files.source_names import check_source, source_folders
from gluonize.read.spec.selected import select_launches
from gluonize.rules.targets import parse_targets

VALIDATE = "gluonize.judge.verdict:validate_launch"
EMULATED = "gluonize.judge.emulator:validate_emulated"


def run_validate(a: ValidateOptions, verbosity: Verbosity) -> int:
    """Validate every launch on every target; 1 when one mismatches, has a hazard or could not be run.

    Raises: TranslationError where `--emulator` cannot be done.
    """
    with reported(a.format, a.json) as annotations:
        return _run_validate(a, verbosity, annotations)


def _run_validate(a: ValidateOptions, verbosity: Verbosity, annotations: list[Annotation]) -> int:
    rows = parse_targets(a.target)
    check_json(a.json)
    check_source(a.source)
    check_source(a.out)
    check_not_swapped(a.source, a.out, "gluonize validate")
    specs = select_launches(a.launches, a.source, a.kernels)
    function, more = _how(a, rows)
    if (status := validate_on_device(a, specs, rows, verbosity, annotations)) is not None:
        return status
    console = rich_console(verbosity, sys.stdout if a.format == "text" else sys.stderr)
    if (note := other_target(a.out, [row.name for row in rows])) and not verbosity.quiet and a.json != "-":
        console.print(note, markup=False)
    results, failed = [], False
    with open_pool(a.jobs, a.timeout, a.cache, a.cluster) as pool:
        pending = [
            (spec, row.name, pool.submit(
                function, a.source, a.out, spec, row.name, source_folders(a.source), a.import_hosts, *more,
                inputs=a.inputs, variants=a.variants, what=f"validating {spec.kernel} on {row.name}",
            ))
            for spec in specs for row in rows
        ]  # fmt: skip
        for spec, target, future in pending:
            found, problems = _answer(future)
            decided = _decides(found)
            failed |= decided["status"] != "validated"
            print_diagnostics(problems)
            annotations += errors(problems or of_validation(f"{spec.kernel} ({spec.id})", decided, a.out))
            if not verbosity.quiet and a.json != "-":
                _show(spec, target, found, console, verbosity)
            results.append(
                {
                    "id": spec.id,
                    "kernel": spec.kernel,
                    "target": target,
                    "status": decided["status"],
                    "validation": found,
                }
                | {"diagnostics": [d.as_json() for d in problems]}
            )
    if a.json:
        write_json(a.json, results)
    return exit_status.CHECK_FAILED if failed else exit_status.DONE


def _how(a: ValidateOptions, rows) -> tuple[str, tuple]:
    """The function that validates a launch, and what it is given beside the launch. Raises: TranslationError."""
    if not a.emulator:
        return VALIDATE, ()
    if a.device != "cpu":
        raise TranslationError(Diagnostic("usage", "--emulator and --device do not go together"))
    for row in rows:
        check_target(row.name)
    return EMULATED, (find_checkout(), a.timeout)


def _decides(found: dict) -> dict:
    """What a launch is judged by: the reference machine's finding, or the emulator's where that is worse."""
    emulated = found.get("emulator")
    if not emulated or found["status"] == "mismatch" or emulated["status"] == "validated":
        return found
    return emulated if found["status"] == "validated" or emulated["status"] == "mismatch" else found


def _answer(future) -> tuple[dict, tuple[Diagnostic, ...]]:
    try:
        found = future.result()
    except TranslationError as error:
        return {"status": "not_runnable", "reason": str(error)}, error.diagnostics
    except InternalError as error:
        problem = Diagnostic("internal-error", "a bug in gluonize while validating", why=str(error))
        return {"status": "not_runnable", "reason": str(error)}, (problem,)
    hazards = tuple(
        Diagnostic(h["kind"], f"{h['op']}: {h['message']}", h["file"], h["line"], h["column"])
        for h in found.get("hazards", ())
    )
    return found, hazards


def _show(spec, target: str, found: dict, console, verbosity: Verbosity) -> None:
    """`matmul/fp16 gfx950: validated (bitwise), 6 of 6 programs, 7 input variants`."""
    style = {"validated": "green", "mismatch": "red"}.get(found["status"], "yellow")
    what = found["status"]
    if what == "validated" and found.get("coverage", {}).get("missing"):
        style, what = "yellow", "validated in part"
    if found["status"] == "validated":
        what += " (bitwise)" if found.get("bitwise") else " (within tolerance)"
    detail = ""
    if found.get("grid"):
        detail = f", {found['programs']} of {found['grid']} programs, {len(found['variants'])} input variants"
    console.print(f"{spec.id} {target}: [{style}]{what}[/{style}]{detail}")
    gaps = Coverage.of_json(found["coverage"]).gaps() if found.get("coverage") else ()
    for gap in gaps:
        console.print(f"  did not run: {gap}", markup=False)
    if found.get("reason") and not found.get("hazards"):
        where = f" with {found['variant']}" if found.get("variant") else ""
        console.print(f"  {found['reason']}{where}", markup=False)
    for note in found.get("notes", ()):
        console.print(f"  note: {note}", markup=False)
    if emulated := found.get("emulator"):
        _show_emulated(emulated, console)
    if verbosity.verbose:
        for t in found.get("tensors", ()):
            console.print(
                f"  {t['name']}: {t['compared']} compared, {t['wrong']} wrong, largest difference {t['error']:.3g}",
                markup=False,
            )


def _show_emulated(found: dict, console) -> None:
    """`machine code in the emulator: validated, 7 sets of inputs`."""
    style = {"validated": "green", "mismatch": "red"}.get(found["status"], "yellow")
    console.print(
        f"  machine code in the emulator: [{style}]{found['status']}[/{style}], {found['inputs']} sets of inputs"
    )
    if found["reason"]:
        where = f" with {found['variant']}" if found["variant"] else ""
        console.print(f"  {found['reason']}{where}", markup=False)
    for note in found["notes"]:
        console.print(f"  note: {note}", markup=False)
