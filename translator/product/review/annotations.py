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
    """Each annotation once, its file as a path below `root` with `/`; files elsewhere keep an absolute path."""

    def placed(path: str) -> str:
        if not path:
            return ""
        inside = os.path.relpath(os.path.realpath(path), os.path.realpath(root))
        return os.path.realpath(path) if inside.startswith(os.pardir) else inside.replace(os.sep, "/")

    return tuple(
        dict.fromkeys(replace(a, found=replace(a.found, file=placed(a.found.file))) for a in annotations)
    )  # fmt: skip


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
