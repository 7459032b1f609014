"""How the header of a generated file names other files, and finding those again.

A file in the output's folder, or below it, is named by its way from there. Of any other only the tail is written:

    kernels/matmul.py        beside the output, in kernels
    .../kernels/matmul.py    kernels/matmul.py in a folder that is to be found: one above the output, the working folder, ...

so that a header says nothing of the machine that it was written on, and holds on another one. Which of several files with that
tail is meant, their digest says.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator

from gluonize.diagnostics import Diagnostic, shown
from gluonize.read.files.modules import module_of_path

ELSEWHERE = ".../"
_PROJECT = (".git", "gluonize.toml", "pyproject.toml", "setup.py", "setup.cfg")  # one of them makes a folder a project
_SHORTEST = 2  # components of a tail where nothing says more: the file's folder and its name


def named(path: str, output: str) -> str:
    """`path` as the header of `output` names it, with `/`.

    A tail starts below the folder that both files are in when that is (in) a project; else it is as long as the way to the
    file in its package.
    """
    path, folder = os.path.realpath(path), os.path.dirname(os.path.realpath(output))
    common = _common(path, folder)
    parts = os.path.relpath(path, common).split(os.sep) if common else path.split(os.sep)[1:]
    if common == folder:
        return "/".join(parts)
    if not common or not _in_project(common):
        package = os.path.relpath(path, module_of_path(path)[1]).split(os.sep)
        parts = parts[-max(_SHORTEST, len(package)) :]
    return ELSEWHERE + "/".join(parts)


def located(name: str, output: str, folders: Iterable[str] = (), is_it: Callable[[str], bool] | None = None) -> str:
    """The inverse of `named`: a path that can be opened from the working folder.

    folders: where to look first. is_it: whether a file is the one that was named; where none of those found is (it was changed),
    the first of them is meant. What is nowhere keeps its name, by which `is_located` knows it.
    """
    if not name.startswith(ELSEWHERE):
        return os.path.normpath(os.path.join(os.path.dirname(output), name))
    first = None
    for path, surely in _candidates(name.removeprefix(ELSEWHERE), output, tuple(folders)):
        if not os.path.exists(path):
            continue
        if is_it is not None and is_it(path):
            return shown(path)
        if surely and first is None:
            first = path
            if is_it is None:
                break
    return shown(first) if first else name


def is_located(path: str) -> bool:
    """Whether `located` found the file."""
    return not path.startswith(ELSEWHERE)


def not_located(name: str, output: str) -> Diagnostic:
    """What to say of a file that is nowhere."""
    tail = name.removeprefix(ELSEWHERE)
    why = "it is in no folder above the output, not in the working folder and not on Python's search path"
    help = f"give the folder that has {tail} with --path"
    return Diagnostic("source-missing", f"it was made from {tail}, which is not found", output, why=why, help=help)


def _candidates(tail: str, output: str, folders: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """Paths that a tail may stand for, and whether the place alone is reason enough to take them."""
    own = os.path.dirname(os.path.realpath(output))
    parts = tail.split("/")
    for folder in folders:
        for start in range(len(parts)):
            yield os.path.join(os.path.abspath(folder), *parts[start:]), True
    folder = own
    while (above := os.path.dirname(folder)) != folder:
        folder = above
        yield os.path.join(folder, *parts), True
    for folder in (os.getcwd(), own, *sys.path):
        yield os.path.join(os.path.abspath(folder or os.curdir), *parts), True
    for folder in (os.getcwd(), own):
        for start in range(1, len(parts)):
            yield os.path.join(folder, *parts[start:]), False


def _common(path: str, folder: str) -> str:
    """The deepest folder that has both; "" where there is none (another drive)."""
    try:
        return os.path.commonpath([os.path.dirname(path), folder])
    except ValueError:
        return ""


def _in_project(folder: str) -> bool:
    while not any(os.path.exists(os.path.join(folder, name)) for name in _PROJECT):
        if folder == os.path.dirname(folder):
            return False
        folder = os.path.dirname(folder)
    return True
