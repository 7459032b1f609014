"""`gluonize validate --device`: the same comparison on a GPU, if there is one."""

from __future__ import annotations

import os
import sys
import tempfile

from gluonize.diagnostics import Diagnostic, InternalError, TranslationError
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, print_diagnostics, rich_console
from gluonize.product.cli.results import write_json
from gluonize.product.cli.running.bench import times
from gluonize.product.cli.running.validate_options import ValidateOptions
from gluonize.product.project.checks.validation_findings import of_validation
from gluonize.product.review.annotations import Annotation, errors
from gluonize.read.files.source_names import source_folders

FALLING_BACK = "no GPU found: validating on the CPU reference machine"


def validate_on_device(
    a: ValidateOptions, specs, rows, verbosity: Verbosity, annotations: list[Annotation]
) -> int | None:
    """Run every launch on the GPU; None when `--device` asks for the CPU, or for any and there is no GPU.

    Raises: TranslationError `no-gpu` when a kind of GPU is asked for by name and not there.
    """
    if a.device == "cpu":
        return None
    from gluonize.judge.device import runner

    driver = runner.find_driver(a.device)
    if driver is None:
        if a.device == "auto":
            if not verbosity.quiet:
                print(FALLING_BACK, file=sys.stderr)
            return None
        raise TranslationError(
            Diagnostic("no-gpu", f"no GPU found for --device {a.device}", help="use --device auto or cpu")
        )
    results, failed = [], False
    with WorkerPool(1, timeout=a.timeout) as pool, tempfile.TemporaryDirectory(prefix="gluonize-device-") as folder:
        for spec in specs:
            for row in rows:
                found, problems = _validate_one(pool, a, spec, row.name, driver.api, folder, runner)
                print_diagnostics(problems)
                if found["status"] != "validated":
                    said = {"status": found["status"], "reason": found.get("reason") or found.get("numbers", "")}
                    annotations += errors(problems or of_validation(f"{spec.kernel} ({spec.id})", said, a.out))
                failed |= found["status"] != "validated"
                if not verbosity.quiet and a.json != "-" and "numbers" in found:
                    _show(found, rich_console(verbosity, sys.stdout if a.format == "text" else sys.stderr), runner)
                head = {"id": spec.id, "kernel": spec.kernel, "target": row.name, "status": found["status"]}
                results.append(head | {"validation": found, "diagnostics": [d.as_json() for d in problems]})
    if a.json:
        write_json(a.json, results)
    return exit_status.CHECK_FAILED if failed else exit_status.DONE


def _show(found: dict, console, runner) -> None:
    console.print(runner.show(found), markup=False)
    if ratio := found.get("bench", {}).get("ratio"):
        console.print(f"  time of the translation relative to the source's: {ratio}", markup=False)


def _validate_one(pool, a, spec, target: str, api: str, folder: str, runner) -> tuple[dict, tuple[Diagnostic, ...]]:
    from gluonize.judge.device.bundles.build import BundleRequest, build_bundle

    request = BundleRequest(a.source, a.out, spec, target, api, False, source_folders(a.source), a.import_hosts)
    try:
        built = build_bundle(pool, request)
    except TranslationError as error:
        return {"status": "not_runnable", "reason": str(error)}, error.diagnostics
    except InternalError as error:
        problem = Diagnostic("internal-error", "a bug in gluonize while bundling", why=str(error))
        return {"status": "not_runnable", "reason": str(error)}, (problem,)
    path = os.path.join(folder, "bundle.zip")
    with open(path, "wb") as file:
        file.write(built.content)
    # A re-targeted kernel's time says nothing about the target.
    result = runner.run_bundle(path, api, timed=runner.TIMED_RUNS if api == "hip" else 0)
    if api == "hip":
        result["bench"] = times(result, runner.Bundle(path).manifest)
    return result | {"status": status_of(result)}, ()


def status_of(result: dict) -> str:
    """`validated` when the numbers match and no hazard was found; where no sanitizer exists, numbers alone decide."""
    if result["numbers"].startswith("differ") or result["hazards"].startswith("found"):
        return "mismatch"
    return (
        "validated"
        if result["numbers"].startswith("match") and result["hazards"] in ("none found", "not run")
        else "not_runnable"
    )
