"""Kernels that the generator found to be translated wrongly, made small: right on every target, and refused on none."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixture_set import TARGETS
from kernelgen.saved import load
from random_run import Judges

CASES = sorted((Path(__file__).resolve().parent / "kernels" / "minimized").glob("*.json"))


@pytest.fixture(scope="module")
def judges():
    with Judges(interpreter=False) as started:
        yield started


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES, ids=[path.stem for path in CASES])
def test_a_kernel_that_was_translated_wrongly(judges, case: Path, target: str):
    kernel = load(case)
    found = judges.judge(kernel, target)
    assert found["status"] == "right" and found["ran"] > 0, f"{found}\n{kernel.text}\n{found['output']}"
