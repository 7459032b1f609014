"""`gluonize explain`: what it says is what the translation does."""

import json
import re

import pytest

from gluonize.product.cli.edge import run

LAUNCH = {
    "id": "scale",
    "kernel": "scale_kernel",
    "signature": {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"},
    "constexprs": {"BLOCK": 1024},
    "attrs": {"x_ptr": "DS", "y_ptr": "D", "n": "D"},
    "options": {"num_warps": 4},
}
SOURCE = """import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x * 3, mask=offsets < n)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "scale.py").write_text(SOURCE)
    (tmp_path / "l.json").write_text(json.dumps([LAUNCH]))
    return tmp_path


def explained(capsys, *more: str) -> list[dict]:
    assert run(["explain", "scale.py", "-t", "gfx942", "-l", "l.json", "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)["results"]


def test_accesses_say_why_they_are_buffer_operations_or_not(folder, capsys):
    (found,) = explained(capsys)
    accesses = {c["line"]: (c["choice"], c["why"]) for c in found["choices"] if c["kind"] == "access"}
    assert accesses[8] == ("buffer operation", "storage of x_ptr is within 2 GiB (all of the address in the offsets)")
    assert accesses[9][0] == "tensor of pointers" and "y_ptr is within 2 GiB (no `S` in the launch)" in accesses[9][1]


def test_what_it_says_is_what_the_translation_does(folder, capsys):
    """Buffer operations, layouts and conversions of the explanation are those of the text."""
    (found,) = explained(capsys)
    assert run(["translate", "scale.py", "-t", "gfx942", "-l", "l.json", "-o", "out.py", "--no-compile", "-q"]) == 0
    text = (folder / "out.py").read_text()
    assert text.count("buffer_load(") == sum(
        c["choice"] == "buffer operation" for c in found["choices"] if c["line"] == 8 and c["kind"] == "access"
    )
    assert text.count("convert_layout(") == sum(c["kind"] == "conversion" for c in found["choices"])
    for layout in found["layouts"]:
        assert f"{layout['name']}: gl.constexpr = {layout['constructor']}" in text


def test_layouts_have_an_origin_and_a_cost(folder, capsys):
    (found,) = explained(capsys)
    (x,) = [c for c in found["choices"] if c["kind"] == "value" and c["what"] == "x"]
    assert (x["shape"], x["dtype"], x["origin"], x["cost"]) == ([1024], "fp32", "anchor", "4 registers per lane")
    assert "`tt.load`" in x["why"]


def test_one_line(folder, capsys):
    (found,) = explained(capsys, "--line", "8")
    assert {c["line"] for c in found["choices"]} == {8}


@pytest.mark.parametrize(
    "stage, kinds",
    [("trace", {"value"}), ("layout", {"operation"}), ("staging", set()), ("pipeline", set())],
)
def test_state_after_each_stage(folder, capsys, stage, kinds):
    (found,) = explained(capsys, "--after", stage)
    assert found["after"] == stage and {c["kind"] for c in found["choices"]} == kinds
    if stage == "trace":
        assert {c["what"]: c["choice"] for c in found["choices"]}["BLOCK"] == "compile-time 1024"
    if stage == "layout":
        assert {(c["line"], c["what"]) for c in found["choices"]} >= {(8, "tt.load"), (9, "tt.store")}


def test_unknown_stage_is_refused(folder, capsys):
    assert run(["explain", "scale.py", "-t", "gfx942", "-l", "l.json", "--after", "magic"]) == 2
    assert "one of trace, layout, staging, pipeline, rewrite" in capsys.readouterr().err


def test_text_is_plain_without_color_and_the_same_every_time(folder, capsys):
    command = ["explain", "scale.py", "-t", "gfx942", "-l", "l.json"]
    assert run(command) == 0
    first = capsys.readouterr().out
    assert run(command) == 0
    assert capsys.readouterr().out == first
    assert "\x1b" not in first
    assert "scale.py:8  x = tl.load(x_ptr + offsets, mask=offsets < n)" in first
    assert first.rstrip().endswith("1 of 2 accesses without tensors of pointers")


MATMUL = """import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, K, stride_a, stride_b, BLOCK: tl.constexpr):
    m = tl.arange(0, BLOCK)
    k = tl.arange(0, 64)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for i in range(0, K):
        a = tl.load(a_ptr + m[:, None] * stride_a + (i * 64 + k)[None, :])
        b = tl.load(b_ptr + (i * 64 + k)[:, None] * stride_b + m[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * BLOCK + m[None, :], acc.to(tl.float16))
"""


def test_loops_matrices_and_conversions_of_a_matmul(folder, capsys):
    (folder / "scale.py").write_text(MATMUL)
    names = ("a_ptr", "b_ptr", "c_ptr")
    launch = {
        "id": "mm",
        "kernel": "matmul_kernel",
        "signature": {
            **dict.fromkeys(names, "*fp16"),
            "K": "i32",
            "stride_a": "i32",
            "stride_b": "i32",
            "BLOCK": "constexpr",
        },
        "constexprs": {"BLOCK": 128},
        "attrs": {**dict.fromkeys(names, "DS"), "stride_a": "D", "stride_b": "D"},
        "options": {"num_warps": 4, "num_stages": 2},
    }
    (folder / "l.json").write_text(json.dumps([launch]))
    (found,) = explained(capsys)
    by_kind = {
        kind: [c for c in found["choices"] if c["kind"] == kind] for kind in ("loop", "matrix", "staged", "conversion")
    }
    (loop,) = by_kind["loop"]
    assert loop["line"] == 10 and (loop["choice"].startswith("pipelined") or loop["why"])
    (matrix,) = by_kind["matrix"]
    assert (
        matrix["line"] == 13 and matrix["origin"] == "anchor" and matrix["cost"] == "64 accumulator registers per lane"
    )
    assert all(
        re.fullmatch(r"\d+ bytes (between .*|moved)|free: registers only", c["cost"]) for c in by_kind["conversion"]
    )
    assert run(["translate", "scale.py", "-t", "gfx942", "-l", "l.json", "-o", "out.py", "--no-compile", "-q"]) == 0
    text = (folder / "out.py").read_text()
    assert ("allocate_shared_memory" in text) == loop["choice"].startswith("pipelined")
