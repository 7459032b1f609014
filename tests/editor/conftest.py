"""Translated fixtures, and an editor that has them open."""

from __future__ import annotations

import contextlib
import functools
import io
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from editor_client import Editor
from slow_rows import slow_but

from gluonize.product.cli.edge import run

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


@pytest.fixture(scope="session")
def translated(tmp_path_factory) -> Callable[[str], tuple[Path, str]]:
    """Of a fixture: its folder with `kernel.py` and `kernel_gfx950.py`, and what `gluonize translate` printed."""

    @functools.cache
    def translate(name: str) -> tuple[Path, str]:
        folder = tmp_path_factory.mktemp(name)
        for file in ("kernel.py", "launches.json"):
            shutil.copy(FIXTURES / name / file, folder)
        with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
            assert run(["translate", "kernel.py", "-t", "gfx950", "-l", "launches.json", "--no-validate", "-v"]) == 0
        return folder, printed.getvalue()

    return translate


@pytest.fixture(scope="session", params=slow_but(["matmul", "flash_attention"]))
def opened(request, translated) -> Iterator[tuple[str, Editor, str, str, str]]:
    """(fixture, editor, text of the source, text of the translation, what translating printed); the files are not written to."""
    folder, printed = translated(request.param)
    editor = Editor(folder, "--no-validate")
    result, source = editor.open("kernel_gfx950.py"), editor.open("kernel.py")
    yield request.param, editor, source, result, printed
    editor.close()
