"""Findings of checks as the protocol's diagnostics, by file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from lsprotocol import types

from gluonize.product.editor.made import Made
from gluonize.product.review.annotations import Annotation, message_of

_SEVERITY = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
# While someone edits a file by hand, that it was edited is no error.
_MILD = {"generated-edited": types.DiagnosticSeverity.Information, "not-validated": types.DiagnosticSeverity.Warning}


def by_file(made: Iterable[Made], broken: Mapping[str, Sequence[Annotation]] = {}) -> dict[str, list[types.Diagnostic]]:
    """Path -> what the checks of all of these generated files say of that file, each once. broken: files whose own text cannot be read."""
    out: dict[str, list[types.Diagnostic]] = {}
    every = [(path, found) for path, found in broken.items()]
    every += [(one.output, [*one.findings, *one.validated]) for one in made]
    for home, found_there in every:
        for annotation in dict.fromkeys(found_there):
            path = os.path.realpath(annotation.found.file or home)
            found = _diagnostic(annotation, path)
            if found not in out.setdefault(path, []):
                out[path].append(found)
    return out


def _diagnostic(annotation: Annotation, path: str) -> types.Diagnostic:
    found = annotation.found
    line = max(0, found.line - 1)
    text = _line(path, line)
    start = max(0, found.column - 1) or len(text) - len(text.lstrip())
    return types.Diagnostic(
        range=types.Range(types.Position(line, _units(text[:start])), types.Position(line, _units(text))),
        message=message_of(found),
        severity=_MILD.get(found.code, _SEVERITY[annotation.level]),
        code=found.code,
        source="gluonize",
    )


def _units(text: str) -> int:
    """Columns as the protocol counts them unless it is told otherwise: in units of UTF-16."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _line(path: str, line: int) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return next((text.rstrip("\n") for n, text in enumerate(file) if n == line), "")
    except OSError:
        return ""
