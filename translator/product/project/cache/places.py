"""Folders that are called otherwise on another machine, and what stands for them in what several machines share."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

# The package's own folder.
PACKAGE = Path(__file__).resolve().parents[3]
# Characters of Unicode's private use area: no path and no source has them.
_OPEN, _CLOSE = "\ue000", "\ue001"


@dataclass(frozen=True)
class Places:
    """(folder, name) of the folders that have a name, those inside of others first."""

    named: tuple[tuple[str, str], ...]

    @classmethod
    def here(cls) -> Places:
        """The working folder, gluonize, and the Python that runs it; a folder near the root has no name of its own."""
        found = {os.getcwd(): "work", str(PACKAGE.parent): "gluonize"}
        found |= {sys.prefix: "python", sys.base_prefix: "base"} | found
        named = [(folder, f"{_OPEN}{name}{_CLOSE}") for folder, name in found.items() if folder.count(os.sep) > 1]
        return cls(tuple(sorted(named, key=lambda item: -len(item[0]))))

    def portable(self, path: str) -> str:
        """A path with the name of the folder that it is in."""
        for folder, name in self.named:
            if path == folder or path.startswith(folder + os.sep):
                return name + path[len(folder) :]
        return path

    def local(self, path: str) -> str:
        """The inverse of `portable`."""
        if not path.startswith(_OPEN):
            return path
        name, _, rest = path.partition(_CLOSE)
        return next((folder + rest for folder, own in self.named if own == name + _CLOSE), path)

    def portable_text(self, text: str) -> str:
        """A text, for a key, with names for the folders wherever they stand in it."""
        for folder, name in self.named:
            text = text.replace(folder + os.sep, name + os.sep).replace(f"{folder}'", f"{name}'")
        return text

    def mentioned_in(self, payload: bytes) -> bool:
        """Whether a value names one of the folders, so that it is only good where they are the same."""
        return any(folder.encode() in payload for folder, _ in self.named)

    @property
    def folders(self) -> tuple[str, ...]:
        return tuple(folder for folder, _ in self.named)
