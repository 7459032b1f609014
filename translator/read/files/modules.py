"""Where a module's file is, and its parsed text, without importing anything.

`importlib.util.find_spec` imports the parent packages of a dotted name, so the search path is walked by hand here.
All that reading a source asks of the file system goes through here (`_stat`, `_find_in`, `_python_path`, and `_files_below` of
`package_files.py`): a job that was sent to another machine asks in their place what it was sent.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
import stat
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.files.launcher_calls import with_launches
from gluonize.read.files.unpacked import unpacked
from gluonize.read.text.depth import LESS_DEEP, longest_statement, too_deep
from gluonize.read.text.parsed import parsed_text

_stat = os.stat


def is_file(path: str) -> bool:
    """Whether there is a file."""
    try:
        return stat.S_ISREG(_stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _python_path() -> list[str]:
    """Where Python looks for modules."""
    return sys.path


@dataclass(frozen=True)
class ParsedFile:
    """A Python file: `path` is absolute, `text` has what Python's tokenizer would decode (universal newlines), with the kernels that it
    has in strings as code (`unpacked.py`); `written` is without that."""

    path: str
    text: str
    tree: ast.Module
    written: str = ""


@dataclass(frozen=True)
class ModuleFile:
    """A module on the search path. `path` is empty for a namespace package (a folder without `__init__.py`);
    `folders` are where its submodules are, empty for a plain module."""

    name: str
    path: str
    folders: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        """What relative imports in it start from."""
        return self.name if self.folders else self.name.rpartition(".")[0]


def parse_file(path: str) -> ParsedFile:
    """Read and parse a Python file; cached by path, size and modification time.

    Raises: TranslationError `source-missing`, `source-unreadable`, `source-not-python`, `source-syntax`.
    """
    path = os.path.abspath(path)
    try:
        found = _stat(path)
    except OSError as error:
        code = "source-missing" if isinstance(error, FileNotFoundError) else "source-unreadable"
        message = "no such file" if code == "source-missing" else "cannot read the file"
        raise TranslationError(Diagnostic(code, message, path, why=error.strerror or "")) from None
    return _parse(path, found.st_mtime_ns, found.st_size)


@functools.lru_cache(maxsize=64)  # a syntax tree takes a hundred times its text
def _parse(path: str, _mtime_ns: int, _size: int) -> ParsedFile:
    if os.path.isdir(path):
        help = "name one file of it, or a module"
        raise TranslationError(Diagnostic("source-unreadable", "this is a folder, not a Python file", path, help=help))
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise TranslationError(
            Diagnostic("source-unreadable", "cannot read the file", path, why=error.strerror or "")
        ) from None
    if b"\0" in raw:
        raise TranslationError(Diagnostic("source-not-python", "not Python source: it has NUL bytes", path))
    try:
        text = decode_source_bytes(raw)
    except (UnicodeDecodeError, SyntaxError, LookupError) as error:
        why, help = str(error), "save it as UTF-8, or name its encoding in the first line: # -*- coding: latin-1 -*-"
        line = _not_utf8(raw)
        raise TranslationError(
            Diagnostic("source-not-python", "not Python source: it is not text", path, line, why=why, help=help)
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes and the like are the author's business
            shown = unpacked(text, path)
            tree = with_launches(parsed_text(shown, path))
    except SyntaxError as error:
        code = "source-syntax" if path.endswith((".py", ".pyi")) else "source-not-python"
        message = f"syntax error: {error.msg}" if code == "source-syntax" else f"not Python source: {error.msg}"
        raise TranslationError(Diagnostic(code, message, path, error.lineno or 0, error.offset or 0)) from None
    except (RecursionError, MemoryError):
        raise _nested(path, longest_statement(text)) from None
    if line := too_deep(tree, shown.split("\n")):
        raise _nested(path, line)
    if shown is not text:  # Triton asks for the lines of a function by this cache
        linecache.cache[path] = (len(shown), None, shown.splitlines(keepends=True), path)
    return ParsedFile(path, shown, tree, text)


def _not_utf8(raw: bytes) -> int:
    """The first line that is not UTF-8; 0 where all are."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return raw.count(b"\n", 0, error.start) + 1
    return 0


def _nested(path: str, line: int) -> TranslationError:
    why = (
        "what reads it, Triton too, calls itself for each level: a sum of many terms is a tree as deep as it has terms"
    )
    return TranslationError(Diagnostic("source-syntax", "this is nested too deeply", path, line, 0, why, LESS_DEEP))


def decode_source_bytes(raw: bytes) -> str:
    """Source bytes as text: honours a coding line and a byte order mark, and unifies line ends."""
    import importlib.util

    return importlib.util.decode_source(raw)


def module_of_path(path: str) -> tuple[ModuleFile, str]:
    """The module a file is when it is imported from the folder above its outermost package, and that folder.

    A folder without `__init__.py` directly inside of a package is a namespace package of it.
    """
    path = os.path.abspath(path)
    folder, file = os.path.split(path)
    parts = [] if file == "__init__.py" else [os.path.splitext(file)[0]]
    while any(is_file(os.path.join(f, "__init__.py")) for f in (folder, os.path.dirname(folder))):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    folders = (os.path.dirname(path),) if file == "__init__.py" else ()
    return ModuleFile(".".join(parts) or "__init__", path, folders), folder


def find_module(name: str, search_path: tuple[str, ...]) -> ModuleFile | None:
    """The file of a dotted module name, or None. Nothing is imported or executed."""
    folders: tuple[str, ...] = search_path
    found: ModuleFile | None = None
    prefix = ""
    for part in name.split("."):
        if not re.fullmatch(r"[\w-]+", part):  # `importlib.import_module("05-tutorial")` finds more than `import` does
            return None
        prefix = f"{prefix}.{part}" if prefix else part
        found = _find_in(prefix, part, folders)
        if found is None:
            return None
        folders = found.folders
    return found


@functools.lru_cache(maxsize=8192)
def _find_in(name: str, part: str, folders: tuple[str, ...]) -> ModuleFile | None:
    namespace = []
    for folder in folders:
        base = os.path.join(folder or os.curdir, part)
        if os.path.isfile(os.path.join(base, "__init__.py")):
            return ModuleFile(name, os.path.join(os.path.abspath(base), "__init__.py"), (os.path.abspath(base),))
        if os.path.isfile(base + ".py"):
            return ModuleFile(name, os.path.abspath(base) + ".py")
        if os.path.isdir(base):
            namespace.append(os.path.abspath(base))
    return ModuleFile(name, "", tuple(namespace)) if namespace else None


_kept_lookups = _find_in


def forget_lookups() -> None:
    """Have modules be looked for anew, in a process in which they were looked for before."""
    _kept_lookups.cache_clear()


def full_search_path(search_path: list[str] | tuple[str, ...] | None) -> tuple[str, ...]:
    """`search_path` followed by `sys.path` and, as `python script.py` has it, the working folder; without repeats."""
    entries = [*(search_path or ()), *_python_path()]
    return tuple(dict.fromkeys(os.path.abspath(entry or os.curdir) for entry in entries))
