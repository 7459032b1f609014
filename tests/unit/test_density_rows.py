"""The rows of `bench/density.py`: launches that exist, tiles that they take, figures that are those of the source."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
found = importlib.util.spec_from_file_location("density", ROOT / "bench" / "density.py")
density = importlib.util.module_from_spec(found)
sys.modules["density"] = density
found.loader.exec_module(density)


@pytest.mark.parametrize("row", density.ROWS, ids=lambda row: f"{row.name} {row.target}")
def test_rows(row):
    spec = density.spec_of(row)
    assert set(row.constexprs) <= {name for name, kind in spec.signature.items() if kind == "constexpr"}
    assert spec.options["num_warps"] == row.num_warps
    assert all(h.matrix < h.insns and h.source for h in row.hand_written)


def test_markdown_has_a_line_per_hand_written_kernel():
    side = {"matrix": 64, "insns": 256, "density": 0.25, "spills": 3}
    hand = {"name": "basic", "matrix": 64, "insns": 320, "density": 0.2, "spills": 0, "ratio": 1.25}
    row = {
        "row": "matmul",
        "target": "gfx1250",
        "candidate": "parity",
        "parity": side,
        "aggressive": side,
        "triton": None,
    }
    text = density.markdown([{**row, "hand_written": [hand, hand]}, {**row, "hand_written": []}])
    assert text.count("| matmul |") == 3 and "64/256 (25.0%), 3 spilled" in text and "does not compile" in text
