"""The benchmark's table: figures, summary, markdown and the README, on figures made by hand."""

import json
from pathlib import Path

import pytest

from bench import parity_table
from bench.launch_sets import folder_units
from translator.lowering.metrics import InstructionMix, KernelMetrics

ROOT = Path(__file__).resolve().parents[2]
SIDE = {
    "loop_insns": 100, "insns": 600, "loop_mma": 16, "mma": 32, "lds_bytes": 1000, "loop_barriers": 1,
    "vgpr": 128, "spill": 0, "load_bits": 128, "store_bits": 128,
}  # fmt: skip


def row(name="matmul/fp16", ours=None, upstream=None, **sides):
    return {
        "id": name,
        "target": "gfx950",
        "dot": True,
        "ours": SIDE | (ours or {}),
        "triton": SIDE,
        "upstream": SIDE | (upstream or {}),
        **sides,
    }


def summary(*rows):
    (entry,) = parity_table.summarize(list(rows))
    return entry


def test_means_are_geometric_and_over_what_both_sides_have():
    rows = [row(ours={"loop_insns": 50}), row(ours={"loop_insns": 200}), row(ours={"loop_insns": None})]
    assert summary(*rows)["loop"] == 1.0


def test_a_loop_that_is_unrolled_on_one_side_counts_per_tile():
    twice = {"loop_insns": 180, "loop_mma": 32, "loop_barriers": 2}
    entry = summary(row(ours=twice))
    assert entry["loop"] == 0.9
    assert not entry["loop_above_limit"] and not entry["mma_differs"] and not entry["more_barriers"]
    assert summary(row(ours=twice | {"loop_mma": 24}))["loop"] == 1.8


@pytest.mark.parametrize(
    "ours, found",
    [
        ({"loop_insns": 111}, "loop_above_limit"),
        ({"loop_mma": 24}, "mma_differs"),
        ({"lds_bytes": 1051}, "lds_above_limit"),
        ({"loop_barriers": 2}, "more_barriers"),
        ({"spill": 1}, "more_spills"),
        ({"load_bits": 64}, "narrower"),
        ({"store_bits": 64}, "narrower"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_what_is_worse_is_listed_by_name(ours, found):
    entry = summary(row("good"), row("bad", ours=ours))
    lists = ("loop_above_limit", "mma_differs", "lds_above_limit", "more_barriers", "more_spills", "narrower")
    assert {name: entry[name] for name in lists} == {name: ["bad"] if name == found else [] for name in lists}


def test_at_the_limit_is_not_worse():
    entry = summary(row(ours={"loop_insns": 110, "lds_bytes": 1050}))
    assert not entry["loop_above_limit"] and not entry["lds_above_limit"]


def test_refused_sides_count_in_no_mean():
    rows = [
        row("a", ours={"insns": 300}),
        row("b") | {"ours": {"refused": "because"}},
        row("c") | {"upstream": {"refused": "it aborts"}},
        row("d", ours={"insns": 1}) | {"triton": {"refused": "too much LDS"}},
    ]
    entry = summary(*rows)
    assert (entry["launches"], entry["refused"], entry["upstream_accepts"]) == (4, ["b"], 2)
    assert entry["insns"] == round(0.5**0.5, 3)
    page = parity_table.markdown({"command": "x", "triton": "3.9", "summary": [entry], "rows": rows})
    assert "- b: ours: because" in page and "- c: upstream: it aborts" in page
    assert "| b | - / 100 / 100 |" in page


def test_upstreams_loop_counts_where_it_is_the_one_with_the_matrix_instructions():
    entry = summary(row(upstream={"loop_insns": 300}), row(upstream={"loop_insns": 14, "loop_mma": 0}))
    assert entry["upstream_loop"] == 3.0


@pytest.mark.parametrize(
    "loads, narrower",
    [({}, False), ({"32": 8}, False), ({"32": 9}, True), ({"64": 16}, True), ({"64": 7, "32": 1}, False)],
    ids=["all by the data mover", "the wide ones too", "one more", "halved", "fewer"],
)
def test_what_the_data_mover_took_over_is_not_narrower(loads, narrower):
    widest = max(map(int, loads), default=0)
    found = row(ours={"load_bits": widest, "loads": loads}, triton=SIDE | {"loads": {"32": 8, "128": 8}})
    assert summary(found)["narrower"] == (["matmul/fp16"] if narrower else [])


def test_figures_take_the_widest_access_and_copies_to_lds_count():
    mix = InstructionMix(insns=9, mma=2, widths={"load": {"16": 4}, "lds_dma": {"128": 1}, "store": {"32": 1, "8": 9}})
    found = parity_table.figures(KernelMetrics(mix, 64, 0, 30, 1, 0, 0, 512, 0, None))
    assert (found["load_bits"], found["store_bits"], found["lds_bytes"], found["spill"]) == (128, 32, 512, 1)
    assert found["loop_insns"] is found["loop_mma"] is found["loop_barriers"] is None


def test_the_readme_shows_the_committed_results():
    report = json.loads((ROOT / "bench" / "results" / "parity.json").read_text())
    expected = parity_table.summary_table(report["summary"], parity_table.README_COLUMNS)
    shown = (ROOT / "README.md").read_text().partition("<!-- parity -->\n")[2].partition("<!-- /parity -->")[0]
    assert shown == expected, "run python bench/parity_table.py --readme"
    assert (ROOT / "bench" / "results" / "parity.md").read_text() == parity_table.markdown(report)
    assert report["summary"] == parity_table.summarize(report["rows"])


def test_a_readme_without_its_place_is_refused(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("a\n<!-- parity -->\nold\n<!-- /parity -->\nb\n")
    parity_table.put_into_readme(readme, "new\n")
    assert readme.read_text() == "a\n<!-- parity -->\nnew\n<!-- /parity -->\nb\n"
    readme.write_text("a\n")
    with pytest.raises(AssertionError):
        parity_table.put_into_readme(readme, "new\n")


def test_a_folder_of_sources_with_launches(tmp_path):
    launch = {"kernel": "k", "signature": {"x": "*fp32"}, "constexprs": {}, "attrs": {}, "options": {}}
    launches = [
        {**launch, "id": "module/one", "source": "package.kernels"},
        {**launch, "id": "file/two", "source": "plain.py"},
    ]
    (tmp_path / "launches.json").write_text(json.dumps({"version": 1, "launches": launches}))
    module, file = folder_units(tmp_path)
    assert module.source == "package.kernels" and module.search_path == (str(tmp_path),)
    assert file.source == str(tmp_path / "plain.py")
    assert [unit.launches[0].id for unit in folder_units(tmp_path, only="two")] == ["file/two"]
    request = module.request("gfx950")
    assert request.standalone and request.launches[0].source == "package.kernels"
