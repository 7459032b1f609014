"""Other tiles for a launch: which keep the results, what their grid is, and what is searched."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gluonize.decide.choices.chosen import Choices
from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.judge.verdict.tiles_agree import why_tiles_differ
from gluonize.product.cli.console import Verbosity
from gluonize.product.cli.edge import run
from gluonize.product.cli.machine_code import tune
from gluonize.product.cli.translate import retile as retile_command
from gluonize.read.spec.launch import LaunchSpec, RefusedLaunch, read_launches
from gluonize.read.spec.tiles import formulas, moved, neighbours, tile_of, with_tile
from gluonize.request import TranslateRequest
from gluonize.search import retile, search
from gluonize.search.choose import Tried

MATMUL = Path(__file__).resolve().parents[2] / "fixtures" / "matmul"
SOURCE = str(MATMUL / "kernel.py")
LAUNCH = replace(read_launches(str(MATMUL / "launches.json"))[0], source=SOURCE)
REQUEST = TranslateRequest(SOURCE, "gfx942", launches=(LAUNCH,), optimize="search", budget=4)
OWN = (("BLOCK_K", 64), ("BLOCK_M", 128), ("BLOCK_N", 128), ("num_warps", 4))

WHOLE_ROWS = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, M, D, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_D)
    at = rows[:, None] * D + columns[None, :]
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=rows[:, None] < M, other=0.0) * 2.0, mask=rows[:, None] < M)
"""


def test_the_likeliest_formula_pairs_names_that_belong_together():
    assert tile_of(LAUNCH) == OWN
    found = formulas(LAUNCH)
    assert str(found[0]) == "(cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N))"
    assert str(found[-1]) == "(6)" and all(formula.grid({"M": 272, "N": 208, "K": 144, "stride_am": 144,
        "stride_bk": 208, "stride_cm": 208, "GROUP_M": 8}, OWN) == (6,) for formula in found)  # fmt: skip
    assert formulas(replace(LAUNCH, grid=())) == []


def test_a_launch_with_another_tile():
    tile = moved(OWN, ("BLOCK_M", "num_warps"), 1)
    made = with_tile(LAUNCH, tile, formulas(LAUNCH)[0])
    assert (made.constexprs["BLOCK_M"], made.values["BLOCK_M"], made.options["num_warps"]) == (256, 256, 8)
    assert made.grid == (4,) and made.constexprs["BLOCK_N"] == 128 and made.id == LAUNCH.id


def test_sizes_have_limits():
    assert moved((("BLOCK_K", 16), ("num_warps", 1)), ("BLOCK_K",), -1) is None
    assert moved((("BLOCK_K", 16), ("num_warps", 1)), ("num_warps",), -1) is None
    assert moved((("BLOCK_K", 16), ("num_warps", 16)), ("num_warps",), 1) is None


def test_neighbours_change_what_may_change_and_the_warps():
    found = set(neighbours(OWN, frozenset({("BLOCK_M", 1), ("BLOCK_K", -1)})))
    assert found == {moved(OWN, names, way) for names, way in (
        (("BLOCK_M",), 1), (("num_warps",), 1), (("BLOCK_M", "num_warps"), 1),
        (("BLOCK_K",), -1), (("num_warps",), -1), (("BLOCK_K", "num_warps"), -1))}  # fmt: skip


def agrees(names: tuple[str, ...], way: int, number: int) -> str:
    """What speaks against doubling or halving, with the formula of this number."""
    other = with_tile(LAUNCH, moved(OWN, names, way), formulas(LAUNCH)[number])
    return why_tiles_differ(SOURCE, LAUNCH, other, "gfx942", (), False)


@pytest.mark.compile
def test_the_source_says_whether_a_tile_keeps_its_results():
    assert agrees(("BLOCK_M",), 1, 0) == agrees(("BLOCK_K",), -1, 0) == ""
    assert "elements differ" in agrees(("BLOCK_M",), -1, -1)  # half as many rows on as many programs
    wide = replace(with_tile(LAUNCH, OWN, formulas(LAUNCH)[0]), grid=(300,))
    assert "is not run" in why_tiles_differ(SOURCE, LAUNCH, wide, "gfx942", (), False)


def rows_launch(folder: Path) -> LaunchSpec:
    (folder / "rows.py").write_text(WHOLE_ROWS)
    tensor = {"tensor": {"dtype": "float32", "shape": [70, 64], "stride": [64, 1], "storage": 4480, "offset": 0}}
    signature = {
        "x_ptr": "*fp32",
        "y_ptr": "*fp32",
        "M": "i32",
        "D": "i32",
        "BLOCK_M": "constexpr",
        "BLOCK_D": "constexpr",
    }
    values = {"x_ptr": tensor, "y_ptr": tensor, "M": 70, "D": 64, "BLOCK_M": 32, "BLOCK_D": 64}
    source, sizes = str(folder / "rows.py"), {"BLOCK_M": 32, "BLOCK_D": 64}
    return LaunchSpec("rows", "kernel", source=source, signature=signature, constexprs=sizes, grid=(3,), values=values)


