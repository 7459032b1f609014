"""What the bench of the search says of its rows."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench import search  # noqa: E402


def test_the_summary_has_means_what_stays_above_and_what_is_missing():
    rows = [
        search.Row("a", "gfx950", 100.0, 100.0, 50.0),
        search.Row("b", "gfx950", 100.0, 225.0, 200.0),
        search.Row("c", "gfx950", why="it does not compile"),
        search.Row("a", "gfx942", 100.0, 100.0, 80.0),
    ]
    assert search.summary(rows).splitlines() == [
        "gfx950: 2 launches, cost against Triton's: 1.500 by default, 1.000 found (worst 2.000, 1 above 1)",
        "  b: 2.000",
        "  c: it does not compile",
        "gfx942: 1 launches, cost against Triton's: 1.000 by default, 0.800 found (worst 0.800, 0 above 1)",
    ]


@pytest.mark.slow
@pytest.mark.compile
def test_a_matmul_costs_no_more_than_by_default_and_the_same_again(tmp_path, monkeypatch):
    out = tmp_path / "rows.json"
    assert search.main(["--only", "split_k_matmul/fp16", "--budget", "4", "-j", "1", "--json", str(out)]) == 0
    (row,) = json.loads(out.read_text())
    assert 0 < row["found"] <= row["default"] and row["trials"] >= 4
    monkeypatch.setattr(search, "search_tried", None)  # what was chosen is not searched for again
    again = tmp_path / "again.json"
    assert search.main(["--only", "matmul/", "--again", str(out), "-j", "1", "--json", str(again)]) == 0
    assert json.loads(again.read_text()) == [row]
