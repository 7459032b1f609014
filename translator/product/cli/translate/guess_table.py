"""How launches that were guessed are shown: one table per kernel, and the line that corrects them."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Iterable, Iterator

from gluonize.product.project.output.file import write_whole
from gluonize.read.launches.table import Derivation
from gluonize.read.spec.launch import VERSION, LaunchSpec
from gluonize.request import LaunchOutcome

_WHY = 60
_SAID = 100  # characters in one line of a reason that is said whole
_NAMES = 60  # characters of names in one line
_PASTED = 96  # characters of a line that is there to be pasted


def table_lines(derivation: Derivation) -> Iterator[str]:
    """One kernel's guesses: value, confidence and why; equal ones share a line. Nothing where nothing was guessed."""
    together: dict[tuple[str, str, str], list[str]] = {}
    for row in derivation.guesses:
        together.setdefault((row.value, row.confidence, _short(row.why)), []).append(row.name)
    if not together:
        return
    count = len(derivation.launches)
    yield f"{derivation.kernel}: guessed, {count} launch{'es' if count > 1 else ''}"
    rows = [
        (part, *(key if first else ("", "", "")))
        for key, names in together.items()
        for first, part in _wrapped(", ".join(names))
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        yield ("  " + "  ".join(text.ljust(width) for text, width in zip(row, widths)) + f"  {row[3]}").rstrip()
    for text in derivation.others:
        if text:
            yield f"  also: {text}"


def correction_lines(derivations: Iterable[Derivation]) -> list[str]:
    """The guesses that nothing computes, as arguments to paste and change: lines that a shell takes as one command."""
    lines: list[str] = []
    for derivation in derivations:
        line = ""
        for row in derivation.guesses:
            if row.confidence == "computed":
                continue
            word = f"--set {shlex.quote(f'{derivation.kernel}.{row.name}={row.value}')}"
            if line and len(line) + len(word) > _PASTED:
                lines.append(line)
                line = ""
            line += f"{' ' * bool(line)}{word}"
        lines += [line] * bool(line)
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def missing_lines(outcomes: Iterable[LaunchOutcome]) -> Iterator[str]:
    """Kernels for which no launch was found, with the reason, and what to do."""
    rows = [
        (o.spec.kernel, o.diagnostics[0])
        for o in outcomes
        if o.diagnostics and o.diagnostics[0].code == "spec-not-found"
    ]
    if not rows:
        return
    yield "no launch was found for"
    width = max(len(name) for name, _ in rows)
    for name, found in rows:
        said = textwrap.wrap(f"line {found.line}: {found.why}", _SAID, break_long_words=False, break_on_hyphens=False)
        yield f"  {name.ljust(width)}  {said[0]}"
        yield from (f"  {' ' * width}  {more}" for more in said[1:])
    for help in dict.fromkeys(found.help for _, found in rows if found.help):
        yield f"  {', '.join(name for name, found in rows if found.help == help)}: {help}"


def write_launches(path: str, derivations: Iterable[Derivation], given: Iterable[LaunchSpec] = ()) -> None:
    """The launches as a launch file, ready to be edited. Raises: TranslationError `output-unwritable`."""
    specs = [*given, *(spec for derivation in derivations for spec in derivation.launches)]
    unique = {spec.id: spec.as_json() for spec in specs}
    write_whole(path, json.dumps({"version": VERSION, "launches": list(unique.values())}, indent=2) + "\n")


def _wrapped(names: str) -> Iterator[tuple[bool, str]]:
    """The lines of a list of names, each with whether it is the first."""
    for number, line in enumerate(textwrap.wrap(names, _NAMES, break_long_words=False)):
        yield not number, line


def _short(text: str) -> str:
    return text if len(text) <= _WHY else text[: _WHY - 3] + "..."
