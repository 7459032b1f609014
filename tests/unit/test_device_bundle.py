"""`gluonize bundle` and what goes into a bundle; what the commands say where no GPU is."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gluonize.judge.device.bundles.expected import expected_tensors
from gluonize.judge.machine.stages import source_stage
from gluonize.product.cli.edge import run
from gluonize.read.spec.launch import LaunchSpec

SOURCE = """
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, count_ptr, n, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x * scale, mask=mask)
    tl.atomic_add(count_ptr, tl.sum(mask.to(tl.int32)))
"""
OUT = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def add_kernel(x_ptr, y_ptr, count_ptr, n, scale, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout)
    mask = offsets < n
    x = gl.load(x_ptr + offsets, mask=mask)
    gl.store(y_ptr + offsets, x * scale, mask=mask)
    gl.atomic_add(count_ptr, gl.sum(mask.to(gl.int32), 0))
"""


def tensor(dtype, size, **more):
    return {"tensor": {"dtype": dtype, "shape": [size], "stride": [1], "storage": size, "offset": 0, **more}}


LAUNCH = {
    "id": "add/one",
    "kernel": "add_kernel",
    "source": "source.py",
    "signature": {
        "x_ptr": "*fp32",
        "y_ptr": "*fp32",
        "count_ptr": "*i32",
        "n": "i32",
        "scale": "fp32",
        "BLOCK": "constexpr",
    },
    "constexprs": {"BLOCK": 1024},
    "attrs": {"x_ptr": "D", "y_ptr": "D", "count_ptr": "D"},
    "options": {"num_warps": 4},
    "grid": [2],
    "values": {
        "x_ptr": tensor("float32", 1500),
        "y_ptr": tensor("float32", 1500),
        "count_ptr": tensor("int32", 1, data=[5]),
        "n": 1499,
        "scale": 3.0,
    },
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for variable in ("GLUONIZE_LIBCUDA", "GLUONIZE_LIBAMDHIP64"):
        monkeypatch.setenv(variable, str(tmp_path / "none.so"))
    (tmp_path / "source.py").write_text(SOURCE)
    (tmp_path / "out.py").write_text(OUT)
    (tmp_path / "l.json").write_text(json.dumps([LAUNCH]))
    return tmp_path


def bundle(folder: Path, name: str, *options: str) -> int:
    return run(["bundle", "out.py", "-k", "add_kernel", "-t", "gfx942", "-l", "l.json", "-o", name, *options])


def test_bundle_holds_everything_and_is_deterministic(folder):
    assert bundle(folder, "a.zip") == 0 and bundle(folder, "b.zip") == 0
    assert (folder / "a.zip").read_bytes() == (folder / "b.zip").read_bytes()
    archive = zipfile.ZipFile(folder / "a.zip")
    manifest = json.loads(archive.read("manifest.json"))
    codes = {code["name"]: code for code in manifest["codes"]}
    assert set(codes) == {"translation", "source", "cuda", "cuda-consan", "cuda-source"}
    assert {name for name in codes if codes[name]["of"] == "source"} == {"source", "cuda-source"}
    assert codes["translation"]["block"] == codes["cuda"]["block"] == 256 and codes["cuda"]["grid"] == [2, 1, 1]
    assert [(a["name"], a["kind"], a["size"]) for a in manifest["arguments"]] == [
        ("x_ptr", "tensor", 8),
        ("y_ptr", "tensor", 8),
        ("count_ptr", "tensor", 8),
        ("n", "scalar", 4),
        ("scale", "scalar", 4),
    ]
    assert [a.get("bytes") for a in manifest["arguments"]][3:] == ["db050000", "00004040"]
    assert {p["kind"] for p in manifest["poison"]} == {"hsaco", "cubin"}
    assert set(manifest["provenance"]) >= {"gluonize", "triton", "sha256", "files", "runner"}

    def array(name: str) -> np.ndarray:
        return np.load(io.BytesIO(archive.read(name)))

    x, y, after = array("initial/x_ptr.npy"), array("initial/y_ptr.npy"), array("expected/y_ptr.npy")
    np.testing.assert_array_equal(after[:1499], x[:1499] * np.float32(3))
    assert np.isnan(y[:1499]).all() and y[1499] == after[1499], "what the kernel writes is poisoned, nothing else"
    assert (
        array("initial/count_ptr.npy")[0] == 5 and array("expected/count_ptr.npy")[0] == 5 + 1499
    ), "an atomic keeps its start"


def test_launch_that_the_reference_cannot_run_is_refused(folder, capsys):
    broken = dict(LAUNCH, values=dict(LAUNCH["values"], n=4000))
    (folder / "l.json").write_text(json.dumps([broken]))
    assert bundle(folder, "a.zip") == 2
    assert "the source is at fault on these inputs" in capsys.readouterr().err and not (folder / "a.zip").exists()


def test_asked_for_device_that_cannot_be_is_refused(folder, capsys):
    (folder / "out.py").write_text(
        OUT.replace("x * scale,", 'gl.inline_asm_elementwise("v_mov_b32 $0, $1", "=v,v", [x], gl.float32, True, 1),')
    )
    assert bundle(folder, "a.zip", "--device", "cuda") == 2
    assert "tt.elementwise_inline_asm" in capsys.readouterr().err
    assert bundle(folder, "a.zip") == 0, "the AMD code object can still go in"
    assert "not in it: cuda: tt.elementwise_inline_asm" in capsys.readouterr().out


def test_a_source_that_cannot_be_retargeted_is_left_out(folder, capsys):
    (folder / "source.py").write_text(SOURCE.replace("x * scale,", "x.to(tl.float8e4b8).to(tl.float32) * scale,"))
    bundle(folder, "a.zip", "--device", "cuda")
    assert "cuda: the source's own code object is left out: f8E4M3FNUZ" in capsys.readouterr().out
    manifest = json.loads(zipfile.ZipFile(folder / "a.zip").read("manifest.json"))
    assert {code["name"] for code in manifest["codes"]} == {"cuda", "cuda-consan"}


def test_commands_without_a_gpu(folder, capsys):
    assert (
        run(["validate", "source.py", "out.py", "-t", "gfx942", "-l", "l.json", "--device", "auto", "--no-variants"])
        == 0
    )
    said = capsys.readouterr()
    assert said.err.strip() == "no GPU found: validating on the CPU reference machine" and "validated" in said.out
    assert run(["validate", "source.py", "out.py", "-t", "gfx942", "-l", "l.json", "--device", "cuda"]) == 2
    assert "no GPU found for --device cuda" in capsys.readouterr().err
    assert run(["bench", "out.py", "-t", "gfx942", "-l", "l.json"]) == 2
    assert "no AMD GPU found" in capsys.readouterr().err


def test_tolerances_follow_type_and_operations(folder):
    spec = LaunchSpec(**LAUNCH | {"grid": (2,)})
    stage = source_stage("source.py", spec, "gfx942")
    _, tensors, _ = expected_tensors(stage.text, spec, stage.names)
    by_name = {t.name: t for t in tensors}
    assert by_name["count_ptr"].rtol == by_name["count_ptr"].atol == 0, "integers are exact"
    assert by_name["y_ptr"].rtol == 2 * 2.0**-23
    (folder / "source.py").write_text(SOURCE.replace("x * scale", "tl.exp(x)"))
    stage = source_stage("source.py", spec, "gfx942")
    _, tensors, _ = expected_tensors(stage.text, spec, stage.names)
    assert tensors[1].rtol > 2.0**-17, "a GPU approximates exp"


STAYING = (
    OUT.replace("BLOCK: gl.constexpr)", "BLOCK: gl.constexpr, tiles=None)")
    .replace("gl.program_id(0) * BLOCK", "tile * BLOCK")
    .replace(
        "def add_kernel(x_ptr, y_ptr, count_ptr, n, scale, BLOCK: gl.constexpr, tiles=None)",
        "def add_kernel_tile(tile, x_ptr, y_ptr, count_ptr, n, scale, BLOCK: gl.constexpr)",
    )
    + """

@gluon.jit
def add_kernel(x_ptr, y_ptr, count_ptr, n, scale, BLOCK: gl.constexpr, tiles=None):
    count = gl.num_programs(0) if tiles is None else tiles
    for tile in range(gl.program_id(0), count, gl.num_programs(0)):
        add_kernel_tile(tile, x_ptr, y_ptr, count_ptr, n, scale, BLOCK)


def _run_persistent_add_kernel(run, programs_per_unit=1):
    return run
"""
)


@pytest.mark.compile
def test_programs_that_go_from_tile_to_tile_are_as_many_as_there_is_room_for(folder):
    """The translation has a grid and an argument of its own; Triton's compile of the source has those of the launch."""
    (folder / "out.py").write_text(STAYING)
    (folder / "l.json").write_text(json.dumps([LAUNCH | {"grid": [700]}]))
    assert bundle(folder, "b.zip", "--device", "hip") == 0
    manifest = json.loads(zipfile.ZipFile("b.zip").read("manifest.json"))
    codes = {code["name"]: code for code in manifest["codes"]}
    assert codes["translation"]["grid"] == [304, 1, 1] and codes["source"]["grid"] == [700, 1, 1]
    own = {a["name"]: a for a in codes["translation"]["arguments"]}
    assert own["tiles"]["bytes"] == (700).to_bytes(4, "little").hex()
    assert "tiles" not in {a["name"] for a in manifest["arguments"]} and "arguments" not in codes["source"]
