"""Kernels in Triton's cache: a folder for each, with its modules and a JSON file of how it was compiled."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError

_SHAPE = re.compile(r"tensor<((?:\d+x)+)")
_TARGET = re.compile(r'ttg\.target = "(?:hip:)?([^"]*)"')


@dataclass(frozen=True)
class Entry:
    """One compiled kernel. path: of its last TTGIR. options: how it was compiled. made: seconds since the epoch."""

    kernel: str
    path: Path
    options: dict[str, Any]
    made: float

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def about(self) -> tuple[str, str]:
        """Its target, and the shape of the largest tensor: the tile."""
        text = self.text
        shapes = {tuple(map(int, shape.rstrip("x").split("x"))) for shape in _SHAPE.findall(text)}
        largest = max(shapes, key=lambda shape: (_size(shape), shape), default=())
        return target_of(text) or "?", "x".join(map(str, largest))


def target_of(text: str) -> str | None:
    """The architecture that a module of TTGIR is for."""
    found = _TARGET.search(text)
    return found.group(1) if found else None


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size


def entries(folder: str, kernel: str = "") -> list[Entry]:
    """The kernels of a cache that Triton made, not Gluon, by name, the newest first. kernel: those of this name alone.

    Raises: TranslationError `raise-cache` where there is no such folder.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise TranslationError(Diagnostic("raise-cache", "there is no such folder", str(root)))
    found = []
    for path in sorted(root.glob("*/*.ttgir")):
        if (kernel and path.stem != kernel) or not path.with_suffix(".ttir").exists():
            continue
        told = path.with_suffix(".json")
        try:
            options = json.loads(told.read_text(encoding="utf-8")) if told.exists() else {}
            made = path.stat().st_mtime
        except (OSError, ValueError):
            continue  # it is being written, or another process has removed it
        found.append(Entry(path.stem, path, options, made))
    return sorted(found, key=lambda entry: (entry.kernel, -entry.made, entry.path))