@pytest.mark.compile
def test_a_size_that_is_one_of_the_data_stays(tmp_path: Path):
    spec = rows_launch(tmp_path)
    request = replace(REQUEST, source=spec.source, launches=(spec,))
    with WorkerPool(1, timeout=60.0) as pool:
        follows = retile._follows(request, spec, pool)
        found = retile.retile_kernel(request, (spec,), pool)
    assert str(follows.formula) == "(cdiv(M, BLOCK_M))"
    assert follows.moves == {
        ("BLOCK_M", 1),
        ("BLOCK_M", -1),
    }  # other rows would be read with twice BLOCK_D, none with half
    assert found.launches == (spec,) and "multiplies no matrices" in found.why


@pytest.mark.parametrize(
    "launches, why",
    [
        ((LAUNCH, with_tile(LAUNCH, moved(OWN, ("BLOCK_M",), 1), formulas(LAUNCH)[0])), "several tiles"),
        ((replace(LAUNCH, grid=()),), "without grid"),
        ((replace(LAUNCH, values={}),), "without grid or values"),
    ],
)
def test_what_keeps_its_tile(launches, why: str):
    found = retile.retile_kernel(REQUEST, launches, None)
    assert found.launches == launches and found.tile == found.own and why in found.why


def figures(clk: float, work: float, outside: float):
    hot = SimpleNamespace(cycles=clk, alone=clk, work=work, workgroups=1, efficiency=0.5, bounds={"matrix": clk})
    traffic = SimpleNamespace(received=0.0, read=0.0, fetched=0.0)
    cycles = SimpleNamespace(target="gfx942", ctas=1, hot=hot, work=work, outside=outside, traffic=traffic, staying=0)
    return [SimpleNamespace(lowered=SimpleNamespace(cycles=cycles, lds_overflow=lambda: None))]


def test_what_is_outside_of_a_loop_is_shared_by_the_same_work():
    walk = retile._Walk(REQUEST, (LAUNCH,), (formulas(LAUNCH)[0],), None)
    own, _ = walk.cost_of(OWN, figures(1000.0, 1e6, 64_000.0))
    assert own == 1000.0 + 64_000.0 / 64
    deep, wide = moved(OWN, ("BLOCK_K",), 1), moved(OWN, ("BLOCK_M",), 1)
    assert walk.cost_of(deep, figures(2000.0, 2e6, 64_000.0))[0] == own  # half as many iterations of twice the work
    assert walk.cost_of(wide, figures(2000.0, 2e6, 64_000.0))[0] == 1000.0 + 64_000.0 / 128  # half as many programs


@pytest.mark.compile
def test_sizes_of_a_launch_that_is_too_large_to_be_run_stay():
    spec = replace(LAUNCH, grid=(272,), values={**LAUNCH.values, "M": 272 * 128, "N": 128})
    with WorkerPool(1, timeout=60.0) as pool:
        follows = retile._follows(REQUEST, spec, pool)
    assert not follows.moves and "with less data" in follows.why_not


def test_a_tile_that_the_check_refuses_at_last_is_passed_over(monkeypatch):
    better, own = moved(OWN, ("BLOCK_M",), 1), OWN
    tried = [retile.TriedTile(better, Choices(), 1.0, 1.0), retile.TriedTile(own, Choices(), 2.0, 0.5)]
    monkeypatch.setattr(retile, "_follows", lambda *_: retile._Follows(formulas(LAUNCH)[0], frozenset()))
    monkeypatch.setattr(retile._Walk, "price", lambda *_: True)
    monkeypatch.setattr(retile._Walk, "from_best", lambda *_: None)
    monkeypatch.setattr(retile._Walk, "with_choices", lambda *_: tried)
    for why, tile in (("", better), ("other results", own)):
        monkeypatch.setattr(retile, "_why_not", lambda *_: why)
        assert retile.retile_kernel(REQUEST, (LAUNCH,), None).tile == tile


def test_a_walk_goes_on_from_the_best_until_nothing_is_better(monkeypatch):
    walk = retile._Walk(replace(REQUEST, budget=100), (LAUNCH,), (formulas(LAUNCH)[0],), None)

    def price(self, tiles):
        self.costs |= {tile: abs(math.log2(dict(tile)["BLOCK_M"] / 1024)) + dict(tile)["num_warps"] for tile in tiles}

    monkeypatch.setattr(retile._Walk, "price", price)
    walk.price((OWN,))
    walk.from_best(frozenset({("BLOCK_M", 1)}))
    assert dict(walk.ranked()[0]) == dict(OWN) | {"BLOCK_M": 1024, "num_warps": 1}
    short = retile._Walk(replace(REQUEST, budget=2), (LAUNCH,), (formulas(LAUNCH)[0],), None)
    short.price((OWN,))
    short.from_best(frozenset({("BLOCK_M", 1)}))
    assert len(short.costs) == 3


