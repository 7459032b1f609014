"""The refusal cases say the truth: each has one marked line, a launch, and the reason it gives."""

from __future__ import annotations

from pathlib import Path

import pytest

import fixture_set
from child_process import compile_folder
from gluonize.read.spec.launch import read_launches

FOLDER = fixture_set.ROOT / "refused"
CASES = sorted(FOLDER.glob("*.py"))
MARK = "  # refused"

# Triton compiles these for AMD and drops the instruction; the rest it refuses by itself.
SILENTLY_WRONG = {"refused/ptx_inline_asm", "refused/nvidia_only"}


def refused_line(case: Path) -> int:
    """The line (from 1) at which the case must be refused."""
    (line,) = [i for i, text in enumerate(case.read_text().splitlines(), 1) if text.endswith(MARK)]
    return line


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_case_marks_one_line(case: Path):
    assert refused_line(case) > 1


def test_each_case_has_one_launch():
    launches = read_launches(str(FOLDER / "launches.json"))
    assert [launch.source for launch in launches] == [case.name for case in CASES]
    assert [launch.id for launch in launches] == [f"refused/{case.stem}" for case in CASES]


@pytest.mark.compile
def test_triton_refuses_all_but_the_silently_wrong():
    results = compile_folder(FOLDER, "gfx942")
    assert {i for i, result in results.items() if "error" not in result} == SILENTLY_WRONG
    for case in CASES:
        error = results[f"refused/{case.stem}"].get("error")
        # Triton quotes the source up to the line at fault; for a type of the signature it quotes none.
        if error and case.stem not in ("fp8_e4b15", "plain_global"):
            quoted = case.read_text().splitlines()[refused_line(case) - 1]
            assert quoted.strip() in error
