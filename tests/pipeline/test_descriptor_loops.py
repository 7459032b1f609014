"""Loops over tiles of tensor descriptors that the host makes: pipelined on every target, by the data mover where it can."""

from __future__ import annotations

from pathlib import Path

import pytest

from gluonize.judge.verdict import validate_launch
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

BLOCK = 32
SOURCE = '''
import triton
import triton.language as tl


@triton.jit
def matmul(a_desc, b_desc, c_desc, K, BLOCK: tl.constexpr):
    """C = A @ B, B moved by SHIFT columns."""
    off_m = tl.program_id(0) * BLOCK
    off_n = tl.program_id(1) * BLOCK
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK)):
        a = a_desc.load([off_m, k * BLOCK])
        b = b_desc.load([k * BLOCK, off_n - SHIFT])
        acc = tl.dot(a, b, acc)
    c_desc.store([off_m, off_n], acc.to(tl.float16))
'''
TILE = f"tensordesc<fp16[{BLOCK}, {BLOCK}]>"


def described(rows: int, columns: int) -> dict:
    """A tensor whose rows start at multiples of 16 elements: others cannot be copied to LDS directly."""
    stride = -(-columns // 16) * 16
    tensor = {
        "dtype": "float16",
        "shape": [rows, columns],
        "stride": [stride, 1],
        "storage": rows * stride,
        "offset": 0,
    }
    sizes = {"shape": [rows, columns], "strides": [stride, 1], "block_shape": [BLOCK, BLOCK]}
    return {"descriptor": {"base": {"tensor": tensor}, **sizes}}


def launch(tiles: int = 4) -> LaunchSpec:
    m, n, k = 40, 24, max(8, BLOCK * tiles - 8)
    return LaunchSpec(
        "matmul", "matmul", "", {"a_desc": TILE, "b_desc": TILE, "c_desc": TILE, "K": "i32", "BLOCK": "constexpr"},
        {"BLOCK": BLOCK}, {}, {"num_warps": 4, "num_stages": 3}, (2, 1),
        values={
            "a_desc": described(m, k), "b_desc": described(k, n), "c_desc": described(m, n),
            "K": k if tiles else 0,
        },
    )  # fmt: skip


def write(folder: Path, shift: int) -> Path:
    source = folder / "source.py"
    source.write_text(SOURCE.replace("off_n - SHIFT", f"off_n - {shift}" if shift else "off_n"))
    return source


def status(source: Path, text: str, target: str, tiles: int) -> tuple[str, set[str]]:
    file = source.parent / "translated.py"
    file.write_text(text)
    answer = validate_launch(str(source), str(file), launch(tiles), target)
    return answer["status"], {h["kind"] for h in answer["hazards"]}


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize(
    "target, shift, how",
    [
        ("gfx1250", 0, "by the tensor data mover"),
        ("gfx1250", 8, "by the tensor data mover and direct copies"),
        ("gfx950", 0, "software-pipelined: `a`, `b` by"),
    ],
)
def test_loops_over_host_descriptors_are_pipelined(target, shift, how, tmp_path):
    source = write(tmp_path, shift)
    result = translate_kernel(TranslateRequest(str(source), target, launches=(launch(),)))
    assert result.text is not None, result
    assert any(how in choice for choice in result.outcomes[0].choices), result.outcomes[0].choices
    for tiles in (0, 1, 2, 5):
        assert status(source, result.text, target, tiles) == ("validated", set()), tiles


PLANTED = {
    "wait-deleted": (0, "tdm.async_wait((NUM_BUFFERS - 2) * 2)", "pass", "lds-in-flight"),
    "wait-too-high": (0, "tdm.async_wait((NUM_BUFFERS - 2) * 2)", "tdm.async_wait((NUM_BUFFERS - 2) * 2 + 1)", "lds-in-flight"),
    "group-wait-deleted": (8, "async_copy.wait_group(NUM_BUFFERS - 2)", "pass", "lds-in-flight"),
    "tile-past-the-end": (8, "mask = inside0[:, None] & inside1[None, :]", "mask = inside1[None, :] & (offset0 >= 0)", "out-of-bounds"),
    "tile-before-the-start": (8, "(offset1 + lane1).to(gl.uint32) < gl.maximum(shape[1], 0).to(gl.uint32)", "offset1 + lane1 < shape[1]", "out-of-bounds"),
}  # fmt: skip


@pytest.mark.one_of(4)
@pytest.mark.compile
@pytest.mark.parametrize("name", PLANTED)
def test_planted_mistakes_are_found(name, tmp_path):
    shift, old, new, kind = PLANTED[name]
    source = write(tmp_path, shift)
    text = translate_kernel(TranslateRequest(str(source), "gfx1250", launches=(launch(),))).text
    assert old in text, text
    found, hazards = status(source, text.replace(old, new), "gfx1250", 5)
    assert found == "mismatch" and kind in hazards