@pytest.mark.compile
def test_a_walk_prices_what_it_compiles():
    walk = retile._Walk(REQUEST, (LAUNCH,), (formulas(LAUNCH)[0],), WorkerPool(1, timeout=60.0))
    with walk.pool:
        assert walk.price((OWN, moved(OWN, ("num_warps",), 1)))
    assert walk.ranked()[0] == OWN and min(walk.needs.values()) > 0  # 8 warps read more of LDS for the same work


@pytest.mark.compile
def test_a_translation_for_the_tile_that_was_found_is_made_again_without_a_search(tmp_path, monkeypatch, capsys):
    tile, formula = moved(OWN, ("BLOCK_K",), -1), formulas(LAUNCH)[0]
    tried = (retile.TriedTile(tile, Choices(), 1.0, 1.0), retile.TriedTile(OWN, Choices(), 2.0, 0.5))

    def found(request, launches, pool):
        made = tuple(with_tile(spec, tile, formula) for spec in launches)
        return retile.Retiled(LAUNCH.kernel, OWN, tile, made, (formula,), tried)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GLUONIZE_CACHE_DIR", str(tmp_path / "results"))
    monkeypatch.setattr(retile_command, "retile_kernel", found)
    monkeypatch.setattr(search, "search_kernel", lambda *_: Choices())
    shutil.copy(SOURCE, "kernel.py")
    launches = {"version": 1, "launches": [{**LAUNCH.as_json(), "source": "kernel.py"}]}
    Path("launches.json").write_text(json.dumps(launches))
    words = [
        "kernel.py",
        "-t",
        "gfx942",
        "-l",
        "launches.json",
        "-o",
        "out.py",
        "-j",
        "1",
        "--no-validate",
        "--no-parity",
    ]
    assert run(["translate", *words, "--retile", "tiles.json"]) == 2  # nothing is searched without --optimize search
    capsys.readouterr()
    assert run(["translate", *words, "--optimize", "search", "--retile", "tiles.json"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "launch matmul_kernel with BLOCK_K=32, BLOCK_M=128, BLOCK_N=128, num_warps=4 on a grid of" in said
    (spec,) = read_launches("tiles.json")
    assert spec.source == "kernel.py" and tile_of(spec) == tile
    text = Path("out.py").read_text()
    assert "launches=tiles.json" in text and "BLOCK_K == 32" in text
    assert run(["translate", *words, "--optimize", "search", "--retile", "tiles.json"]) == 2  # it is there already
    monkeypatch.setattr(retile_command, "retile_kernel", lambda *_: pytest.fail("searched again"))
    assert run(["-q", "check", "out.py"]) == 0


def test_tune_tries_the_candidates_of_the_launches_that_were_found(tmp_path, monkeypatch):
    tile, formula, seen = moved(OWN, ("BLOCK_K",), -1), formulas(LAUNCH)[0], []

    def found(request, launches, pool):
        return retile.Retiled(LAUNCH.kernel, OWN, tile, tuple(with_tile(spec, tile, formula) for spec in launches))

    def tried(request, spec, pool):
        seen.append(spec)
        return [Tried(spec, Choices())]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(retile_command, "retile_kernel", found)
    monkeypatch.setattr(tune, "try_candidates", tried)
    shutil.copy(SOURCE, "kernel.py")
    Path("launches.json").write_text(
        json.dumps({"version": 1, "launches": [{**LAUNCH.as_json(), "source": "kernel.py"}]})
    )
    words = ["tune", "kernel.py", "-l", "launches.json", "-j", "1", "--no-validate", "--retile", "tiles.json"]
    assert run([*words, "-t", "gfx942,gfx950"]) == 2 and not Path("tiles.json").exists()
    assert run([*words, "-t", "gfx942"]) == 1  # nothing of it compiles here
    assert [tile_of(spec) for spec in seen] == [tile] == [tile_of(spec) for spec in read_launches("tiles.json")]


def test_a_launch_with_something_wrong_in_it_ends_the_search(tmp_path):
    wrong = RefusedLaunch("a", LAUNCH.kernel, problems=(Diagnostic("spec-field", "grid: it is text"),))
    for launches, code in (((), "usage"), ((LAUNCH, wrong), "spec-field")):
        with pytest.raises(TranslationError) as raised:
            retile_command.retile(replace(REQUEST, launches=launches), str(tmp_path / "t.json"), None, Verbosity())
        assert raised.value.diagnostics[0].code == code and not (tmp_path / "t.json").exists()
