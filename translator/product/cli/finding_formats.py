"""`--format`: what a command finds, as text for people or in one of the other forms that `FORMATS` has."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.product.cli.formats import FORMATS
from gluonize.product.project.checks.validation_findings import unvalidated
from gluonize.product.project.output.file import STANDARD_OUTPUT
from gluonize.product.review.annotations import Annotation, errors, from_root, repository_root

if TYPE_CHECKING:
    from gluonize.product.project.translate.run import CheckedLaunch, FileReport


def check_format(format: str, json: str | None) -> None:
    """Refuse an unknown format, and two machine-readable outputs on standard output."""
    if format not in FORMATS:
        found = Diagnostic("usage", f"--format {format}: no such format", help=f"one of {', '.join(FORMATS)}")
        raise TranslationError(found)
    if format != "text" and json == STANDARD_OUTPUT:
        found = Diagnostic("usage", "--json and --format both go to standard output", help="give --json FILE.json")
        raise TranslationError(found)


@contextmanager
def reported(format: str, json: str | None = None) -> Iterator[list[Annotation]]:
    """Collect annotations and print them in `format` at the end, a refusal that ends the command among them.

    Raises: TranslationError for an unknown format.
    """
    check_format(format, json)
    found: list[Annotation] = []
    try:
        yield found
    except TranslationError as error:
        print_annotations(format, [*found, *errors(error.diagnostics)])
        raise
    print_annotations(format, found)


def print_annotations(format: str, found: Sequence[Annotation]) -> None:
    """On standard output; nothing for `text`, whose diagnostics were printed as they were found."""
    module, _, writer = FORMATS[format].writer.partition(":")
    if writer:
        sys.stdout.write(getattr(importlib.import_module(module), writer)(from_root(found, repository_root())))
        sys.stdout.flush()


def of_report(report: FileReport) -> Iterator[Annotation]:
    """What `translate` found for one output file: errors, what was not validated, where it is worse than Triton's."""
    yield from errors(report.diagnostics)
    for launch in report.launches:
        if launch.status != "passed-over":
            yield from errors(launch.diagnostics)
            yield from _of_launch(launch, report)


def _of_launch(launch: CheckedLaunch, report: FileReport) -> Iterator[Annotation]:
    file = report.output or report.planned.request.source
    name = f"{launch.outcome.spec.kernel} ({launch.outcome.spec.id})"
    if launch.validation["status"] == "not_runnable":
        yield Annotation("warning", unvalidated(name, launch.validation, file))
    for regression in launch.worse:
        message = f"{name} is worse than Triton's own compile on {report.planned.request.target}: {regression}"
        yield Annotation("note", Diagnostic("worse-than-triton", message, file))
