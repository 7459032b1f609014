"""Predicted clocks of a translation beside Triton's: what is compared, and when it is too much."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from test_cycles_estimate import LOOP, assembly

from gluonize.judge.cycles.analysis import analyze
from gluonize.judge.cycles.clocks import clocks_of
from gluonize.product.cli.console import Verbosity
from gluonize.product.cli.edge import run
from gluonize.product.cli.project import check as check_command
from gluonize.product.cli.translate.result_lines import speed_of
from gluonize.product.project.checks.check import FileState
from gluonize.product.project.files.planned import ProjectFile
from gluonize.product.project.output.provenance import parse_provenance, without_line
from gluonize.product.project.output.verdict import clocks_said, level_of, with_verdict, without_verdict
from gluonize.product.project.translate.report import CheckedLaunch

ORIGIN = (
    "# Generated\n# for gfx950\n# gluonize: source=a.py:0 launches=l.json:0 target=gfx950 triton=3 output=0\nx = 1\n"
)
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
PRODUCT = "v_mfma_f32_16x16x32_f16 v[8:11], v[4:7], v[4:7], v[8:11]\n"


def walked(text: str):
    return analyze(assembly(text), "gfx950", 4)


def test_clocks_are_for_the_same_matrix_work():
    plain = walked(LOOP)
    assert clocks_of(plain, plain).ratio == 1 and not clocks_of(plain, plain).above(1.0)
    unrolled = clocks_of(walked(LOOP.replace(PRODUCT, PRODUCT * 2)), plain)
    assert unrolled.ours.cycles > plain.hot.cycles and unrolled.ratio < 1.05
    slow = clocks_of(walked(LOOP.replace(PRODUCT, PRODUCT + "v_exp_f32 v9, v10\n" * 20)), plain)
    assert slow.ratio > 2 and slow.above(1.05).startswith("hottest loop is predicted to take ") and not slow.above(1000)
    assert slow.reason.startswith("vector takes ")
    lone = replace(plain, loops=tuple(replace(x, workgroups=x.workgroups - 1) for x in plain.loops))
    assert clocks_of(lone, plain).reason.endswith(
        f"holds {lone.hot.workgroups} workgroups of it, and {plain.hot.workgroups} of Triton's"
    )
    cluster = clocks_of(replace(plain, ctas=2), plain)
    assert cluster.ratio == 0.5


def test_loops_without_products_are_not_compared():
    assert clocks_of(walked(LOOP.replace(PRODUCT, "v_exp_f32 v9, v10\n")), walked(LOOP)) is None
    assert clocks_of(walked(LOOP), None) is None


@pytest.mark.compile
@pytest.mark.parametrize("gate, status", [("100", 0), ("0.01", 1)])
def test_the_gate_decides_the_exit_status(gate: str, status: int, tmp_path: Path, capfd):
    matmul = FIXTURES / "matmul"
    launches = json.loads((matmul / "launches.json").read_text())["launches"]
    (tmp_path / "l.json").write_text(json.dumps(launches[:1]))
    files = [str(matmul / "kernel.py"), str(matmul / "golden" / "gfx950.py")]
    words = ["parity", *files, "-t", "gfx950", "-l", str(tmp_path / "l.json"), "--json", str(tmp_path / "r.json")]
    assert run([*words, "--gate", gate, "-j", "1"]) == status
    (found,) = json.loads((tmp_path / "r.json").read_text())["results"]
    assert 0.01 < found["parity"]["clocks"] < 100
    first = capfd.readouterr().out.splitlines()[0]
    assert "the predicted clocks of Triton in the hottest loop" in first


def test_check_reads_the_clocks_of_the_header(tmp_path: Path, monkeypatch, capsys):
    plain = walked(LOOP)
    slow = clocks_of(walked(LOOP.replace(PRODUCT, PRODUCT + "v_exp_f32 v9, v10\n" * 20)), plain)
    output = tmp_path / "a_gfx950.py"
    text = with_verdict(ORIGIN, [], [clocks_of(plain, plain), slow])
    output.write_text(text)
    assert clocks_said(text) == round(slow.ratio, 2) and clocks_said(ORIGIN) is None and level_of(text) == "none"
    assert without_verdict(text) == ORIGIN and without_line(text) == without_line(ORIGIN)
    assert parse_provenance(text) == parse_provenance(ORIGIN) is not None
    file = ProjectFile(source="a.py", target="gfx950", output=str(output), launches=None)
    monkeypatch.setattr(check_command, "project_files", lambda *_: (file,))

    def status(state: FileState, **gate: float) -> int:
        monkeypatch.setattr(check_command, "states_of", lambda *_: [state])
        return check_command.run_check(check_command.CheckOptions(cache=False, jobs=1, **gate), Verbosity())

    current = FileState(file, "current")
    assert [status(current), status(current, gate=0.0), status(current, gate=100.0)] == [1, 0, 0]
    assert f"is predicted to take {slow.ratio:.2f} of the clocks" in capsys.readouterr().err
    assert status(replace(current, state="edited", edited=True), gate=1.05) == 1  # as edited, and for nothing else
    assert "clocks" not in capsys.readouterr().err


def test_clocks_decide_what_of_a_loop_is_worse():
    plain = walked(LOOP)
    slow = clocks_of(walked(LOOP.replace(PRODUCT, PRODUCT + "v_exp_f32 v9, v10\n" * 20)), plain)
    found = {"barriers": ["hottest loop has 4 barriers per tile, Triton's 3"], "spills": ["spills 3 VGPRs, Triton 0"]}
    parity = mock.Mock(**{"worse.return_value": found, "as_json.return_value": {"ratios": {}}})
    launch = CheckedLaunch(mock.Mock(), "translated", parity=parity)
    assert launch.worse == (*found["barriers"], *found["spills"]) and launch.parity_json() == {"ratios": {}}
    assert replace(launch, clocks=clocks_of(plain, plain)).worse == ("spills 3 VGPRs, Triton 0",)
    assert replace(launch, clocks=slow).worse == (slow.above(1.05), *found["barriers"], *found["spills"])
    assert replace(launch, clocks=slow).parity_json() == {
        "ratios": {},
        "clocks": round(slow.ratio, 4),
        "slower": slow.above(1.05),
    }
    both = [replace(launch, parity=None, clocks=found) for found in (slow, clocks_of(plain, plain))]
    assert speed_of(both) == f"1.00x to {slow.ratio:.2f}x clocks of Triton"
    assert replace(launch, parity=None).worse == () and replace(launch, parity=None).parity_json() is None


@pytest.mark.compile
def test_translate_says_clocks_first(tmp_path: Path, capfd):
    matmul = FIXTURES / "matmul"
    launches = json.loads((matmul / "launches.json").read_text())["launches"]
    (tmp_path / "l.json").write_text(json.dumps(launches[:1]))
    words = ["translate", str(matmul / "kernel.py"), "-t", "gfx950", "-l", str(tmp_path / "l.json"), "--no-validate"]
    assert run([*words, "-o", str(tmp_path / "out.py"), "--json", str(tmp_path / "r.json"), "-j", "1"]) == 0
    (found,) = json.loads((tmp_path / "r.json").read_text())["results"]
    assert f"✓ matmul_kernel  translated  {found['parity']['clocks']:.2f}x clocks of Triton" in capfd.readouterr().out
