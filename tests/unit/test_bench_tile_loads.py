"""Every load on gfx1250 is one of the tensor data mover, or something says why it is not."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench import tile_loads  # noqa: E402
from gluonize.product.report.explain.job import explain_launch  # noqa: E402
from gluonize.request import TranslateRequest  # noqa: E402
from gluonize.read.spec.launch import LaunchSpec  # noqa: E402

SOURCE = """
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, i_ptr, y_ptr, R, C, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[R, C], strides=[C, 1], block_shape=[ROWS, BLOCK])
    w = tl.make_tensor_descriptor(x_ptr, shape=[R, C], strides=[C, 1], block_shape=[1, BLOCK])
    i = tl.load(i_ptr + tl.arange(0, ROWS))
    tile = x.load([0, 0]) + w.gather(i, 0)
    for _ in range(R):
        tile += tl.load(x_ptr + i[:, None] * C + tl.arange(0, BLOCK)[None, :])
    tl.store(y_ptr + i[:, None] * C + tl.arange(0, BLOCK)[None, :], tile)
"""


@pytest.fixture
def launch(tmp_path):
    source = tmp_path / "k.py"
    source.write_text(SOURCE)
    pointers = {"x_ptr": "*fp16", "i_ptr": "*i32", "y_ptr": "*fp16"}
    signature = {**pointers, "R": "i32", "C": "i32", "ROWS": "constexpr", "BLOCK": "constexpr"}
    spec = LaunchSpec("k", "k", str(source), signature, {"ROWS": 32, "BLOCK": 64}, {}, {"num_warps": 4}, (1,))
    (tmp_path / "launches.json").write_text(json.dumps({"version": 1, "launches": [spec.as_json()]}))
    return spec


def test_each_load_has_a_way_or_a_reason(launch, tmp_path, capsys):
    assert tile_loads.main([str(tmp_path), "-j", "1", "--json", str(tmp_path / "out.json")]) == 0
    assert "1 launches, 4 loads, 2 by the tensor data mover" in capsys.readouterr().out
    reasons = {text: reason for _, text, reason in json.loads((tmp_path / "out.json").read_text())["k"]}
    assert reasons["x.load([0, 0])"] == reasons["w.gather(i, 0)"] == ""
    assert reasons["tl.load(i_ptr + tl.arange(0, ROWS))"] == "it is outside of loops: read once, into registers"
    (inner,) = [reason for text, reason in reasons.items() if "i[:, None]" in text]
    assert inner == "its loop is not pipelined: Triton fetches no load of its body ahead"


@pytest.mark.slow
def test_a_cluster_finds_the_same(launch, tmp_path, capsys):
    pytest.importorskip("distributed")
    assert tile_loads.main([str(tmp_path), "-j", "1"]) == 0
    here = capsys.readouterr().out
    assert tile_loads.main([str(tmp_path), "--cluster", "local:1"]) == 0
    assert capsys.readouterr().out == here


def test_explain_says_the_same(launch):
    request = TranslateRequest(launch.source, "gfx1250", launches=(launch,))
    found = [c for c in explain_launch(request, launch, "rewrite").choices if c.kind == "access"]
    said = {c.what: f"{c.choice}; {c.why}" for c in found if "store" not in c.what}
    assert said["x.load"].startswith("copy to LDS by the tensor data mover")
    assert all("not by the tensor data mover: it" in why for what, why in said.items() if what.startswith("load("))


@pytest.mark.slow
@pytest.mark.compile
def test_fixtures(capsys):
    assert tile_loads.main([]) == 0
    said = capsys.readouterr().out
    staged = ("Triton does not stage", "outside of loops", "its loop is not pipelined", "its loop is a `while`")
    for line in said.splitlines()[1:]:
        assert any(reason in line for reason in staged), f"a load of a pipelined loop: {line}"
