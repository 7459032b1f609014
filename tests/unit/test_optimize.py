"""What candidates cost and the choice between them, on made-up loops; one real kernel through `gluonize tune`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cluster_sources import SOURCES
from gluonize.decide.choices.chosen import Choices, choices_of
from gluonize.judge.cycles.analysis import analyze
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.judge.lower.compile import Lowered
from gluonize.judge.lower.metrics import InstructionMix, KernelMetrics
from gluonize.product.cli.edge import run
from gluonize.product.cli.machine_code.tune import _lines_below, _table, _unit, _why
from gluonize.read.spec.launch import LaunchSpec, read_launches
from gluonize.request import TranslateRequest, as_launched
from gluonize.rules.targets import TARGETS
from gluonize.search import search
from gluonize.search.candidates import ROWS, candidates
from gluonize.search.choose import Tried, best, figures_of, rows_for, try_candidates
from gluonize.search.cost import ITERATIONS, Cost, cost
from rich.console import Console

LOOP = InstructionMix(
    insns=123, mma=32, valu=14, salu=33, ds=32, ds_read=32, lds_dma=8, barrier=1, wait=3,
    widths={"ds": {"128": 16, "64": 16}}, matrix={"32x32x16": 32},
)  # fmt: skip
METRICS = KernelMetrics(LOOP, 256, 128, 60, 0, 0, 0, 136112, 1, LOOP, 2)


MFMA = "\tv_mfma_f32_16x16x32_f16 v[8:11], v[4:7], v[4:7], v[8:11]\n"
TILE = MFMA * 8 + "\ts_barrier\n"


def priced(body: str, before: str = "", after: str = "", lds: int = 160 * 1024, fits: bool = True) -> Cost:
    """The cost of a loop of 4 waves with one workgroup on the compute unit."""
    text = f"{before}.L:\n{body}\ts_cbranch_scc1 .L\n{after}\ts_endpgm\n"
    return cost(analyze(text, "gfx950", 4, lds), fits)


@pytest.mark.parametrize(
    "worse",
    [
        priced(TILE + "\tv_add_u32_e32 v1, v2, v3\n" * 20),
        priced(TILE + "\tscratch_load_dwordx4 v[60:63], off, off offset:16\n\ts_waitcnt vmcnt(0)\n"),
        priced(TILE + "\ts_barrier\n"),
        priced(TILE + "\tds_read_b128 v[60:63], v64\n\ts_waitcnt lgkmcnt(0)\n"),
        priced(TILE, before="\tscratch_load_dwordx4 v[60:63], off, off offset:16\n\ts_waitcnt vmcnt(0)\n"),
    ],
    ids=["vector instructions", "scratch in the loop", "barrier", "reads that are waited for", "spills outside"],
)
def test_what_costs_more(worse: Cost):
    assert worse.cycles > priced(TILE).cycles


def test_an_unrolled_loop_pays_as_much_for_what_is_outside_of_it():
    """As many tiles as the loop with one of them has in its iterations."""
    spills = "\tscratch_load_dwordx4 v[60:63], off, off offset:16\n\ts_waitcnt vmcnt(0)\n"
    one, two = (
        analyze(f"{spills}.L:\n{TILE * n}\ts_cbranch_scc1 .L\n\ts_endpgm\n", "gfx950", 4, 160 * 1024) for n in (1, 2)
    )
    alone, unrolled = (cost(x, True, work=one.work).cycles for x in (one, two))
    outside, tiles = (x / (one.work / 1e6) for x in (one.outside / ITERATIONS, one.hot.cycles))
    assert two.outside == one.outside and alone == outside + tiles
    assert unrolled == pytest.approx(outside + two.hot.cycles / (two.work / 1e6))


def test_two_tiles_a_turn_are_no_dearer():
    assert priced(TILE * 2).cycles == pytest.approx(priced(TILE).cycles, rel=0.03)


def test_a_cost_is_per_operation_of_matrix_work():
    """16 operations of 16 clk and 16 x 16 x 32 x 2 each, by 4 waves on 4 SIMDs; the branch hides beside them."""
    assert priced(MFMA * 16).cycles == pytest.approx(256 / (4 * 16 * 2 * 16 * 16 * 32 / 1e6), rel=0.01)
    assert priced(MFMA * 16).efficiency == 1.0


def test_workgroups_that_share_a_compute_unit_share_its_time():
    """Each hides the barriers of the other: cheaper per tile than one after the other."""
    waiting = TILE + "\tds_read_b128 v[60:63], v64\n\ts_waitcnt lgkmcnt(0)\n"
    assert priced(waiting, lds=80 * 1024).cycles < priced(waiting).cycles


def test_lds_that_does_not_fit_ranks_last():
    assert priced(TILE, fits=False).rank > priced(TILE + "\ts_nop 15\n" * 20).rank


@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize("warps", [1, 4, 8])
def test_parity_is_the_first_candidate_and_none_comes_twice(target: str, warps: int):
    found = candidates(TARGETS[target], warps)
    assert found[0] == Choices() and found[0].name == "parity"
    assert len({t.name for t in found}) == len(found)


@pytest.mark.parametrize(
    "target, counts",
    [("gfx950", {1, 2, 3}), ("gfx1250", {1, 2, 3, 6, 8}), ("gfx1100", {2, 3, 6, 8}), ("gfx1201", {2, 3, 6, 8})],
)
def test_as_many_waves_are_asked_for_as_registers_decide_about(target: str, counts: set[int]):
    """A SIMD of RDNA has registers for five waves that use all they may, and holds sixteen; one of CDNA for one, and holds eight."""
    assert {x.number("waves-per-eu") for x in candidates(TARGETS[target], 4)} - {0} == counts


def test_clusters_are_tried_where_the_target_has_them_and_nothing_else_is_launched():
    spec = LaunchSpec("k", "k", "", {}, {}, {}, {"num_warps": 4}, (1,))
    asked = TranslateRequest("k.py", "gfx1250")
    for request, counts in (
        (asked, {0, 2, 4}),
        (replace(asked, fallback="general"), {0}),
        (replace(asked, target="gfx950"), {0}),
    ):
        assert {choices.number("num-ctas") for choices in rows_for(request, spec)} == counts


@pytest.mark.slow
def test_a_large_tile_is_executed_faster_by_four_workgroups_that_take_in_twice_as_much(tmp_path):
    """So they are chosen where compute units would be idle; where all of them work, what arrives decides."""
    source = replace(SOURCES["matmul"], constexprs={"BM": 256, "BN": 256, "BK": 64})
    (tmp_path / "k.py").write_text(source.file)
    spec = as_launched(source.launch(4), choices_of(num_ctas="4"))
    request = TranslateRequest(str(tmp_path / "k.py"), "gfx1250", launches=(spec,))
    with WorkerPool(1) as pool:
        tried = try_candidates(request, spec, pool, (Choices(), choices_of(num_ctas="4")))
    assert all(entry.cost is not None for entry in tried), tried

    def chosen(grid: tuple[int, ...]) -> Choices:
        priced = [replace(x, cost=cost(x.lowered.cycles, True, grid)) for x in tried]
        return best(priced)["k"]

    assert chosen((8, 8)) == choices_of(num_ctas="4")
    assert chosen((64, 64)) == chosen(()) == Choices()
    one, four = (x.lowered.cycles.hot.bounds for x in tried)  # four on a compute unit do the work of one
    assert four["bytes in flight"] == 2 * one["bytes in flight"] and four["matrix"] == one["matrix"]


def test_a_number_of_workgroups_that_the_launch_says():
    assert choices_of(num_ctas="launch").number("num-ctas") == 0


def test_every_candidate_row_says_what_it_may_buy():
    assert all(row.why for row in ROWS)
    assert candidates(TARGETS["gfx950"], 8, choices_of(depth="3"))[0] == choices_of(depth="3")


SPECS = [LaunchSpec(id=name, kernel="k", source="k.py") for name in ("one", "two")]
DEEP, SMALL = choices_of(depth="3"), choices_of(matrix_size="16")


def tried(spec: LaunchSpec, choices: Choices, cycles: float, fits: bool = True, spill: int = 0, **more) -> Tried:
    metrics = replace(METRICS, spill=spill)
    lowered = Lowered("k", "gfx950", "gluon", "k", 8, 0, metrics, 0.0)
    return Tried(spec, choices, "text", lowered, Cost(cycles, None, fits), **more)


def test_the_least_cost_over_all_launches_is_chosen():
    found = [
        tried(SPECS[0], Choices(), 10),
        tried(SPECS[0], DEEP, 4),
        tried(SPECS[1], Choices(), 10),
        tried(SPECS[1], DEEP, 20),
    ]
    assert best(found) == {"k": DEEP}  # the square root of 80 against 10


@pytest.mark.parametrize(
    "other",
    [
        [tried(SPECS[0], DEEP, 1, fits=False)],
        [Tried(SPECS[0], DEEP)],
        [tried(SPECS[0], DEEP, 10)],
        [tried(SPECS[0], DEEP, 10, spill=9)],
        [replace(tried(SPECS[0], DEEP, 1), lowered=None, cost=None, same_as=Choices())],
    ],
    ids=["LDS does not fit", "does not compile", "equal", "equal, spills", "same text"],
)
def test_parity_stays(other: list[Tried]):
    assert best([tried(SPECS[0], Choices(), 10), *other]) == {"k": Choices()}


def test_a_candidate_with_the_text_of_another_has_its_figures():
    found = [tried(SPECS[0], Choices(), 10), Tried(SPECS[0], SMALL, "text", same_as=Choices())]
    found.append(Tried(SPECS[0], SMALL.replacing(depth="2"), "text", same_as=SMALL))
    assert figures_of(found, "one", SMALL) is figures_of(found, "one", found[2].choices) is found[0]
    assert figures_of(found, "one", DEEP) is None


def test_a_table_of_candidates_is_sorted_and_says_why_another_than_the_first_is_chosen():
    found = [tried(SPECS[0], Choices(), 10), tried(SPECS[0], DEEP, 9), tried(SPECS[0], SMALL, 5, fits=False)]
    found += [tried(SPECS[1], Choices(), 10), tried(SPECS[1], DEEP, 20), tried(SPECS[1], SMALL, 5, fits=False)]
    more = SMALL.replacing(depth="3")
    found.append(Tried(SPECS[0], more, "text", same_as=Choices()))
    first = [t for t in found if t.spec is SPECS[0]]
    entries = [
        {
            "candidate": t.choices.name, "same_as": t.same_as and t.same_as.name, "cycles": t.cost and t.cost.cycles,
            "efficiency": None, "metrics": METRICS.as_json(), "validation": "skipped", "diagnostics": [],
        }
        for t in first
    ]  # fmt: skip
    result = {"id": "one", "target": "gfx950", "chosen": "parity", "candidates": entries}
    console = Console(width=160)
    with console.capture() as said:
        console.print(_table(result, "parity", None))
    order = [line.split()[0] for line in said.get().splitlines()[2:]]
    assert order == [SMALL.name, DEEP.name, "parity"]
    assert _table(result, "parity", None).row_count == 3 and _table(result, "parity", 1).row_count == 2
    assert "clk" in said.get().splitlines()[1] and said.get().splitlines()[-1].split()[:2] == ["parity", "*"]
    assert _why(found, "one", DEEP) == f"{SMALL.name} is cheaper here and does not fit into LDS"
    assert _why([t for t in found if t.choices != SMALL], "one", Choices()) == (
        f"parity is the least in the mean over 2 launches: 10.0, {DEEP.name} 13.4"
    )
    assert _lines_below(result | {"why": ""}, True) == [f"the same code as parity: {more.name}"]
    assert _lines_below(result | {"why": "x"}, False) == ["*: x"] and "clocks of compute units per" in _unit([result])


def test_what_only_times_can_choose_is_not_searched():
    request = TranslateRequest("k.py", "gfx950")
    searched, shown = rows_for(request, SPECS[0]), rows_for(request, SPECS[0], timed=True)
    assert searched == tuple(x for x in shown if x in searched)
    timed = {"streamed", "streamed-loads", "per-xcd", "persistent", "persistent-2"}
    assert {x.name for x in shown} - {x.name for x in searched} == timed


def test_programs_stay_where_there_are_more_tiles_than_compute_units_and_nothing_else_is_launched():
    request, staying = TranslateRequest("k.py", "gfx950"), {"persistent", "persistent-2"}
    shown = {x.name for x in rows_for(request, SPECS[0], timed=True)}
    beside = rows_for(replace(request, fallback="general"), SPECS[0], timed=True)
    assert shown - {x.name for x in beside} == staying
    for tiles, left_out in ((257, set()), (256, staying)):
        few = rows_for(replace(request, grid=tiles), SPECS[0], timed=True)
        assert shown - {x.name for x in few} == left_out
    asked = replace(request, choices=choices_of(programs="persistent"))
    assert rows_for(replace(asked, grid=1), SPECS[0])


@pytest.mark.compile
def test_what_a_launch_tells_the_compiler_makes_another_candidate(tmp_path):
    """The code is the same: the compiler orders it in another way."""
    source = replace(SOURCES["matmul"], constexprs={"BM": 64, "BN": 64, "BK": 32})
    (tmp_path / "k.py").write_text(source.file)
    spec, ordered = source.launch(1), choices_of(scheduler="max-ilp")
    request = TranslateRequest(str(tmp_path / "k.py"), "gfx950", launches=(spec,))
    with WorkerPool(1) as pool:
        first, second = try_candidates(request, spec, pool, (Choices(), ordered))
    assert first.text[first.text.index("@gluon.jit") :] == second.text[second.text.index("@gluon.jit") :]
    assert not second.same_as and second.cost is not None and second.cost != first.cost
    assert "llvm_fn_attrs=amdgpu-sched-strategy=max-ilp" in second.text


def test_a_request_carries_its_choices():
    request = TranslateRequest("k.py", "gfx950", num_buffers=3, chosen=(("k", SMALL),))
    assert request.choices_for("k") == SMALL and request.choices_for("other") == choices_of(depth="3")


def searched(monkeypatch, budget: int, price) -> tuple[Choices, list[Choices]]:
    """What a search finds where choices cost `price(overrides)`, and what it tried in order."""
    order: list[Choices] = []

    def compiled(request, spec, pool, tries, before, costs_only):
        order.extend(tries)
        return [tried(spec, x, price(dict(x.overrides))) for x in tries]

    monkeypatch.setattr(search, "try_candidates", compiled)
    request = TranslateRequest("k.py", "gfx950", optimize="search", budget=budget)
    return search.search_kernel(request, SPECS[:1], None), order


def test_a_search_puts_one_choice_on_top_of_another(monkeypatch):
    """Depth and literal slots are worth most, and no row has the small matrix instruction on top of them."""

    def price(given: dict[str, str]) -> float:
        worth = {("depth", "3"): 10, ("slot-indices", "literal"): 20, ("matrix-size", "16"): 5}
        return 100 - sum(worth.get(pair, 0) for pair in given.items())

    found, order = searched(monkeypatch, 90, price)
    assert {"depth=3", "slot-indices=literal", "matrix-size=16"} <= set(found.words())
    assert len(set(order)) == len(order) <= 90 and order[0] == Choices()


def test_a_search_keeps_its_budget_and_the_defaults_where_nothing_is_better(monkeypatch):
    found, order = searched(monkeypatch, 5, lambda given: 1.0)
    assert found == Choices() and len(order) == 5


def test_what_changes_nothing_is_no_trial_and_not_put_on_top(monkeypatch):
    """Only depth and the matrix instruction make other texts here."""
    order: list[Choices] = []

    def made(request, spec, pool, tries, before, costs_only):
        order.extend(tries)
        own = {"depth", "matrix-size"}
        out = [tried(spec, x, 100 - sum(int(v) for n, v in x.overrides if n in own and v.isdigit())) for x in tries]
        return [
            (
                t
                if t.choices == Choices() or own & dict(t.choices.overrides).keys()
                else replace(t, same_as=Choices(), lowered=None)
            )
            for t in out
        ]

    monkeypatch.setattr(search, "try_candidates", made)
    rows = len(search.rows_for(TranslateRequest("k.py", "gfx950"), SPECS[0]))
    request = TranslateRequest("k.py", "gfx950", optimize="search", budget=rows)
    found, _ = search.search_tried(request, SPECS[:1], None)
    assert {"depth=4", "matrix-size=32"} <= set(found.words()) and len(order) > rows
    assert all(any(n in ("depth", "matrix-size") for n, _ in x.overrides) for x in order[rows:])


def test_a_choice_that_costs_more_alone_is_found_beside_what_it_goes_with(monkeypatch):
    """Registers cost 2 alone and save 6 beside the scheduler; one sweep over the rows finds all of it."""

    def price(given: dict[str, str]) -> float:
        worth = {("depth", "2"): 4, ("waves-per-eu", "2"): 10, ("scheduler", "max-ilp"): 3}
        registers = given.get("accumulator-registers") == "vgprs"
        goes_with = 6 if given.get("scheduler") == "max-ilp" else -2
        return 100 - sum(worth.get(pair, 0) for pair in given.items()) - registers * goes_with

    rows = len(search.rows_for(TranslateRequest("k.py", "gfx950"), SPECS[0]))
    found, _ = searched(monkeypatch, 2 * rows, price)
    assert price(dict(found.overrides)) == 100 - 4 - 10 - 3 - 6


def test_the_next_steps_build_on_the_best_and_begin_with_what_helped_most_when_it_was_tried_last():
    maxima, waves, ordered = (
        choices_of(maxima="scaled"),
        choices_of(waves_per_eu="2"),
        choices_of(scheduler="max-ilp"),
    )
    deep, Step = choices_of(depth="3"), search.Step
    rows = (Choices(), deep, waves, ordered, maxima)
    found = [tried(SPECS[0], x, price) for x, price in zip(rows, (100, 105, 95, 96, 90))]
    first = [Step(maxima, waves), Step(maxima, ordered)]
    assert search.next_steps(found, rows, []) == first
    found += [tried(SPECS[0], first[0].choices, 99), tried(SPECS[0], first[1].choices, 85)]
    better = first[1].choices
    second = [Step(better, deep), Step(better, waves)]
    assert search.next_steps(found, rows, first) == second
    found += [tried(SPECS[0], step.choices, 200) for step in second]
    assert search.next_steps(found, rows, first + second) == [Step(maxima, deep)], "nothing is left for the best"


def test_nothing_is_put_on_top_of_what_does_not_fit():
    maxima, waves = choices_of(maxima="scaled"), choices_of(waves_per_eu="2")
    found = [tried(SPECS[0], Choices(), 100), tried(SPECS[0], maxima, 1, fits=False), tried(SPECS[0], waves, 101)]
    steps = search.next_steps(found, (Choices(), maxima, waves), [])
    assert steps == [search.Step(waves, maxima)]


KERNEL = """
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + offs[:, None] * K + k + offs[None, :])
        b = tl.load(b_ptr + (k + offs)[:, None] * BLOCK + offs[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + offs[:, None] * BLOCK + offs[None, :], acc.to(tl.float16))
"""


def prepared(tmp_path, monkeypatch) -> list[str]:
    """The words of a command line for a small matmul, in its folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.py").write_text(KERNEL)
    tensor = {"tensor": {"dtype": "float16", "shape": [64, 64], "stride": [64, 1], "storage": 4096, "offset": 0}}
    launch = {
        "id": "k/64", "kernel": "kernel", "source": "kernel.py", "grid": [1],
        "signature": {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "K": "i32", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 64}, "attrs": {"a_ptr": "DS", "b_ptr": "DS", "c_ptr": "DS", "K": "D"},
        "options": {"num_warps": 4, "num_stages": 2},
        "values": {"a_ptr": tensor, "b_ptr": tensor, "c_ptr": tensor, "K": 64, "BLOCK": 64},
    }  # fmt: skip
    (tmp_path / "launches.json").write_text(json.dumps({"version": 1, "launches": [launch]}))
    return ["kernel.py", "-t", "gfx950", "-l", "launches.json", "-j", "1"]


@pytest.mark.compile
def test_the_same_text_with_another_launch_is_a_candidate_of_its_own():
    kernel = Path(__file__).resolve().parents[2] / "fixtures" / "softmax"
    spec = read_launches(str(kernel / "launches.json"))[0]
    request = TranslateRequest(str(kernel / "kernel.py"), "gfx942", (spec.kernel,), launches=(spec,))
    with WorkerPool(1, timeout=60.0) as pool:
        one, waves, small = try_candidates(request, spec, pool, (Choices(), choices_of(waves_per_eu="2"), SMALL))
        (again,) = try_candidates(request, spec, pool, (SMALL,), (one, waves))
        (more,) = try_candidates(request, spec, pool, (choices_of(waves_per_eu="2", matrix_size="16"),), (one, waves))
    assert not waves.same_as and waves.lowered is not None
    assert waves.text.replace("waves_per_eu=2, ", "") == one.text  # the header says it
    assert small.same_as == again.same_as == one.choices and again.lowered is None
    assert more.same_as == waves.choices


@pytest.mark.slow
@pytest.mark.compile
def test_tune_writes_candidates_and_their_figures(tmp_path, monkeypatch):
    given = prepared(tmp_path, monkeypatch)
    assert run(["-q", "tune", *given, "-o", "out", "--json", "t.json"]) == 0
    (result,) = json.loads((tmp_path / "t.json").read_text())["results"]
    by_name = {c["candidate"]: c for c in result["candidates"]}
    assert by_name["parity"]["metrics"]["loop"]["mma"] > 0 and by_name["parity"]["same_as"] is None
    assert {c["validation"] for c in result["candidates"] if c["metrics"]} == {"validated"}
    skipped = [c for c in result["candidates"] if not c["metrics"]]
    assert all(c["diagnostics"] and c["validation"] == "skipped" for c in skipped), "what is refused says why"
    assert result["chosen"] in by_name
    files = {c["file"] for c in result["candidates"] if c["metrics"]}
    assert files == {f"out/{p.name}" for p in (tmp_path / "out").iterdir()} and len(files) > 1
    assert (
        run(["-q", "translate", *given, "-o", "best.py", "--optimize", "aggressive", "--no-validate", "--no-parity"])
        == 0
    )
    with open(by_name[result["chosen"]]["file"] or by_name[by_name[result["chosen"]]["same_as"]]["file"]) as file:
        chosen = file.read()
    text = (tmp_path / "best.py").read_text()
    assert chosen[chosen.index("@gluon.jit") :].strip() in text


@pytest.mark.compile
def test_what_a_search_found_is_recorded_and_not_searched_for_again(tmp_path, monkeypatch):
    given = prepared(tmp_path, monkeypatch)
    monkeypatch.setenv("GLUONIZE_CACHE_DIR", str(tmp_path / "results"))
    monkeypatch.setattr(search, "search_kernel", lambda request, launches, pool: choices_of(depth="3"))
    words = [*given, "-o", "out.py", "--no-validate", "--no-parity", "--no-compile"]
    assert run(["-q", "translate", *words, "--optimize", "search", "--budget", "7"]) == 0
    text = (tmp_path / "out.py").read_text()
    assert "--optimize search --budget 7 --found kernel:depth=3" in text and "NUM_BUFFERS: gl.constexpr = 3" in text

    def never(*_):
        raise AssertionError("searched again")

    monkeypatch.setattr(search, "search_kernel", never)
    monkeypatch.setenv("GLUONIZE_CACHE_DIR", str(tmp_path / "empty"))
    assert run(["-q", "check", "out.py"]) == 0
    (tmp_path / "out.py").write_text(text.replace("gl.constexpr = 3", "gl.constexpr = 4", 1))
    assert run(["-q", "check", "out.py"]) == 1  # made again to see that it was edited
    assert run(["-q", "check", "out.py", "--allow-edits"]) == 0
