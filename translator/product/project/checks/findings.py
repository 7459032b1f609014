"""What `gluonize check` found, as annotations on lines of the generated files."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence

from gluonize.diagnostics import Diagnostic
from gluonize.product.project.cache.translation import source_file
from gluonize.product.project.checks.check import FileState, conflict_lines, fails
from gluonize.product.project.checks.validation import ValidatedLaunch
from gluonize.product.project.checks.validation_findings import of_validation
from gluonize.product.project.output.provenance import without_line
from gluonize.product.review.annotations import Annotation, errors

_MESSAGES = {
    "edited": "it was edited by hand",
    "outdated": "it is not what its source and launches give",
    "conflicts": "it has conflicts that nobody resolved",
    "missing": "it does not exist",
}
_HELP = {
    "edited": 'gluonize update keeps the edits; they are fine with --allow-edits, or edits = "allow" in the configuration',
    "outdated": "gluonize update",
    "conflicts": "resolve them, and take the marks out",
    "missing": "gluonize update",
}


Origins = Callable[
    [str, str], Sequence[Sequence[int]]
]  # of a source and a translation: for each line of this the lines of that


def of_state(state: FileState, allow_edits: bool, origins: Origins) -> Iterator[Annotation]:
    """A file that is not current, at the first line that differs, or at that of its source where that changed; a missing one at its
    source; a refusal where it is."""
    yield from errors(state.diagnostics)
    if state.state not in _MESSAGES or not fails(state, allow_edits):
        return
    why = "; ".join(state.reasons)
    why = "" if why == _MESSAGES[state.state] else why
    file, message = state.file.output, _MESSAGES[state.state]
    if state.state == "missing":
        file, message = state.file.source, f"its translation for {state.file.target}, {file}, does not exist"
    line = _first_line(state)
    if state.state == "outdated" and (place := _source_place(state, origins)) is not None:
        message = f"its translation for {state.file.target}, {file}:{line}, is not what it gives"
        file, line = place
    found = Diagnostic(f"generated-{state.state}", message, file, line, 0, why, _HELP[state.state])
    yield Annotation("error", found)


def of_launches(state: FileState, launches: Sequence[ValidatedLaunch]) -> list[Diagnostic]:
    """What running a generated file found against it."""
    return [
        found
        for launch in launches
        for found in of_validation(f"{launch.spec.kernel} ({launch.spec.id})", launch.found, state.file.output)
    ]


def _source_place(state: FileState, origins: Origins) -> tuple[str, int] | None:
    """The line of a source from which the first line comes that its translation should have; None where that is of no line."""
    path = source_file(state.file.source, ())
    if path is None or f"{state.file.source} changed" not in state.reasons:
        return None
    expected = state.expected.splitlines()
    matcher = difflib.SequenceMatcher(None, state.found.splitlines(), expected, autojunk=False)
    new = [at for tag, _, _, at, end in matcher.get_opcodes() if tag != "equal" for at in range(at, end)]
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = origins(file.read(), state.expected)
    code = (at for at in new if expected[at].strip() and not expected[at].lstrip().startswith("#"))
    return next(((path, lines[at][0]) for at in code if lines[at]), None)


def _first_line(state: FileState) -> int:
    """The first line of the file that is not as expected, or that starts a conflict; 0 for a file that is not there."""
    if state.state == "missing":
        return 0
    with open(state.file.output, encoding="utf-8", errors="replace", newline="") as file:
        text = file.read().replace("\r\n", "\n")
    if state.state == "conflicts":
        return min(conflict_lines(text), default=0)
    bare = without_line(text).splitlines()
    opcodes = difflib.SequenceMatcher(None, bare, state.expected.splitlines(), autojunk=False).get_opcodes()
    starts = [at for tag, at, _, _, _ in opcodes if tag != "equal"]
    if not starts:
        return 0
    # A comment may only quote the source's digest: code says more.
    first = next((at for at in starts if not "".join(bare[at : at + 1]).lstrip().startswith("#")), starts[0])
    return 1 + min(first, len(bare) - 1) + _header_lines_before(text, bare, first)


def _header_lines_before(text: str, bare: Sequence[str], line: int) -> int:
    """Lines that `without_line` takes out of the text before its bare line `line`."""
    lines = text.splitlines()
    same = next((i for i, (a, b) in enumerate(zip(lines, bare)) if a != b), len(bare))
    return len(lines) - len(bare) if line >= same else 0
