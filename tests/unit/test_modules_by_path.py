"""Modules that a program loads by their paths: their constants are read, and nothing of them is run."""

from __future__ import annotations

import textwrap

import pytest
from triton.compiler.errors import CompilationError

from gluonize.diagnostics import TranslationError
from gluonize.read.files.by_path import FilePath
from gluonize.read.kernels.load import explain_trace_error, load_kernel
from gluonize.read.unresolved import Undetermined
from test_source_load import BOOBY_TRAP, trace

KERNEL = """
import importlib.util
import sys
from pathlib import Path

import triton
import triton.language as tl
{loading}
WIDTH = tl.constexpr(tiles.WIDTH)

@triton.jit
def k(p):
    tl.store(p, WIDTH)
"""
LOADER = """
def load_tiles():
    module = sys.modules.get("tiles_of_mine")
    if module is not None:
        return module
    path = {path}
    spec = importlib.util.spec_from_file_location("tiles_of_mine", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"no {{path}}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["tiles_of_mine"] = module
    spec.loader.exec_module(module)
    return module


tiles = load_tiles()
"""


def stored(folder, loading: str) -> str:
    (folder / "m.py").write_text(KERNEL.format(loading=textwrap.dedent(loading)))
    (folder / "01-tiles.py").write_text("WIDTH = 48\n\n\ndef host():\n    " + BOOBY_TRAP)
    loaded = load_kernel("m", "k", search_path=[str(folder)])
    try:
        return trace(loaded)
    except CompilationError as error:
        raise explain_trace_error(loaded, error) or error from None


@pytest.mark.parametrize(
    "path",
    [
        'Path(__file__).with_name("01-tiles.py")',
        'Path(__file__).resolve().parent / "01-tiles.py"',
        'str(Path(__file__).parent.joinpath("01-tiles.py"))',
    ],
)
def test_a_module_is_read_from_its_path(path: str, tmp_path):
    assert "48" in stored(tmp_path, LOADER.format(path=path))


def test_the_steps_may_stand_in_the_module_itself(tmp_path):
    loading = """
        spec = importlib.util.spec_from_file_location("tiles_of_mine", Path(__file__).with_name("01-tiles.py"))
        tiles = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(tiles)
    """
    assert "48" in stored(tmp_path, loading)


@pytest.mark.parametrize(
    "loading, why",
    [
        (LOADER.format(path='Path(__file__).with_name("02-tiles.py")'), "no file"),
        (LOADER.format(path='"01-tiles.py" if Path(__file__).exists() else ""'), "Path.exists"),
        ('tiles = sys.modules.get("json")', "json has been imported"),
    ],
    ids=["no such file", "a path that asks the file system", "a module that others import"],
)
def test_what_only_running_tells_is_said(loading: str, why: str, tmp_path):
    with pytest.raises(TranslationError) as caught:
        stored(tmp_path, loading)
    assert why in caught.value.diagnostics[0].why


def test_a_path_has_no_other_attributes():
    with pytest.raises(AttributeError):
        FilePath("a").colour
    with pytest.raises(Undetermined):
        FilePath("a").read_text
