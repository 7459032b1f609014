"""The other files of the package that a file is in, with the tests beside it, and which of them launch its kernels or call its functions."""

from __future__ import annotations

import functools
import os
import re

from gluonize.read.files.generated import is_generated
from gluonize.read.files.modules import module_of_path

_MAX_FILES = 3000


def files_mentioning(path: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The other files of the package around a file that have one of these texts in them: `kernel[`, `function(`. Translations are none
    of them: what they say was taken from their sources, and depends on how often those were translated before.

    Which they are may change with any file of the package, a new one too: what is kept of an answer that looked into them asks again.
    """
    others = (other for other in _package_files(path) if other != path)
    mentioning = ((other, text_of(other)) for other in others)
    return tuple(o for o, said in mentioning if any(text in said for text in texts) and not is_generated(said))


def files_mentioning_now(path: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The same of what is on disk now, in a process that has asked before."""
    forget_packages()
    return files_mentioning(path, texts)


def forget_packages() -> None:
    """Have the files of packages be listed anew, in a process in which they were listed before."""
    _package_files.cache_clear()


# Folders in which the tests of a package, or of a script, stand beside it.
_TESTS = ("test", "tests")


@functools.lru_cache(maxsize=8)
def _package_files(path: str) -> tuple[str, ...]:
    """The Python files of the package that a file is in, in order, then those that import it: the tests beside it, and of a script the
    files beside it."""
    file, folder = module_of_path(path)
    top = file.name.partition(".")[0]
    own = _files_below(os.path.join(folder, top))
    beside = [] if own else [os.path.join(folder, name) for name in sorted(_listed(folder)) if name.endswith(".py")]
    beside += [other for tests in _TESTS if tests != top for other in _files_below(os.path.join(folder, tests))]
    imports = re.compile(rf"^\s*(from|import)\b.*\b{re.escape(top)}\b", re.MULTILINE)
    users = (other for other in beside[:_MAX_FILES] if other != path and imports.search(text_of(other)))
    return (*(own or (path,)), *users)


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _files_below(top: str) -> tuple[str, ...]:
    """The Python files in a folder and those in it, at most about `_MAX_FILES`."""
    out: list[str] = []
    for base, folders, names in os.walk(top):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        out += [os.path.join(base, name) for name in sorted(names) if name.endswith(".py")]
        if len(out) > _MAX_FILES:
            break
    return tuple(out)


def text_of(path: str) -> str:
    """The text of a file; "" where it cannot be read."""
    try:
        found = os.stat(path)
    except OSError:
        return ""
    return _text_then(path, found.st_mtime_ns, found.st_size)


@functools.lru_cache(maxsize=_MAX_FILES)
def _text_then(path: str, _mtime_ns: int, _size: int) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
