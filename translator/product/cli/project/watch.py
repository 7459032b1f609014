"""`gluonize watch`: generated files follow their sources while those are edited."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence

from gluonize.diagnostics import TranslationError
from gluonize.product.cli import exit_status
from gluonize.product.cli.console import Verbosity, print_diagnostics, rich_console
from gluonize.product.cli.project.check import nothing_found, project_files
from gluonize.product.cli.project.update import run_update
from gluonize.product.project.cache.translation import source_file
from gluonize.product.project.files.config import find_config
from gluonize.product.project.files.planned import ProjectFile
from gluonize.product.project.output.provenance import read_generated
from gluonize.product.project.translate.plan import TranslateOptions

Stamps = dict[str, tuple[int, int] | None]  # path -> time of change and size, None where there is no file


def run_watch(
    paths: Sequence[str], config: str | None, options: TranslateOptions, every: float, once: bool, verbosity: Verbosity
) -> int:
    """Update what is behind, then again after each save; with `once` the status of the first update that a save led to.

    Hand edits are merged as `gluonize update` does. What is refused is printed and tried again after the next save.
    """
    files = project_files(paths, config, options.search)
    if not files:
        raise nothing_found(paths)
    console = rich_console(verbosity)
    seen = _stamps(files, config)  # before the update: what is saved while it runs counts as a change
    _update(paths, config, options, verbosity)
    if not verbosity.quiet:
        console.print(f"watching {len(seen)} files; Ctrl-C ends it")
    while True:
        time.sleep(every)
        now = _stamps(files, config)
        changed = sorted(path for path in now.keys() | seen.keys() if now.get(path) != seen.get(path))
        if not changed:
            continue
        seen = now
        if not verbosity.quiet:
            console.print(f"{', '.join(map(os.path.relpath, changed))} changed", markup=False)
        status = _update(paths, config, options, verbosity)
        files = _files(paths, config) or files
        # A file that the update wrote was not saved by anyone; a new import is watched from now on.
        seen = {path: seen.get(path, stamp) for path, stamp in _stamps(files, config).items()}
        if once:
            return status


def _update(paths: Sequence[str], config: str | None, options: TranslateOptions, verbosity: Verbosity) -> int:
    try:
        return run_update(paths, config, options, verbosity)
    except TranslationError as error:
        print_diagnostics(error.diagnostics)
        return exit_status.REFUSED


def _files(paths: Sequence[str], config: str | None) -> tuple[ProjectFile, ...]:
    """The project's files now; none while its configuration is half written."""
    try:
        return project_files(paths, config)
    except TranslationError:
        return ()


def _stamps(files: Iterable[ProjectFile], config: str | None) -> Stamps:
    """Every file that the outputs are made from, the configuration too."""
    watched: set[str] = set(filter(None, [config or find_config()]))
    for file in files:
        watched |= set(filter(None, [source_file(file.source, ()), file.launches]))
        if generated := read_generated(file.output):
            watched |= set(file.used(generated.provenance))
    return {path: _stamp(path) for path in sorted(map(os.path.abspath, watched))}


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
