"""Modules that are really imported (`--import`), each time from the file that is meant.

Python keeps a module by its name: another file of that name, or a changed one, would be taken for the one imported before.
"""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from typing import Any

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.evaluate.jit_function import GIVE_IT
from gluonize.read.files.modules import ModuleFile, find_module, module_of_path
from gluonize.triton_api.jit_functions import JITFunction

_Stamp = tuple[str, int, int]


@dataclass(frozen=True)
class _Imported:
    """What was imported of the files in `folder`: the path, time and size of each module as it was."""

    folder: str
    modules: dict[str, _Stamp]

    def is_stale(self, search_path: tuple[str, ...]) -> bool:
        """Whether one of the modules is another file now, or has changed."""
        return any(
            _stamp(stamp[0]) != stamp or _elsewhere(name, stamp[0], search_path) for name, stamp in self.modules.items()
        )


_imported: list[_Imported] = []


def import_kernel(file: ModuleFile, kernel: str, search_path: tuple[str, ...]) -> JITFunction:
    """The kernel of a file whose module is imported, with `search_path` before Python's own.

    Raises: TranslationError `source-import` where the import fails, or gives another file of this name; `kernel-missing`.
    """
    _forget_stale(search_path)
    added = tuple(folder for folder in search_path if folder not in sys.path)
    before = set(sys.modules)
    sys.path[:0] = added
    try:
        fn = imported_function(file.name, kernel, file.path)
    finally:
        for folder in added:
            sys.path.remove(folder)
        _remember(set(sys.modules) - before, (module_of_path(file.path)[1], *added))
    return fn


def imported_function(module: str, kernel: str, path: str = "") -> JITFunction:
    """The jit function of a module that is imported. path: the file that it has to be. Raises: TranslationError."""
    try:
        value: Any = importlib.import_module(module)
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
            raise
        raise _refused(module, f"{type(error).__name__}: {error}") from error
    if path and not _is_file(getattr(value, "__file__", None), path):
        found = getattr(value, "__file__", None) or "one of Python's own"
        raise _refused(module, f"Python has another module of this name: {found}", "rename the file, or ")
    for part in kernel.split("."):
        value = getattr(value, part, None)
    while value is not None and not isinstance(value, JITFunction):
        value = getattr(value, "fn", None)
    if value is None:
        raise TranslationError(Diagnostic("kernel-missing", f"{module} has no kernel named {kernel}"))
    return value


def _refused(module: str, why: str, instead: str = "") -> TranslationError:
    help = instead + GIVE_IT.replace(" or use --import", "")
    return TranslationError(Diagnostic("source-import", f"importing {module} fails", why=why, help=help))


def _remember(names: set[str], folders: tuple[str, ...]) -> None:
    """Note the modules of `folders` that an import has brought."""
    by_folder: dict[str, dict[str, _Stamp]] = {}
    for name in sorted(names):
        path = getattr(sys.modules.get(name), "__file__", None)
        folder = next((f for f in folders if path and path.startswith(os.path.join(f, ""))), None)
        if folder is not None and (stamp := _stamp(path)) is not None:
            by_folder.setdefault(folder, {})[name] = stamp
    _imported.extend(_Imported(folder, modules) for folder, modules in by_folder.items())


def _forget_stale(search_path: tuple[str, ...]) -> None:
    """Have Python import anew what of a folder was imported before and is not what its names mean now."""
    stale = {known.folder for known in _imported if known.is_stale(search_path)}
    for known in [known for known in _imported if known.folder in stale]:
        _imported.remove(known)
        for name in known.modules:
            sys.modules.pop(name, None)
    if stale:
        importlib.invalidate_caches()


def _stamp(path: str) -> _Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return path, found.st_mtime_ns, found.st_size


def _elsewhere(name: str, path: str, search_path: tuple[str, ...]) -> bool:
    """Whether a module is another file along a search path."""
    found = find_module(name, search_path)
    return found is not None and bool(found.path) and not _is_file(found.path, path)


def _is_file(found: str | None, path: str) -> bool:
    return found is not None and os.path.realpath(found) == os.path.realpath(path)


__all__ = ["import_kernel", "imported_function"]
