"""A row: one name of Triton's that the tool uses, and where each version has it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.rules.gluon import at_version
from gluonize.versions import triton_version

# A module that moved with all that is in it: (where it was, first version, where that has it). One row for all names in it.
MOVED: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Row:
    """name: what the tool calls it. at: `module`, or `module:attribute`. use: what for. spelled: (first version, place) where it is
    elsewhere, "" where it is nowhere, as in `rules/gluon.py`."""

    name: str
    at: str
    use: str
    spelled: tuple[tuple[str, str], ...] = ()

    def place(self, version: str) -> str:
        module, colon, attribute = at_version(version, self.spelled, self.at).partition(":")
        for was, since, now in MOVED:
            if module == was or module.startswith(f"{was}."):
                module = at_version(version, ((since, now),), was) + module[len(was) :]
        return module + colon + attribute

    def load(self) -> Any:
        """What it names in the installed Triton. Raises: TranslationError `triton-version` where that has it nowhere."""
        version = triton_version()
        module, _, attribute = self.place(version).partition(":")
        try:
            found = importlib.import_module(module) if module else None
            if found is None:
                raise AttributeError(self.name)
            return getattr(found, attribute) if attribute else found
        except (ImportError, AttributeError) as error:
            if isinstance(error, ModuleNotFoundError) and error.name == "triton":
                raise
            message = f"Triton {version} has no {self.at.replace(':', '.')}"
            why = f"needed: {self.use} ({error})"  # what is missing may be what the module itself imports
            help = "use a Triton that gluonize is made for (gluonize doctor), or give the row in translator/triton_api its new place"
            raise TranslationError(Diagnostic("triton-version", message, why=why, help=help)) from error


def place_in(rows: Iterable[Row], name: str, version: str) -> tuple[str, str]:
    """The module and the attribute that a row names in a Triton: what an output for it imports."""
    module, _, attribute = next(row for row in rows if row.name == name).place(version).partition(":")
    return module, attribute


def names_of(module: str, rows: Iterable[Row]) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose names are rows, each loaded once."""
    known = {row.name: row for row in rows}

    def load(name: str) -> Any:
        if name not in known:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = known[name].load()
        importlib.import_module(module).__dict__[name] = found
        return found

    return load


__all__ = ["Row", "names_of", "place_in"]
