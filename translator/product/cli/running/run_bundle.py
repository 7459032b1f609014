"""`gluonize run-bundle`: execute a bundle on the GPU of this machine, as `python FILE.zip` does."""

from __future__ import annotations

import os
import zipfile

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.product.cli import exit_status
from gluonize.product.project.output.overwrite import check_json


def run_run_bundle(
    path: str, device: str, planted: bool, runs: int, timed: int, json: str | None, timeout: float
) -> int:
    """The runner's exit status: 0 numbers match and nothing was found, 1 not so, 2 nothing could be run."""
    from gluonize.judge.device import runner

    if not os.path.isfile(path) or not zipfile.is_zipfile(path):
        help = "gluonize bundle OUT -k KERNEL -t TARGET -l LAUNCHES -o FILE.zip writes one"
        raise TranslationError(Diagnostic("bundle-unreadable", "it is no bundle", path, help=help))
    check_json(json)
    # The runner travels alone in bundles too, and has a command line of its own there.
    words = [path, f"--device={device}", f"--runs={runs}", f"--timed={timed}", f"--timeout={timeout}"]
    words += ["--planted"] * planted + ([f"--json={json}"] if json else [])
    status = runner.main(words)
    return {0: exit_status.DONE, 1: exit_status.CHECK_FAILED}.get(status, exit_status.REFUSED)
