"""Where text goes: results to standard output, diagnostics and progress to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
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
