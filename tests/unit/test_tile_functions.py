"""Functions of the output that access tiles by pointers: tiles over every edge, of constant and of other shapes, in storage of any size."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from slow_rows import in_turn

from gluonize.judge.verdict import validate_launch
from gluonize.read.spec.launch import parse_launches
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

SOURCE = """import triton
import triton.language as tl


@triton.jit
def one(x_ptr, y_ptr, n):
    x = tl.make_tensor_descriptor(x_ptr, shape=[1000], strides=[1], block_shape=[128])
    y = tl.make_tensor_descriptor(y_ptr, shape=[n], strides=[1], block_shape=[128])
    at = tl.program_id(0) * 128 - 64
    y.store([at + 64], x.load([at]) * 2)


@triton.jit
def three(x_ptr, y_ptr, a, b, s0, s1):
    x = tl.make_tensor_descriptor(x_ptr, shape=[a, b, 48], strides=[s0, s1, 1], block_shape=[2, 8, 32])
    y = tl.make_tensor_descriptor(y_ptr, shape=[a, b, 48], strides=[s0, s1, 1], block_shape=[2, 8, 32])
    for i in range(0, a, 2):
        for j in range(-8, b, 8):
            y.store([i, j, 16], x.load([i, j, -8]))


@triton.jit
def rows(x_ptr, y_ptr, r_ptr, n):
    x = tl.make_tensor_descriptor(x_ptr, shape=[n, 64], strides=[64, 1], block_shape=[1, 32])
    y = tl.make_tensor_descriptor(y_ptr, shape=[n, 64], strides=[64, 1], block_shape=[1, 32])
    at = tl.load(r_ptr + tl.arange(0, 32))
    y.scatter(x.gather(at, 8), at, 16)


@triton.jit
def adds(x_ptr, y_ptr, n):
    x = tl.make_tensor_descriptor(x_ptr, shape=[n, 64], strides=[64, 1], block_shape=[16, 32])
    y = tl.make_tensor_descriptor(y_ptr, shape=[n, 64], strides=[64, 1], block_shape=[16, 32])
    m = tl.program_id(0) * 16
    y.atomic_add([m, 32], x.load([m, 0]))
"""


def tensor(*shape: int, dtype: str = "float32", **more) -> dict:
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    inside = {"dtype": dtype, "shape": [*shape], "stride": strides, "storage": math.prod(shape), "offset": 0}
    return {"tensor": inside | more}


ORDER = [(7 * i + 3) % 64 for i in range(32)]
KERNELS = {
    "one": ({"x_ptr": tensor(1000), "y_ptr": tensor(1000), "n": 990}, [8]),
    "three": ({"x_ptr": tensor(5, 20, 48), "y_ptr": tensor(5, 20, 48), "a": 5, "b": 20, "s0": 960, "s1": 48}, [1]),
    "rows": (
        {"x_ptr": tensor(64, 64), "y_ptr": tensor(64, 64), "r_ptr": tensor(32, dtype="int32", range=[0, 63], data=ORDER), "n": 64},
        [1],
    ),
    "adds": ({"x_ptr": tensor(60, 64), "y_ptr": tensor(60, 64), "n": 60}, [4]),
}  # fmt: skip


TARGETS = ["gfx950", "gfx1100"]


def launch(name: str, path: str):
    values, grid = KERNELS[name]
    kinds = {"x_ptr": "*fp32", "y_ptr": "*fp32", "r_ptr": "*i32"}
    signature = {argument: kinds.get(argument, "i32") for argument in values}
    (spec,) = parse_launches(
        {"kernel": name, "source": path, "signature": signature, "values": values, "grid": grid,
         "attrs": {"x_ptr": "DS", "y_ptr": "DS"}}
    )  # fmt: skip
    return spec


def translated(tmp_path, spec, target: str) -> str:
    result = translate_kernel(TranslateRequest(spec.source, target, launches=(spec,)))
    assert result.text is not None, result
    (tmp_path / "out.py").write_text(result.text)
    return result.text


EDGES = [(*row, False) for row in in_turn(KERNELS, TARGETS)] + [(*row, True) for row in in_turn(KERNELS, TARGETS[::-1])]


@pytest.mark.one_of(4)
@pytest.mark.parametrize("name, target, far", EDGES)
def test_tiles_over_every_edge(name: str, target: str, far: bool, tmp_path):
    (tmp_path / "k.py").write_text(SOURCE)
    spec = launch(name, str(tmp_path / "k.py"))
    spec = replace(spec, attrs={}) if far else spec
    text = translated(tmp_path, spec, target)
    assert ("_far(" in text) == (far and name in ("one", "three", "adds"))
    answer = validate_launch(spec.source, str(tmp_path / "out.py"), spec, target)
    assert answer["status"] == "validated", answer["reason"]


def test_what_lanes_add_is_held_where_registers_are_many(tmp_path):
    """Where they are few it would crowd out operands: it is computed for each tile."""
    (tmp_path / "k.py").write_text(SOURCE)
    spec = launch("three", str(tmp_path / "k.py"))
    many, few = (translated(tmp_path, spec, target) for target in ("gfx950", "gfx1100"))
    assert "base += offset0 * gl.cast(strides[0], gl.int64)" in many and "(lane0 * strides[0])" in many
    assert "base +=" not in few and "(index0 * strides[0])" in few


@pytest.mark.parametrize(
    "before, after",
    [
        ("gl.maximum(shape[0], 0)", "gl.maximum(shape[0] + 2, 0)"),
        ("(offset1 + lane1).to(gl.uint32) < gl.maximum(shape[1], 0).to(gl.uint32)", "offset1 + lane1 < shape[1]"),
        ("base += offset0 *", "base += (offset0 + 1) *"),
    ],
    ids=["an extent too far", "before the start", "another tile"],
)
def test_mistakes_in_such_a_function_are_found(before: str, after: str, tmp_path):
    (tmp_path / "k.py").write_text(SOURCE)
    spec = launch("three", str(tmp_path / "k.py"))
    text = translated(tmp_path, spec, "gfx950")
    assert before in text
    (tmp_path / "out.py").write_text(text.replace(before, after))
    assert validate_launch(spec.source, str(tmp_path / "out.py"), spec, "gfx950")["status"] == "mismatch"
