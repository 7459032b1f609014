"""Launches that differ in one thing from the one a file was made for: each gives the source's results, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.launch_sets import Unit, fixture_units
from bench.other_launches import SECONDS, Outcome, judged, other_launches, translated, units_of_one
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.read.spec.launch import parse_launches


def unit_of(launch: str) -> Unit:
    (unit,) = units_of_one(fixture_units(launch))
    return unit


def test_one_thing_differs():
    (spec,) = parse_launches(
        [
            {
                "kernel": "k",
                "signature": {"x": "*fp16", "n": "i32", "BLOCK": "constexpr", "EVEN": "constexpr", "T": "constexpr"},
                "constexprs": {"BLOCK": 64, "EVEN": True, "T": {"$dtype": "fp32"}},
                "attrs": {"x": "DS", "n": "D"},
                "options": {"num_warps": 4},
                "values": {"n": 32, "BLOCK": 64},
            }
        ]
    )
    others = {other.what: other.spec for other in other_launches(spec)}
    assert list(others) == [
        "x: *fp16 -> *bf16",
        "x unaligned",
        "x: *fp16 -> None",
        "n: i32 -> i64",
        "n: 32 -> 31",
        "BLOCK: 64 -> 128",
        "BLOCK: 64 -> 32",
        "EVEN: True -> False",
        "T: {'$dtype': 'fp32'} -> {'$dtype': 'fp16'}",
        "num_warps: 4 -> 1",
        "num_warps: 4 -> 2",
        "num_warps: 4 -> 8",
    ]
    assert others["x unaligned"].attrs == {"x": "S", "n": "D"}
    odd = others["n: 32 -> 31"]
    assert odd.values == {"n": 31, "BLOCK": 64} and odd.attrs == {"x": "DS"}
    none = others["x: *fp16 -> None"]
    assert none.signature["x"] == "constexpr" and none.constexprs["x"] is None
    assert others["BLOCK: 64 -> 32"].values["BLOCK"] == others["BLOCK: 64 -> 32"].constexprs["BLOCK"] == 32


def test_what_counts_as_wrong():
    assert Outcome("mismatch").wrong and Outcome("crash").wrong
    assert not Outcome("validated").wrong and not Outcome("no launch").wrong
    assert Outcome("refused", "offsets must be int32").unnamed
    assert not Outcome("refused", "k is translated for BLOCK=64").unnamed


@pytest.mark.slow
def test_a_file_that_is_wrong_for_other_launches_is_found(tmp_path: Path):
    unit = unit_of("vector_add/fp32")
    with WorkerPool(1, timeout=SECONDS) as pool:
        output = translated(pool, unit, "gfx950", tmp_path)
        path = Path(output)
        assert not [other.what for other, found in judged(pool, unit, output, "gfx950") if found.wrong]
        text = path.read_text()
        path.write_text(text.replace("output = x + y", "output = x + y if BLOCK_SIZE == 1024 else x"))
        assert path.read_text() != text
        wrong = [other.what for other, found in judged(pool, unit, output, "gfx950") if found.wrong]
    assert wrong == ["BLOCK_SIZE: 1024 -> 2048", "BLOCK_SIZE: 1024 -> 512"]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx950", "gfx1250", "gfx1100"])
@pytest.mark.parametrize(
    "launch", ["softmax/fp16", "rms_norm/bf16_residual", "split_k_matmul", "attention_backward/causal"]
)
def test_other_launches_of_fixtures(launch: str, target: str, tmp_path: Path):
    with WorkerPool(1, timeout=SECONDS) as pool:
        for unit in units_of_one(fixture_units(launch)):
            output = translated(pool, unit, target, tmp_path)
            found = list(judged(pool, unit, output, target))
            assert not [(other.what, outcome) for other, outcome in found if outcome.wrong]
            assert any(outcome.status == "validated" for _, outcome in found)
