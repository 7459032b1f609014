"""Findings with the weight that a reviewer's tool gives them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from gluonize.diagnostics import Diagnostic

LEVELS = ("error", "warning", "note")  # in SARIF's words


@dataclass(frozen=True)
class Annotation:
    """One finding. level: `error` fails a check, `warning` says what was not looked at, `note` is worth knowing."""

    level: str
    found: Diagnostic

    def __post_init__(self):
        assert self.level in LEVELS, f"bug in gluonize: {self.level} is not in {LEVELS}"


def errors(diagnostics: Iterable[Diagnostic]) -> list[Annotation]:
    """Diagnostics of what failed or was refused."""
    return [Annotation("error", found) for found in diagnostics]


def from_root(annotations: Iterable[Annotation], root: str) -> tuple[Annotation, ...]:
    """The annotations with their files as paths below `root` with `/`; files elsewhere keep an absolute path. What has one code and one
    place is one annotation, as that of several launches or targets."""

    def placed(path: str) -> str:
        if not path:
            return ""
        inside = os.path.relpath(os.path.realpath(path), os.path.realpath(root))
        return os.path.realpath(path) if inside.startswith(os.pardir) else inside.replace(os.sep, "/")

    top = os.path.join(os.path.realpath(root), "")
    out: dict[tuple, Annotation] = {}
    for annotation in annotations:
        f = annotation.found
        told = {name: getattr(f, name).replace(top, "") for name in ("message", "why", "help")}
        found = replace(f, file=placed(f.file), **told)
        # What has no place of its own is told apart by its words.
        key = annotation.level, found.code, found.file, found.line, "" if found.line else found.message
        first = out.setdefault(key, replace(annotation, found=found))
        if first.found.message != found.message and found.message not in first.found.why.split("\n"):
            why = "\n".join(filter(None, [first.found.why, found.message]))
            out[key] = replace(first, found=replace(first.found, why=why))
    return tuple(out.values())


def repository_root(start: str = os.curdir) -> str:
    """The folder of the repository around `start`, from which hosts count paths; `start` itself outside of one."""
    folder = os.path.realpath(start)
    while not os.path.exists(os.path.join(folder, ".git")):
        if folder == os.path.dirname(folder):
            return os.path.realpath(start)
        folder = os.path.dirname(folder)
    return folder


def message_of(found: Diagnostic) -> str:
    """The message with its reason and its way out, a line each."""
    lines = [found.message]
    lines += [f"why: {found.why}"] if found.why else []
    lines += [f"do: {found.help}"] if found.help else []
    return "\n".join(lines)
