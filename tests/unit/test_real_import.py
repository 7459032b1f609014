"""Modules that are really imported (`--import`): the file that is meant, whatever was imported before."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from translation_of import dedent, launch, translate

from gluonize.diagnostics import TranslationError
from gluonize.judge.verdict import validate_launch
from gluonize.read.kernels.load import load_kernel

SOURCE = dedent("""
    import triton
    import triton.language as tl
    from numbers_of_{folder} import ADDED


    @triton.jit
    def k(x, o, B: tl.constexpr):
        at = tl.arange(0, B)
        tl.store(o + at, tl.load(x + at) + {added})
    """)
SPEC = launch("k", {"x": "*fp32", "o": "*fp32"}, {"B": 64})


@pytest.fixture(autouse=True)
def modules_of_others():
    """What a test imports is of no other test."""
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        if name.startswith(("kernel_file", "numbers_of_")):
            del sys.modules[name]


def written(folder: Path, added: str, constant: str = "1.0", numbers: str = "x") -> str:
    folder.mkdir(exist_ok=True)
    path = folder / "kernel_file.py"
    path.write_text(SOURCE.format(folder=numbers, added=added))
    (folder / f"numbers_of_{numbers}.py").write_text(
        f"import triton.language as tl\n\nADDED = tl.constexpr({constant})\n"
    )
    return str(path)


def imported(path: str):
    return load_kernel(path, "k", import_hosts=True).fn


def test_two_files_of_one_name_are_two_modules(tmp_path: Path):
    first, second = written(tmp_path / "a", "1.0"), written(tmp_path / "b", "2.0")
    assert "+ 1.0" in imported(first).src and "+ 2.0" in imported(second).src and "+ 1.0" in imported(first).src


def test_what_such_a_file_imports_is_its_own(tmp_path: Path):
    first, second = (written(tmp_path / name, "ADDED", constant) for name, constant in (("a", "1.0"), ("b", "2.0")))
    found = [imported(path).__globals__["ADDED"].value for path in (first, second, first)]
    assert found == [1.0, 2.0, 1.0]


def test_a_file_that_has_changed_is_imported_anew(tmp_path: Path):
    path = written(tmp_path / "a", "1.0")
    assert "+ 1.0" in imported(path).src
    written(tmp_path / "a", "20.0")
    assert "+ 20.0" in imported(path).src


def test_a_file_stays_one_module(tmp_path: Path):
    path = written(tmp_path / "a", "1.0")
    assert imported(path) is imported(path)


def test_a_name_of_another_module_is_refused(tmp_path: Path):
    path = tmp_path / "textwrap.py"
    os.rename(written(tmp_path, "1.0"), path)
    with pytest.raises(TranslationError, match="importing textwrap fails") as found:
        imported(str(path))
    assert "another module of this name" in found.value.diagnostics[0].why
    assert "rename the file" in found.value.diagnostics[0].help


@pytest.mark.compile
def test_a_translation_with_the_name_of_its_source_is_validated_itself(tmp_path: Path):
    text = translate(
        tmp_path, SOURCE.format(folder="x", added="1.0").replace("from numbers_of_x import ADDED\n", ""), SPEC
    )
    assert text.text.count("+ 1.0") == 1
    output = tmp_path / "out" / "source.py"
    output.parent.mkdir()
    for added, status in (("1.0", "validated"), ("9.00", "mismatch")):
        output.write_text(text.text.replace("+ 1.0", f"+ {added}"))
        answer = validate_launch(str(tmp_path / "source.py"), str(output), SPEC, "gfx942", import_hosts=True)
        assert answer["status"] == status, answer
