"""Folders and patterns as sources: which Python files are meant, chosen as formatters and linters choose theirs."""

from __future__ import annotations

import ast
import glob
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pathspec import GitIgnoreSpec

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.product.project.files.config import find_config, read_exclude
from gluonize.read.files.generated import is_generated
from gluonize.read.files.modules import parse_file
from gluonize.read.files.source_names import no_kernels

# Folders that hold no sources of a project; what `.gitignore` names is left out as well.
EXCLUDED_FOLDERS = frozenset(
    "__pycache__ __pypackages__ _build build buck-out dist node_modules site-packages venv env egg-info".split()
)

_OTHER_COMPILERS = ("torch", "jax", "numba")  # whose `jit` makes no kernels of Triton
_KNOWN = sys.stdlib_module_names | {
    "triton",
    *_OTHER_COMPILERS,
}  # where a kernel is made by what has `jit` in its name, or not at all


@dataclass(frozen=True)
class SourceFile:
    """A file with jit functions. inside: its folder, relative to the folder that was named, for outputs elsewhere."""

    path: str
    inside: str


def is_several(sources: tuple[str, ...]) -> bool:
    """Whether the sources are more than one file or module: a folder, a pattern, or several names."""
    return len(sources) > 1 or any(os.path.isdir(s) or _is_pattern(s) for s in sources)


def find_sources(sources: tuple[str, ...]) -> tuple[list[SourceFile], int]:
    """The files that may hold kernels, in order, and how many Python files do not.

    A file that is named is taken whatever its name; of folders and patterns are left out: hidden files and folders, those of
    `EXCLUDED_FOLDERS`, what git ignores, what `exclude` of the configuration matches, and files that gluonize wrote.
    Raises: TranslationError `source-missing` for a pattern or folder without any Python file.
    """
    found: dict[str, SourceFile] = {}
    for source in sources:
        paths = _python_files(source)
        if not paths:
            message = "no Python files match" if _is_pattern(source) else "no Python files in it"
            help = "name the file or folder that has the kernels; hidden, ignored and generated files do not count"
            raise TranslationError(Diagnostic("source-missing", message, source, help=help))
        base = (
            source if os.path.isdir(source) else _fixed_part(source) if _is_pattern(source) else os.path.dirname(source)
        )
        for path in paths:
            inside = os.path.relpath(os.path.dirname(path) or os.curdir, base or os.curdir)
            found.setdefault(os.path.normpath(path), SourceFile(path, inside))
    kept = [file for file in found.values() if file.path in sources or may_have_kernels(file.path)]
    return kept, len(found) - len(kept)


def refuse_without_kernels(source: str) -> None:
    """A file that can hold no kernel is refused as reading it would. Raises: TranslationError `source-no-kernels`."""
    try:
        tree = parse_file(source).tree
    except TranslationError:
        return  # a module, or a file that reading it later says more of
    nodes = [*ast.walk(tree)]
    imported = {name for node in nodes for name, module in _imports(node) if module not in _KNOWN}
    if not any(_says_jit(node) or imported & _in_decorators(node) for node in nodes):
        raise TranslationError(no_kernels(source))


def _imports(node: ast.AST) -> list[tuple[str, str]]:
    """The names that a statement imports, each with the package that it comes from."""
    if isinstance(node, ast.ImportFrom):
        return [(a.asname or a.name, (node.module or "").partition(".")[0]) for a in node.names]
    names = [a for a in node.names] if isinstance(node, ast.Import) else []
    return [(a.asname or a.name.partition(".")[0], a.name.partition(".")[0]) for a in names]


def _in_decorators(node: ast.AST) -> set[str]:
    """`kernels` of a function under `@kernels.fast()`."""
    found = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return {n.id for decorator in found for n in ast.walk(decorator) if isinstance(n, ast.Name)}


def _says_jit(node: ast.AST) -> bool:
    """Whether code has a name or a short text with `jit` in it, other than in `torch.jit` and its like."""
    if isinstance(node, ast.Attribute):
        return "jit" in node.attr and not (isinstance(node.value, ast.Name) and node.value.id in _OTHER_COMPILERS)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return getattr(node, "module", None) not in _OTHER_COMPILERS and any("jit" in a.name for a in node.names)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and "jit" in node.value and node.value.isidentifier()
    return isinstance(node, ast.Name) and "jit" in node.id


def _is_pattern(source: str) -> bool:
    return glob.has_magic(source) and not os.path.exists(source)


def _fixed_part(pattern: str) -> str:
    """The folder that a pattern starts with: `src` for `src/**/*.py`."""
    parts = []
    for part in pattern.split(os.sep)[:-1]:
        if glob.has_magic(part):
            break
        parts.append(part)
    return os.sep.join(parts)


def _python_files(source: str) -> list[str]:
    if os.path.isdir(source):
        found = [path for path in _walk(source)]
    elif _is_pattern(source):
        found = [p for p in glob.glob(source, recursive=True) if p.endswith(".py") and os.path.isfile(p)]
        found = [
            p
            for p in found
            if not _is_excluded_folder(os.path.dirname(os.path.relpath(p, _fixed_part(source) or os.curdir)))
        ]
    else:
        return [source]
    excluded, known = _excluded(), {}
    return [path for path in sorted(found) if not excluded(path) and not _is_ignored(os.path.abspath(path), known)]


def _walk(folder: str) -> Iterable[str]:
    for base, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_excluded_folder(name)]
        yield from (os.path.join(base, name) for name in names if name.endswith(".py") and not name.startswith("."))


def _is_excluded_folder(path: str) -> bool:
    parts = [part for part in path.split(os.sep) if part not in ("", os.curdir, os.pardir)]
    return any(part in EXCLUDED_FOLDERS or part.startswith(".") or part.endswith(".egg-info") for part in parts)


def _excluded() -> Callable[[str], bool]:
    """Whether `exclude` of the nearest configuration, in the words of `.gitignore`, leaves a path out."""
    config = find_config()
    spec = GitIgnoreSpec.from_lines(read_exclude(config) if config else ())
    folder = os.path.dirname(config) if config else os.curdir
    return lambda path: spec.match_file(os.path.relpath(os.path.abspath(path), folder))


def _is_ignored(path: str, known: dict[str, list[tuple[str, GitIgnoreSpec]]]) -> bool:
    """Whether the `.gitignore` files of its folder and of those above say so, up to the repository's; the nearest has the last word.

    known: the files of folders that were looked at before.
    """
    verdict = False
    for folder, spec in _ignore_files(os.path.dirname(path), known):
        said = spec.check_file(os.path.relpath(path, folder)).include
        verdict = verdict if said is None else said
    return verdict


def _ignore_files(folder: str, known: dict[str, list[tuple[str, GitIgnoreSpec]]]) -> list[tuple[str, GitIgnoreSpec]]:
    if folder not in known:
        above, ends = os.path.dirname(folder), os.path.exists(os.path.join(folder, ".git"))
        found = [] if ends or above == folder else _ignore_files(above, known)
        try:
            with open(os.path.join(folder, ".gitignore"), encoding="utf-8", errors="replace") as file:
                found = [*found, (folder, GitIgnoreSpec.from_lines(file))]
        except OSError:
            pass  # there is none
        known[folder] = found
    return known[folder]


def may_have_kernels(path: str) -> bool:
    """Whether a file may hold kernels: it mentions jit, and gluonize did not write it."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        return True  # reading it later says what is wrong
    return b"jit" in content and b"triton" in content and not is_generated(content)
