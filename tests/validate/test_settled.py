"""A launch that is proved is run on two sets of inputs; one whose proof rests on what nobody checks is run on all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from slow_rows import slow

from gluonize.judge.verdict.run import validate_job
from gluonize.read.spec.launch import read_launches

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def judged(folder: Path, fixture: str, target: str, grid: tuple[int, ...] = (), **changes: str) -> dict:
    """What validating a golden with `changes` of its text finds, proof and all. grid: another than that of the launch."""
    source = FIXTURES / fixture / "kernel.py"
    text = (FIXTURES / fixture / "golden" / f"{target}.py").read_text()
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    output = folder / "out.py"
    output.write_text(text)
    spec = read_launches(str(FIXTURES / fixture / "launches.json"))[0]
    spec = replace(spec, grid=grid or spec.grid)
    return validate_job({"source": str(source), "output": str(output), "target": target, "launch": spec, "prove": True})


def is_settled(found: dict) -> bool:
    return found["coverage"]["proved"]


@pytest.mark.parametrize("fixture", ["softmax", "block_matmul"])
def test_two_sets_of_inputs_are_run_of_what_is_proved(tmp_path, fixture):
    found = judged(tmp_path, fixture, "gfx950")
    assert found["status"] == "validated" and found["proof"]["status"] == "proved"
    assert is_settled(found) and len(found["variants"]) == 1 and found["coverage"]["complete"]


def test_a_grid_without_programs_is_translated_and_nothing_is_validated(tmp_path):
    found = judged(tmp_path, "softmax", "gfx950", grid=(0,))
    assert found["status"] == "not_runnable" and "[0] has no programs" in found["reason"]


@pytest.mark.parametrize(
    "before, after, status",
    [
        (".size() >= 2**31", ".size() < 0", "mismatch"),  # the check no longer holds what the header says
        slow(("assumes storage", "assumes n_cols <= 2**20\n#   assumes storage", "validated")),  # nor did it ever
    ],
)
def test_a_header_that_the_launch_check_does_not_hold(tmp_path, before, after, status):
    found = judged(tmp_path, "softmax", "gfx950", **{before: after})
    assert found["proof"]["status"] == "proved" and found["status"] == status and len(found["variants"]) > 5
    assert not found["coverage"] or not is_settled(found)


def test_a_proof_with_a_condition_leaves_all_inputs_to_run(tmp_path):
    found = judged(tmp_path, "matmul", "gfx1250")
    assert found["proof"]["assumed"] and not is_settled(found) and len(found["variants"]) > 5


def test_what_is_wrong_is_found_though_it_were_proved(tmp_path, monkeypatch):
    """A prover that proves everything: the two sets of inputs are a check of it."""
    from gluonize.judge.prove.both_sides import PROVED, Verdict
    from gluonize.judge.verdict import proof

    monkeypatch.setattr(proof, "prove", lambda *_: Verdict(PROVED))
    found = judged(tmp_path, "softmax", "gfx950", **{"col_offsets < n_cols": "col_offsets < n_cols - 1"})
    assert found["proof"]["status"] == "proved" and found["status"] == "mismatch"
