"""`bench/general.py`: launches that exist, configurations that are the same each time, figures that stay."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
found = importlib.util.spec_from_file_location("bench_general", ROOT / "bench" / "general.py")
general = importlib.util.module_from_spec(found)
sys.modules["bench_general"] = general
found.loader.exec_module(general)


@pytest.mark.parametrize("made", general.MADE, ids=lambda made: made.label)
def test_sizes_are_constants_of_the_launch_and_others_than_its_own(made):
    assert set(made.tiles) <= set(made.spec.constexprs)
    every = list(general.drawn(made))
    assert len(every) > 24 and every == list(general.drawn(made))
    own = {name: made.spec.constexprs[name] for name in made.tiles} | {general.WARPS: made.spec.options[general.WARPS]}
    assert own not in every
    tried = general.at(made, every[0])
    assert all(tried.values[name] == every[0][name] for name in made.tiles)


def test_strides_and_tensors_follow_the_length_of_rows():
    made = next(made for made in general.MADE if made.row)
    tried = general.at(made, {"HEAD_DIM": 128, "BLOCK_M": 64, "BLOCK_N": 32, general.WARPS: 4})
    queries = tried.values["Q"]["tensor"]
    assert queries["shape"] == [2, 208, 128] and queries["stride"] == [208 * 128, 128, 1]
    assert queries["storage"] == 2 * 208 * 128 and tried.values["stride_qm"] == 128
    assert tried.values["L"] == made.spec.values["L"] and tried.values["N_CTX"] == 208


def test_no_program_is_past_the_last_tile():
    made = next(made for made in general.MADE if made.covered)
    tried = general.at(made, {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 64, general.WARPS: 4})
    assert list(tried.grid) == [2 * 4] and tried.values["M"] == 144 and tried.values["N"] == 208


def test_a_configuration_counts_where_it_is_right_and_about_as_short():
    rows = [("right", 102, 100), ("right", 103, 100), ("refused", 0, 0), ("wrong", 100, 100), ("right", 90, 0)]
    outcomes = [general.Outcome({}, status, "", ours, exact) for status, ours, exact in rows]
    figures = general.Figures("matmul", "gfx950", "", 1.25, outcomes)
    assert [o.within for o in outcomes] == [True, False, False, False, False]
    assert figures.line == "| matmul | gfx950 | 5 | 3 | 1 | 1 | 0 | 0 | 1 | 1.03 | 1.25 |"
    assert figures.line.count("|") == general.HEAD.splitlines()[0].count("|")


def test_figures_of_other_fixtures_and_targets_stay(tmp_path):
    path = tmp_path / "general.json"
    one, other = (general.Figures("softmax", target, "", 1.0) for target in ("gfx942", "gfx950"))
    path.write_text(json.dumps([asdict(one), asdict(other)]))
    again = general.Figures("softmax", "gfx950", "more", 1.0, [general.Outcome({"BLOCK": 1}, "right")])
    assert general.kept(path, [again]) == [one, again]
