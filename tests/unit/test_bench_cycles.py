"""The table of predicted and published efficiencies, on assembly whose prediction is plain."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench import cycles  # noqa: E402

MFMA = "\tv_mfma_f32_16x16x32_f16 v[8:11], v[4:7], v[4:7], v[8:11]\n"


def kernel(body):
    """Eight times the body in a loop: the scalar instructions at its end are hidden or are a slot."""
    return f".L:\n{body * 8}\ts_cbranch_scc1 .L\n\ts_endpgm\n.amdgpu_metadata\n.max_flat_workgroup_size: 256\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "busy.gfx950.amdgcn").write_text(kernel(MFMA))
    (tmp_path / "half.amdgcn").write_text(kernel(MFMA + "\ts_nop 6\n"))
    entries = [("busy", 90.0, True), ("half", 50.0, True), ("gone", 70.0, False)]
    pairs = [{"name": n, "target": "gfx950", "efficiency": e, "lds": 160 * 1024, "fitted": f} for n, e, f in entries]
    (tmp_path / "pairs.json").write_text(json.dumps({"pairs": pairs}))
    return tmp_path


def test_errors_and_order_are_of_the_pairs_that_have_a_file(folder, capsys):
    """16 of 16 clk are matrix work; with 28 clk of s_nop after each MFMA's 4, 16 of 32, but for the branch's 4 in 8 * 32."""
    words = [str(folder), "--pairs", str(folder / "pairs.json"), "--json", str(folder / "out.json")]
    assert cycles.main(words) == 0
    rows = json.loads((folder / "out.json").read_text())
    assert [(x["name"], x["predicted"]) for x in rows["pairs"]] == [
        ("busy", 100.0),
        ("half", round(100 * 128 / 260, 2)),
    ]
    assert rows["missing"] == ["gone"]
    shown = capsys.readouterr().out
    assert "Mean error 5.38 points; 1 of 1 pairs in the right order." in shown and "not predicted: gone" in shown


def test_an_order_is_claimed_only_where_kernels_are_apart():
    def pair(published, predicted):
        return cycles.Pair("k", "gfx950", True, published, predicted, 0.0, 0.0)

    assert cycles.summed_up([pair(50, 40), pair(50.5, 60), pair(70, 50)]) == (pytest.approx(39.5 / 3), 1, 2)


def test_nothing_to_compare_is_an_error(tmp_path, capsys):
    assert cycles.main([str(tmp_path)]) == 2
    assert "no assembly" in capsys.readouterr().err


def test_every_published_pair_says_where_it_is_from():
    pairs = json.loads(cycles.TABLE.read_text())["pairs"]
    assert len({p["name"] for p in pairs}) == len(pairs) and sum(p["fitted"] for p in pairs) == 10
    assert all(p["kernel"] and p["figure"] and 0 < p["efficiency"] < 100 for p in pairs)
