"""Findings as workflow commands of GitHub Actions, which become annotations on the lines of a pull request.

Source: GitHub Docs, "Workflow commands for GitHub Actions": `::error file=,line=,col=,title=::message`, with `%`, line ends,
and in properties `:` and `,` quoted by their codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gluonize.product.review.annotations import Annotation, message_of

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def workflow_text(annotations: Iterable[Annotation]) -> str:
    """The commands, one to a line."""
    return "".join(f"{line}\n" for line in workflow_commands(annotations))


def workflow_commands(annotations: Iterable[Annotation]) -> Iterator[str]:
    """`Annotation("error", Diagnostic("offset-range", "no bound", "a.py", 9, 5))` -> `::error file=a.py,line=9,col=5,...`."""
    for annotation in annotations:
        found = annotation.found
        fields = {"file": found.file, "line": found.line, "col": found.column, "title": f"gluonize: {found.code}"}
        properties = ",".join(f"{name}={_property(str(value))}" for name, value in fields.items() if value)
        yield f"::{_COMMANDS[annotation.level]} {properties}::{_data(message_of(found))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
