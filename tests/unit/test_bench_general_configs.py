"""`bench/general_configs.py`: launches of an autotuner's configurations, and how outcomes are summed up."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import triton

from gluonize.read.spec.launch import LaunchSpec

ROOT = Path(__file__).resolve().parents[2]
found = importlib.util.spec_from_file_location("bench_general_configs", ROOT / "bench" / "general_configs.py")
bench = importlib.util.module_from_spec(found)
sys.modules["bench_general_configs"] = bench
found.loader.exec_module(bench)


def test_a_configuration_sets_constants_options_and_values():
    spec = LaunchSpec(
        "kernel",
        "kernel",
        "module",
        {"x": "*fp16", "BLOCK": "constexpr"},
        {"BLOCK": 64},
        {},
        {"num_warps": 4, "num_stages": 2},
    )
    config = triton.Config({"BLOCK": 128, "waves_per_eu": 2}, num_warps=8, num_stages=3)
    made = bench.configured(LaunchSpec(**{**vars(spec), "values": {"x": None, "BLOCK": 64}}), config)
    assert made.constexprs == {"BLOCK": 128} and made.values == {"x": None, "BLOCK": 128}
    assert made.options == {"num_warps": 8, "num_stages": 3, "waves_per_eu": 2}
    assert bench.configured(spec, config).values == {}  # what has no values gets none


def test_outcomes_are_shares_of_configurations():
    rows = ["right", "right", "refused", "wrong"]
    tried = bench.Tried("a", "a holds for BLOCK 64 to 128", [bench.Outcome({}, status) for status in rows])
    text = bench.summary([tried, bench.Tried("b", "no translation: why")])
    assert text.startswith("4 configurations of 1 kernels: 2 right (50 %), 1 wrong (25 %), 1 refused (25 %), 0 failed")
    assert text.endswith("1 kernels without a translation")
    assert tried.line == "| a | 4 | 2 | 1 | 1 | 0 | 0 | BLOCK 64 to 128 |"
    assert tried.line.count("|") == bench.HEAD.splitlines()[0].count("|")
