"""A Triton that has renamed a function of Gluon's and moved a module: the mend is one row each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import triton
from fixture_set import ROOT

PACKAGE = Path(triton.__file__).parent
LANGUAGES = "experimental/gluon/language/amd"
# What stands for the two rows of a newer gluonize, put in before anything asks.
SITE = """
import sys
sys.path.insert(0, {root!r})
from dataclasses import replace
from gluonize.rules import gluon
if {mended!r}:
    gluon.OPS = tuple(replace(op, spelled=(("3.9", "close_group"),)) if op.name == "commit_group" else op for op in gluon.OPS)
    gluon.MODULES["async_copy"] = replace(
        gluon.MODULES["async_copy"], spelled=(("3.9", "triton.experimental.gluon.language.amd.{{family}}.copies"),))
"""


def _copied(folder: Path) -> None:
    """Triton by links but for Gluon's modules for AMD GPUs, in which a function and a module are called otherwise."""
    place, languages = folder / "triton", Path(LANGUAGES)
    place.mkdir()
    for part in PACKAGE.iterdir():
        (place / part.name).symlink_to(part)
    for path in [*reversed(languages.parents)][1:]:  # the folders on the way become real ones
        (place / path).unlink()
        (place / path).mkdir()
        for inner in (PACKAGE / path).iterdir():
            (place / path / inner.name).symlink_to(inner)
    (place / languages).unlink()
    shutil.copytree(PACKAGE / languages, place / languages, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (place / languages).rglob("*.py"):
        text = re.sub(r"\bcommit_group\b", "close_group", path.read_text()).replace(
            "import async_copy", "import copies"
        )
        path.write_text(text.replace("cdna4.async_copy", "cdna4.copies").replace('"async_copy"', '"copies"'))
    for path in [*(place / languages).rglob("async_copy.py")]:
        path.rename(path.with_name("copies.py"))


@pytest.mark.slow
@pytest.mark.skipif(triton.__version__ != "3.9.0", reason="the copy is of this release")
@pytest.mark.parametrize("mended", [True, False], ids=["with the rows", "without them"])
def test_a_renamed_function_and_a_moved_module(tmp_path: Path, mended: bool):
    _copied(tmp_path)
    (tmp_path / "sitecustomize.py").write_text(SITE.format(root=str(ROOT.parent), mended=mended))
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "TRITON_DEFAULT_FP_FUSION": "1"}
    kernel, launches, out = ROOT / "matmul" / "kernel.py", ROOT / "matmul" / "launches.json", tmp_path / "out.py"
    words = ["translate", kernel, "-l", launches, "-t", "gfx950", "-o", out, "--no-cache"]
    line = [sys.executable, "-m", "gluonize.product.cli", *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=600)
    assert (done.returncode == 0) == mended, done.stdout + done.stderr
    if mended:
        text = out.read_text()
        assert "async_copy.close_group()" in text and "commit_group" not in text
        assert "from triton.experimental.gluon.language.amd.cdna4 import copies as async_copy" in text
        assert "proved" in done.stdout and "2 launches" in done.stdout
