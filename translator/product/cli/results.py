"""The JSON that `--json` writes: one object per launch and target, in input order. Schema: `results.schema.json`."""

from __future__ import annotations

import json
import sys

from gluonize.product.project.output.file import STANDARD_OUTPUT, write_whole
from gluonize.product.project.translate.run import FileReport

VERSION = 1


def write_json(destination: str, results: list[dict]) -> None:
    """Write results to a file, whole or not at all, or to standard output for `-`."""
    text = json.dumps({"version": VERSION, "results": results}, indent=1, allow_nan=False) + "\n"
    if destination == STANDARD_OUTPUT:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_whole(destination, text)


def result_entries(report: FileReport) -> list[dict]:
    """The results of one output file: one per launch, or one for the file when it has no launches."""
    planned = report.planned
    shared = {
        "source": planned.request.source,
        "target": planned.request.target,
        "seconds": round(report.seconds, 4),
        "output": report.output,
        "notes": list(report.notes),
    }
    whole = [found.as_json() for found in report.diagnostics]
    if not report.launches:
        specs = planned.request.launches or (None,)
        kernel = ",".join(planned.request.kernels)
        return [
            {
                "id": spec.id if spec else planned.id,
                "kernel": spec.kernel if spec else kernel,
                "status": report.status,
                **shared,
                "diagnostics": whole,
                **_NO_CHECKS,
            }
            for spec in specs
        ]
    entries = []
    for checked in report.launches:
        # A launch of a file that could not be written has no output, whatever became of the launch itself.
        status = checked.status if report.output or checked.status != "translated" else report.status
        entries.append(
            {
                "id": checked.outcome.spec.id,
                "kernel": checked.outcome.spec.kernel,
                "status": status,
                **shared,
                "output": report.output if status == "translated" else None,
                "diagnostics": whole + [found.as_json() for found in checked.diagnostics],
                "choices": list(checked.outcome.choices),
                "assumptions": list(checked.outcome.assumptions),
                "kept_loops": [kept.as_json() for kept in checked.outcome.kept_loops],
                "metrics": checked.gluon.metrics.as_json() if checked.gluon else None,
                "triton": checked.triton.metrics.as_json() if checked.triton else None,
                "parity": checked.parity_json(),
                "validation": checked.validation,
                "host_launches": [
                    launch.as_json() for launch in report.host_launches if launch.kernel == checked.outcome.spec.kernel
                ],
            }
        )
    return entries


_NO_CHECKS = {
    "choices": [],
    "assumptions": [],
    "kept_loops": [],
    "metrics": None,
    "triton": None,
    "parity": None,
    "validation": {"status": "skipped"},
}
