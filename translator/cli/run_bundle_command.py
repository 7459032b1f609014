"""`gluonize run-bundle`: execute a bundle on the GPU of this machine, as `python FILE.zip` does."""

from __future__ import annotations

import os
import zipfile

from translator.cli import exit_status
from translator.cli.console import Verbosity
from translator.diagnostics import Diagnostic, TranslationError


def run_run_bundle(arguments: list[str], verbosity: Verbosity) -> int:
    """The runner's own options and exit status: 0 numbers match and nothing was found, 1 not so, 2 nothing could be run."""
    from translator.device import runner

    files = [argument for argument in arguments if not argument.startswith("-") and argument.endswith(".zip")]
    if {"-h", "--help"} & set(arguments):
        runner.main(["--help"])  # prints and exits with status 0
    if len(files) != 1:
        raise TranslationError(
            Diagnostic("usage", "gluonize run-bundle FILE.zip [--device auto|hip|cuda] [--json FILE]")
        )
    if not os.path.isfile(files[0]) or not zipfile.is_zipfile(files[0]):
        raise TranslationError(Diagnostic("bundle-unreadable", "it is no bundle", files[0]))
    status = runner.main(arguments)
    return {0: exit_status.DONE, 1: exit_status.CHECK_FAILED}.get(status, exit_status.REFUSED)
