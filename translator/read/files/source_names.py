"""A source as a command is given it: the path of a file, or the name of a module."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.read.files.modules import parse_file
from gluonize.read.files.near import near_file


def is_path(source: str) -> bool:
    """Whether a source is a path and not a module name."""
    return source.endswith(".py") or os.sep in source or os.path.exists(source)


def source_name(source: str) -> str:
    """`matmul` for `kernels/matmul.py` and for `kernels.matmul`."""
    return Path(source).stem if is_path(source) else source.rpartition(".")[2]


def check_source(source: str) -> None:
    """Refuse a source path that cannot be read, before anything is started."""
    if is_path(source):
        try:
            parse_file(source)
        except TranslationError as error:
            found = error.diagnostics[0]
            if found.code != "source-missing":
                raise
            raise TranslationError(replace(found, why="", help=near_file(source))) from None


def source_folders(source: str) -> tuple[str, ...]:
    """Folders to look for modules in before `sys.path`: a script's own folder, as Python does."""
    return (os.path.dirname(os.path.abspath(source)),) if is_path(source) else ()


def no_kernels(source: str) -> Diagnostic:
    """What is said of a file without kernels."""
    message, help = "there are no Triton kernels in it", "kernels are functions with @triton.jit"
    if source.endswith(".json"):
        help = f"the source is a Python file, and launches are given with -l {source}"
    if source.endswith(".ipynb"):
        help = f"a notebook is run to see its launches: gluonize capture -o launches.json {source}"
    return Diagnostic("source-no-kernels", message, source, help=help)
