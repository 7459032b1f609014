"""Clusters of workgroups, re-targeted to those of a CUDA device: results, layouts, what a bundle holds, and what is refused by name."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from cluster_sources import SOURCES
from translation_of import translate

from gluonize.judge.device.bundles.build import BundleRequest, build_bundle
from gluonize.judge.device.refusal import Refused
from gluonize.judge.device.retarget.retarget import retarget
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.judge.machine.stages import source_stage, translated_stage
from gluonize.judge.verdict.run import validate_pair

CUDA = "gluonize.judge.device.bundles.jobs:compile_cuda"
# Without products, reduced in each workgroup, with multicasts, and with tiles that descriptors copy in and out.
SOME = ("elementwise", "softmax", "sum of all", "matmul", "attention", "matmul with descriptors")


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(1, timeout=120) as pool:
        yield pool


def sides(folder: Path, name: str, count: int):
    """The source's and the translation's modules, and the launch; the translation is `output.py`."""
    source = SOURCES[name]
    spec = source.launch(count)
    (folder / "output.py").write_text(translate(folder, source.file, spec, target="gfx1250").text)
    left = source_stage(str(folder / "source.py"), spec, "gfx1250")
    return left, translated_stage(str(folder / "output.py"), spec, "gfx1250"), spec


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name, count", [(name, 2) for name in SOME] + [("matmul", 4)])
def test_clusters_compute_the_same_and_are_compiled(name: str, count: int, tmp_path: Path, pool):
    left, right, spec = sides(tmp_path, name, count)
    text = retarget(right.text)
    assert "amdg." not in text and "hip:" not in text
    result = validate_pair(left.text, text, spec, source_names=left.names, translated_names=right.names)
    assert result.status == "validated", result.reason
    built = pool.call(CUDA, text, False)
    assert built["ctas"] == count and built["block"] == 128


def test_barriers_of_the_cluster_are_as_many_as_before(tmp_path: Path):
    _, right, _ = sides(tmp_path, "matmul", 2)
    without = "\n".join(line for line in right.text.splitlines() if "cluster_barrier" not in line)
    assert retarget(right.text).count("ttng.cluster_barrier") == right.text.count("amdg.cluster_barrier_wait") > 0
    assert "cluster_barrier" not in retarget(without)


HEAD = """#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>
#mma = #ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}, CGALayout = [[1, 0]], instrShape = [16, 16, 32]}>
#linear = #ttg.linear<{register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]], block = [[16, 0]]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = LANES : i32} {
  tt.func public @k(%m: tensor<64x64xf32, #mma>, %l: tensor<32x16xf32, #linear>) {
"""
SCAN = """%s = "tt.scan"(%l) <{axis = 1 : i32, reverse = false}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.scan.return %c : f32
    }) : (tensor<32x16xf32, #linear>) -> tensor<32x16xf32, #linear>"""


@pytest.mark.parametrize(
    "lanes, body, named",
    [
        (64, "", "num_ctas"),
        (32, "amdg.cluster_barrier_arrive\n    %c = arith.constant 0 : i32", "amdg.cluster_barrier_arrive"),
        (32, "amdg.cluster_barrier_wait", "amdg.cluster_barrier_wait"),
        (32, "%t = tt.trans %m {order = array<i32: 1, 0>} : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #rows>", "tt.trans"),
        (32, SCAN, "tt.scan"),
    ],
    ids=["lanes", "arrival", "wait", "transpose", "scan"],
)  # fmt: skip
def test_what_has_no_counterpart_in_clusters_is_refused_by_name(lanes: int, body: str, named: str):
    with pytest.raises(Refused) as caught:
        retarget(HEAD.replace("LANES", str(lanes)) + f"    {body}\n    tt.return\n  }}\n}}\n")
    assert caught.value.what == named and caught.value.why


def test_a_bundle_of_a_cluster_has_both_sides_and_says_how_many_workgroups(tmp_path: Path, pool):
    _, _, spec = sides(tmp_path, "matmul", 2)
    request = BundleRequest(str(tmp_path / "source.py"), str(tmp_path / "output.py"), spec, "gfx1250")
    built = build_bundle(pool, request)
    manifest = json.loads(zipfile.ZipFile(io.BytesIO(built.content)).read("manifest.json"))
    found = {code["name"]: code["ctas"] for code in manifest["codes"]}
    assert found == {"cuda": 2, "cuda-consan": 2, "cuda-source": 2}
    assert manifest["poison"][0]["ctas"] == 1 and manifest["source_ran_as"].endswith("for the device")
    assert any("multicast" in what for what in manifest["cannot_show"]["cubin"])
    assert any(note.startswith("hip: num_ctas") for note in built.notes)
