"""The benchmark's table: figures, summary, markdown and the README, on figures made by hand."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench import parity_table
from bench.launch_sets import folder_units
from gluonize.judge.lower.metrics import InstructionMix, KernelMetrics

ROOT = Path(__file__).resolve().parents[2]
SIDE = {
    "loop_insns": 100, "insns": 600, "loop_mma": 16, "mma": 32, "lds_bytes": 1000, "loop_barriers": 1,
    "barriers": 3, "vgpr": 128, "spill": 0, "sgpr_spill": 0, "load_bits": 128, "store_bits": 128,
}  # fmt: skip
EQUAL = {"loop": 1.0, "insns": 1.0, "worse": {}}
MIX = InstructionMix(insns=9, mma=2, widths={"load": {"16": 4}, "lds_dma": {"128": 1}, "store": {"32": 1, "8": 9}})
METRICS = KernelMetrics(MIX, 64, 0, 30, 1, 0, 0, 512, 0, None)


@dataclass(frozen=True)
class Side:
    """What a compile leaves, as far as the table asks for it."""

    metrics: KernelMetrics

    def lds_overflow(self) -> None:
        return None


def row(name="matmul/fp16", ours=None, upstream=None, **sides):
    """A row of the table; ours and upstream: what they are against Triton, where it is not equal."""
    sides = {
        "ours": SIDE | {"against_triton": EQUAL | (ours or {})},
        "upstream": SIDE | {"against_triton": EQUAL | (upstream or {})},
        **sides,
    }
    return {"id": name, "target": "gfx950", "dot": True, "triton": SIDE, **sides}


def summary(*rows):
    (entry,) = parity_table.summarize(list(rows))
    return entry


def test_means_are_geometric_and_over_what_both_sides_have():
    entry = summary(*(row(str(loop), ours={"loop": loop}) for loop in (0.25, 4.0, None)), row(upstream={"insns": 3.0}))
    assert entry["loop"] == 1.0 and entry["insns"] == 1.0
    assert entry["upstream_insns"] == round(3**0.25, 3)


@pytest.mark.parametrize("kind", parity_table.KINDS)
def test_what_is_worse_is_listed_by_name(kind):
    found = {"worse": {kind: ["has more"]}}
    entry = summary(row("good"), row("bad", ours=found), row("theirs", upstream=found))
    assert entry["worse"] == {name: ["bad"] if name == kind else [] for name in parity_table.KINDS}
    report = {"command": "x", "triton": "3.9", "summary": [entry], "rows": [row("good"), row("bad", ours=found)]}
    assert "- bad: has more" in parity_table.markdown(report) and "- good" not in parity_table.markdown(report)


def test_a_launch_that_is_beyond_two_limits_counts_once():
    both = row(ours={"worse": {"lds": ["a"], "spills": ["b", "c"]}})
    table = parity_table.summary_table([summary(both, row("good"))], ["beyond a limit", "more spills"])
    assert table.splitlines()[-1] == "| 1 | 1 |"


def test_the_kinds_are_those_of_parity():
    """Each figure of a kernel that is worse is found, per tile, by what `gluonize parity` finds it with."""
    loop = InstructionMix(insns=100, mma=16, barrier=1, load=2)
    triton = dataclasses.replace(METRICS, loop=loop)
    twice = InstructionMix(insns=180, mma=32, barrier=2, load=4)
    assert parity_table.compared(dataclasses.replace(METRICS, loop=twice), triton, "gfx950")["worse"] == {}
    assert parity_table.compared(dataclasses.replace(METRICS, loop=twice), triton, "gfx950")["loop"] == 0.9
    worse = dataclasses.replace(
        METRICS,
        mix=dataclasses.replace(MIX, widths={"load": {"16": 5}}),
        loop=InstructionMix(insns=120, mma=20, barrier=2),
        spill=2,
        lds_bytes=65536,
    )
    assert set(parity_table.compared(worse, triton, "gfx950")["worse"]) == set(parity_table.KINDS)
    scalars = dataclasses.replace(triton, sgpr_spill=2)
    assert parity_table.compared(scalars, triton, "gfx950")["worse"] == {"spills": ["spills 2 SGPRs, Triton 0"]}


def test_sides_that_compile_are_compared():
    lowered = Side(METRICS)
    shown = parity_table.shown_sides(
        {"ours": lowered, "triton": lowered, "upstream": parity_table.Refused("it aborts")}, "gfx950"
    )
    assert shown["ours"]["against_triton"] == {"loop": None, "insns": 1.0, "worse": {}}
    assert "against_triton" not in shown["triton"] and shown["upstream"] == {"refused": "it aborts"}
    alone = parity_table.shown_sides({"ours": lowered, "triton": parity_table.Refused("too much LDS")}, "gfx950")
    assert "against_triton" not in alone["ours"]


def test_refused_sides_count_in_no_mean():
    rows = [
        row("a", ours={"insns": 0.5}),
        row("b") | {"ours": {"refused": "because"}},
        row("c") | {"upstream": {"refused": "it aborts"}},
        row("d") | {"ours": SIDE, "upstream": SIDE, "triton": {"refused": "too much LDS"}},
    ]
    entry = summary(*rows)
    assert (entry["launches"], entry["refused"], entry["upstream_accepts"]) == (4, ["b"], 2)
    assert entry["insns"] == round(0.5**0.5, 3)
    page = parity_table.markdown({"command": "x", "triton": "3.9", "summary": [entry], "rows": rows})
    assert "- b: ours: because" in page and "- c: upstream: it aborts" in page
    assert "| b | - / 100 / 100 |" in page


def test_figures_take_the_widest_access_and_copies_to_lds_count():
    found = parity_table.figures(METRICS)
    assert (found["load_bits"], found["store_bits"], found["lds_bytes"], found["spill"]) == (128, 32, 512, 1)
    assert found["loop_insns"] is found["loop_mma"] is found["loop_barriers"] is None


def test_the_readme_shows_the_committed_results():
    report = json.loads((ROOT / "bench" / "results" / "parity.json").read_text())
    expected = parity_table.summary_table(report["summary"], parity_table.README_COLUMNS)
    shown = (ROOT / "README.md").read_text().partition("<!-- parity -->\n")[2].partition("<!-- /parity -->")[0]
    assert shown == expected, "run python bench/parity_table.py --readme"
    assert (ROOT / "bench" / "results" / "parity.md").read_text() == parity_table.markdown(report)
    assert report["summary"] == parity_table.summarize(report["rows"])
    assert not any(
        ids for entry in report["summary"] for ids in entry["worse"].values()
    ), "no fixture is beyond a limit"


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
