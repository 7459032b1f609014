"""`validate --device hip`, `bench` and `run-bundle` as on a machine with an AMD GPU: real code objects, a fake driver.

The fake driver computes y = x + 1 for whatever it is given, so the kernel of these tests does just that.
"""

import json

import pytest

from device_fake_driver import build_fake_driver
from gluonize.product.cli.edge import run

SOURCE = """
import triton
import triton.language as tl


@triton.jit
def next_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)
"""
OUT = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def next_kernel(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout)
    mask = offsets < n
    gl.store(y_ptr + offsets, gl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)
"""
TENSOR = {"tensor": {"dtype": "float32", "shape": [1500], "stride": [1], "storage": 1500, "offset": 0}}
LAUNCH = {
    "id": "next/one",
    "kernel": "next_kernel",
    "source": "source.py",
    "signature": {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"},
    "constexprs": {"BLOCK": 1024},
    "attrs": {"x_ptr": "D", "y_ptr": "D"},
    "options": {"num_warps": 4},
    "grid": [2],
    "values": {"x_ptr": TENSOR, "y_ptr": TENSOR, "n": 1499},
}
VALIDATE = ["validate", "source.py", "out.py", "-t", "gfx942", "-l", "l.json", "--json", "r.json"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_fake_driver("hip", tmp_path_factory.mktemp("driver"))


@pytest.fixture
def folder(library, tmp_path, monkeypatch):
    """The files, on a machine whose only GPU is the fake AMD one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GLUONIZE_LIBAMDHIP64", library)
    monkeypatch.setenv("GLUONIZE_LIBCUDA", str(tmp_path / "none.so"))
    monkeypatch.setenv("FAKE_DRIVER_LOG", str(tmp_path / "log"))
    (tmp_path / "source.py").write_text(SOURCE)
    (tmp_path / "out.py").write_text(OUT)
    (tmp_path / "l.json").write_text(json.dumps([LAUNCH]))
    return tmp_path


def result(folder) -> dict:
    (found,) = json.loads((folder / "r.json").read_text())["results"]
    return found


@pytest.mark.compile
@pytest.mark.parametrize("device", ["hip", "auto"])
def test_source_and_translation_run_natively_are_compared_and_timed(device, folder, capsys):
    assert run([*VALIDATE, "--device", device]) == 0
    found = result(folder)
    validation = found["validation"]
    assert found["status"] == "validated" and validation["ran_as"] == "the translation itself"
    assert [(code["of"], code["matched"], code["runs"]) for code in validation["codes"]] == [
        ("translation", 3, 3),
        ("source", 3, 3),
    ]
    assert validation["numbers"] == validation["numbers_of_source"] == "match in 3 of 3 runs"
    assert validation["bench"]["ratio"] == 1.0 and validation["bench"]["translation"]["median"] == 250.0
    lines = (folder / "log").read_text().splitlines()
    # Grid, threads and LDS of the real code objects; LDS is poisoned before each of the three runs of each.
    assert sum(line.startswith("next_kernel 2 256 0") for line in lines) >= 6
    assert sum(line.startswith("poison_lds") for line in lines) >= 6
    said = capsys.readouterr().out
    assert "on fake device (the translation itself)" in said
    assert "numbers: match in 3 of 3 runs (Triton's own compile of the source: match in 3 of 3 runs)" in said
    assert "time of the translation relative to the source's: 1.0" in said


@pytest.mark.compile
def test_wrong_numbers_are_a_mismatch_and_not_timed(folder, monkeypatch):
    monkeypatch.setenv("FAKE_DRIVER_BEHAVIOUR", "wrong")
    assert run(["-q", *VALIDATE, "--device", "hip"]) == 1
    validation = result(folder)["validation"]
    assert validation["status"] == "mismatch" and validation["numbers"] == "differ in 3 of 3 runs"
    assert "ratio" not in validation["bench"]


@pytest.mark.compile
def test_bench_prints_median_spread_ratio_and_bandwidth(folder, capsys):
    command = ["bench", "out.py", "-t", "gfx942", "-l", "l.json", "--samples", "5", "--json", "r.json"]
    assert run(command) == 0
    expected = "next/one gfx942: 250.0 us (250.0 to 250.0), Triton 250.0 us (250.0 to 250.0), ratio 1.0, 0.048 GB/s"
    assert expected in capsys.readouterr().out
    entry = result(folder)["bench"]
    assert entry["translation"]["samples"] == entry["source"]["samples"] == 5 and "TFLOPS" not in entry["source"]


@pytest.mark.compile
def test_a_bundle_made_elsewhere_runs_here(folder, capsys):
    assert (
        run(["bundle", "out.py", "-k", "next_kernel", "-t", "gfx942", "-l", "l.json", "-o", "b.zip", "--device", "hip"])
        == 0
    )
    assert run(["run-bundle", "b.zip"]) == 0
    assert "numbers: match in 3 of 3 runs" in capsys.readouterr().out


def test_matrix_products_are_reckoned_in_tflops():
    from gluonize.product.cli.running.bench import line, times

    codes = [
        {"of": of, "microseconds": {"median": m, "least": m, "most": m, "samples": 9}}
        for of, m in (("source", 20.0), ("translation", 10.0))
    ]
    outcome = {"device": "d", "numbers": "match in 3 of 3 runs", "hazards": "not run", "codes": codes}
    entry = times(outcome, {"tensors": [{"bytes": 1000}], "flops": 2 * 1000**3})
    assert (entry["translation"]["TFLOPS"], entry["source"]["TFLOPS"], entry["ratio"]) == (200.0, 100.0, 0.5)
    assert "ratio 0.5, 200.0 TFLOPS" in line("a", "gfx942", entry)
