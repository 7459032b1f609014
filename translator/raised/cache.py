"""Kernels in Triton's cache: a folder for each, with its modules and a JSON file of how it was compiled."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError

_SHAPE = re.compile(r"tensor<((?:\d+x)+)")
_POINTER = re.compile(r"!tt\.ptr<(\w+)>")
_TARGET = re.compile(r'ttg\.target = "(?:hip:)?([^"]*)"')


@dataclass
class Entry:
    """One compiled kernel. path: of its last TTGIR. options: how it was compiled. made: seconds since the epoch."""

    kernel: str
    path: Path
    options: dict[str, Any]
    made: float

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def target(self) -> str:
        return target_of(self.text) or "?"

    @property
    def tile(self) -> str:
        """The shape of the largest tensor."""
        shapes = {tuple(map(int, shape.rstrip("x").split("x"))) for shape in _SHAPE.findall(self.text)}
        return "x".join(map(str, max(shapes, key=lambda shape: (math.prod(shape), shape), default=())))

    @property
    def pointers(self) -> str:
        """What its pointers point to, each type once."""
        head = self.text.partition("tt.func public")[2].partition("\n")[0]
        return " ".join(dict.fromkeys(_POINTER.findall(head)))


def target_of(text: str) -> str | None:
    """The architecture that a module of TTGIR is for."""
    found = _TARGET.search(text)
    return found.group(1) if found else None


def entries(folder: str) -> list[Entry]:
    """The kernels of a cache that Triton made, not Gluon, by name, the newest first.

    Raises: TranslationError `raise-cache` where there is no such folder.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise TranslationError(Diagnostic("raise-cache", "there is no such folder", str(root)))
    found = []
    for path in sorted(root.rglob("*.ttgir")):
        if not path.with_suffix(".ttir").exists():
            continue
        told = path.with_suffix(".json")
        try:
            options = json.loads(told.read_text(encoding="utf-8")) if told.exists() else {}
            made = path.stat().st_mtime
        except (OSError, ValueError):
            continue  # it is being written, or another process has removed it
        found.append(Entry(path.stem, path, options, made))
    return sorted(found, key=lambda entry: (entry.kernel, -entry.made, entry.path))
