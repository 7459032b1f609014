"""What a command may replace: what it wrote itself, and nobody has changed since."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterable

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.product.project.output.file import STANDARD_OUTPUT, check_destination
from gluonize.product.project.output.paths import located, named
from gluonize.product.project.output.provenance import GeneratedFile, read_generated
from gluonize.read.files.source_names import is_path

_HELP = "give another name, or --force to replace it"


def check_translation(path: str, source: str) -> None:
    """Refuse to write the translation of `source` over a file that is no generated one, or that was edited by hand.

    Raises: TranslationError `output-exists`, `edited`.
    """
    if not _holds_something(path):
        return
    found = read_generated(path)
    if found is None:
        why = "it has no line `# gluonize: ...`, so gluonize did not write it"
        raise TranslationError(Diagnostic("output-exists", "this file is there already", path, why=why, help=_HELP))
    if found.edited:
        help = f"gluonize update {path} merges the edits with a new translation; --force keeps them in {path}.edited"
        raise TranslationError(Diagnostic("edited", "this file was edited by hand", path, help=help))
    if not _is_of(found, source):
        why = f"it is the translation of {found.provenance.source}"
        raise TranslationError(Diagnostic("output-exists", "this file is there already", path, why=why, help=_HELP))


def _is_of(found: GeneratedFile, source: str) -> bool:
    """Whether a generated file is the translation of `source`."""
    was = found.provenance.source
    if was == (named(source, found.path) if is_path(source) else source):
        return True
    return is_path(source) and is_path(was) and os.path.realpath(located(was, found.path)) == os.path.realpath(source)


def check_new(path: str) -> None:
    """Refuse a file for launches that is there already: launches are written to be edited. Raises: TranslationError."""
    if _holds_something(path):
        raise TranslationError(Diagnostic("output-exists", "this file is there already", path, help=_HELP))


def check_result(path: str, inputs: Iterable[str | None], is_ours: Callable[[str], bool]) -> None:
    """Refuse to write a page, a bundle or results over an input of the command, or over a file that is none of ours.

    Raises: TranslationError `output-exists`.
    """
    if not _holds_something(path):
        return
    why = ""
    if any(given and os.path.exists(given) and os.path.samefile(given, path) for given in inputs):
        why = "the command reads it"
    elif not is_ours(path):
        why = "gluonize did not write it"
    if why:
        help = "give another name, or move it away"
        raise TranslationError(Diagnostic("output-exists", "this file is there already", path, why=why, help=help))


def check_json(destination: str | None) -> None:
    """Refuse a file for results that could not be written when they are there, or that holds something else."""
    if destination and destination != STANDARD_OUTPUT:
        check_destination(destination)
        check_result(destination, (), is_results)


def is_page(path: str) -> bool:
    """Whether a file is a page of `report` or `diff`."""
    with open(path, "rb") as file:
        return b'<meta name="generator" content="gluonize' in file.read(2000)


def is_results(path: str) -> bool:
    """Whether a file holds results as `--json` writes them."""
    try:
        with open(path, "rb") as file:
            data = json.load(file)
    except ValueError:
        return False
    return isinstance(data, dict) and any(name in data for name in ("results", "files", "numbers", "times"))


def is_bundle(path: str) -> bool:
    """Whether a file is a bundle."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as file:
        return "manifest.json" in file.namelist()


def is_text(path: str) -> bool:
    """Whether a file may be a printed difference, which has no mark of ours: not if it is code, a page or data."""
    return os.path.splitext(path)[1] not in (".py", ".json", ".toml", ".html") or is_page(path)


def _holds_something(path: str) -> bool:
    return os.path.isfile(path) and os.path.getsize(path) > 0
