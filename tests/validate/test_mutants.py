"""Every one-step mutant of the good kernels is found, except those that change nothing; these are listed with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutants import mutants
from planted import KERNELS, run_matmul

from translator.diagnostics import TranslationError

# (kernel, line text, what) -> why the mutant behaves like the original.
EQUIVALENT = {
    ("matmul_gfx1250", "    tdm.async_wait(0)", "async_wait deleted"): "nothing reads the last copies, which lie past the last tile",
    ("matmul_gfx1250", "    tdm.async_wait(0)", "wait count raised"): "the same",
}
TARGETS = {"matmul_gfx942": "gfx942", "matmul_gfx950": "gfx950", "matmul_gfx1250": "gfx1250", "matmul_gfx1250_specialized": "gfx1250"}


@pytest.mark.parametrize("kernel", TARGETS)
def test_mutants_are_found(tmp_path: Path, kernel: str):
    text = (KERNELS / f"{kernel}.py").read_text()
    lines = text.splitlines()
    survivors, found = [], 0
    for mutant in mutants(text):
        try:
            result = run_matmul(mutant.text, TARGETS[kernel], tmp_path)
        except TranslationError:
            continue
        if result.status in ("hazard", "mismatch"):
            found += 1
        else:
            survivors.append((kernel, lines[mutant.line - 1], mutant.what))
    assert found >= 15
    assert survivors == [key for key in EQUIVALENT if key[0] == kernel]
