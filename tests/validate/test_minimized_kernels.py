"""Kernels that the generator found to be translated wrongly, made small: right on every target, and refused on none."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixture_set import TARGETS
from kernelgen.saved import load
from random_run import Judges
from slow_rows import slow_but_crossed

CASES = sorted((Path(__file__).resolve().parent / "kernels" / "minimized").glob("*.json"))


@pytest.fixture(scope="module")
def judges():
    with Judges(interpreter=False) as started:
        yield started


@pytest.mark.one_of(3)
@pytest.mark.parametrize("case, target", slow_but_crossed(CASES, TARGETS, 2), ids=lambda x: getattr(x, "stem", x))
def test_a_kernel_that_was_translated_wrongly(judges, case: Path, target: str):
    kernel = load(case)
    found = judges.judge(kernel, target)
    assert found["status"] == "right" and found["ran"] > 0, f"{found}\n{kernel.text}\n{found['output']}"
