"""Diagnostics: every refusal names the place, the construct, why, and what to do."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Diagnostic:
    """One refusal or error, located in the user's file.

    `code` is a short stable identifier such as `spec-missing` or `offset-range`; `line` and `column` count from 1
    (0 when the whole file is meant).
    """

    code: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    why: str = ""
    help: str = ""

    def render(self, source: str | None = None) -> str:
        """`file:line:col: message [code]`, the source line with a caret, then `why:` and `do:`."""
        place = ":".join(str(part) for part in (shown(self.file), self.line, self.column) if part)
        out = [f"{place + ': ' if place else ''}{self.message} [{self.code}]"]
        lines = source.splitlines() if source else []
        if 0 < self.line <= len(lines):
            out.append(f"{self.line:5d} | {lines[self.line - 1]}")
            if self.column:
                out.append(" " * 5 + " | " + " " * (self.column - 1) + "^")
        if self.why:
            out.append(f"  why: {self.why}")
        if self.help:
            out.append(f"  do:  {self.help}")
        return "\n".join(out)

    def as_json(self) -> dict:
        return asdict(self)


def shown(path: str) -> str:
    """A path for people: relative where it is below the working folder."""
    if not path:
        return path
    path = os.path.normpath(path)
    inside = os.path.relpath(path)
    return path if inside.startswith(os.pardir) else inside


def nearest(word: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """The name that a word was probably meant to be, in whatever case, or the one that it begins; empty where none is near."""
    names = list(dict.fromkeys(names))
    lower = [name.lower() for name in names]
    found = difflib.get_close_matches(word.lower(), lower, 1, cutoff)
    parts = set(re.split(r"[\W_]+", word.lower()))
    having = [name for name in lower if len(parts) > 1 and parts <= set(re.split(r"[\W_]+", name))]
    found = having if len(having) == 1 else found
    begun = [name for name in lower if len(word) > 2 and name.startswith(word.lower())]
    found = found or (begun if len(begun) == 1 else [])
    return names[lower.index(found[0])] if found else ""


def did_you_mean(word: str, names: Iterable[str], otherwise: str = "") -> str:
    """`did you mean NAME?` with the name that a word was probably meant to be; `otherwise` where none is near."""
    near = nearest(word, names)
    return f"did you mean {near}?" if near else otherwise


class TranslationError(Exception):
    """What cannot be translated correctly; carries all diagnostics that were found."""

    def __init__(self, *diagnostics: Diagnostic):
        super().__init__("\n".join(d.render() for d in diagnostics))
        self.diagnostics = tuple(diagnostics)


class ClusterLost(Exception):
    """The machines that do the work are gone, or not fit for it: the run ends, and the same command goes on with it."""

    def __init__(self, diagnostic: Diagnostic):
        super().__init__(diagnostic.render())
        self.diagnostic = diagnostic


class InternalError(Exception):
    """A bug in gluonize itself; the CLI asks the user to report it (exit status 3)."""
