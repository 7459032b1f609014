"""Where text goes: results to standard output, diagnostics and progress to standard error."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from gluonize.diagnostics import Diagnostic, TranslationError

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Verbosity:
    """Global flags: quiet prints diagnostics only; verbose also prints every choice; color is auto, always or never."""

    verbose: bool = False
    quiet: bool = False
    color: str = "auto"


def rich_console(verbosity: Verbosity, file: TextIO | None = None) -> Console:
    """A rich console on `file` (standard output); color follows --color, NO_COLOR and whether it is a terminal."""
    from rich.console import Console

    file = file or sys.stdout
    never = verbosity.color == "never" or (verbosity.color == "auto" and bool(os.environ.get("NO_COLOR")))
    return Console(
        file=file,
        no_color=never,
        force_terminal=True if verbosity.color == "always" else None,
        color_system=None if never else "standard" if verbosity.color == "always" else "auto",
        highlight=False,
        soft_wrap=not file.isatty(),
        # A table in a file or a pipe should not be cut at 80 columns.
        width=None if file.isatty() else 200,
    )


@contextlib.contextmanager
def progress(what: str, total: int, verbosity: Verbosity) -> Iterator[Callable[[], None]]:
    """A bar on standard error while it is a terminal, with the time that has passed; -> what says that one more of `total` is done.

    One thing alone has a bar that only moves: that something is going on is what the reader has to know.
    """
    if not total or not sys.stderr.isatty() or verbosity.quiet:
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    counted = [MofNCompleteColumn()] if total > 1 else []
    columns = [TextColumn("{task.description}"), BarColumn(), *counted, TimeElapsedColumn()]
    with Progress(*columns, console=rich_console(verbosity, sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=total if total > 1 else None)
        yield lambda: bar.advance(task)


def print_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Every diagnostic on standard error, with the source line it points at; repetitions once."""
    for found in dict.fromkeys(diagnostics):
        print(found.render(_source_of(found)), file=sys.stderr)


def _source_of(found: Diagnostic) -> str | None:
    if not found.file or not found.line:
        return None
    from gluonize.read.files.modules import parse_file

    try:
        return parse_file(found.file).text
    except TranslationError:
        try:
            with open(found.file, encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return None
