"""Tiles that move along a dimension whose size has 64 bits go through the tensor data mover within 2 GiB."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from translation_of import tensor

from gluonize.judge.verdict import validate_launch
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

SOURCE = textwrap.dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(x_ptr, y_ptr, z_ptr, n, first_ptr, B: tl.constexpr):
        first = tl.load(first_ptr).to(tl.int64)
        end = tl.load(first_ptr + 1).to(tl.int64)
        size = end - first
        x_ptr += first * B
        y_ptr += first * B
        o = tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        for i in range(0, tl.cdiv(n, B)):
            rows = i * B + o
            inside = (rows < size)[:, None]
            x = tl.load(x_ptr + rows[:, None] * B + o[None, :], mask=inside, other=0.0)
            y = tl.load(y_ptr + rows[:, None] * B + o[None, :], mask=inside, other=0.0)
            acc = tl.dot(tl.trans(x), y, acc)
        tl.store(z_ptr + o[:, None] * B + o[None, :], acc)
    """)
B = 32
ROWS = 150
SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "n": "i32", "first_ptr": "*i32", "B": "constexpr"}


def launch(source: Path, begin: int, end: int, within: bool = True) -> LaunchSpec:
    values = {"x_ptr": tensor(ROWS, B), "y_ptr": tensor(ROWS, B), "z_ptr": tensor(B, B), "n": end - begin + B}
    values["first_ptr"] = tensor(2, dtype="int32", range=[0, ROWS], data=[begin, end])
    attrs = dict.fromkeys(("x_ptr", "y_ptr", "z_ptr", "first_ptr"), "DS" if within else "D")
    options = {"num_warps": 4, "num_stages": 3}
    return LaunchSpec("p", "product", str(source), SIGNATURE, {"B": B}, attrs, options, (1,), values=values)


def translated(folder: Path, within: bool = True) -> tuple[Path, str, tuple[str, ...]]:
    source = folder / "source.py"
    source.write_text(SOURCE)
    result = translate_kernel(TranslateRequest(str(source), "gfx1250", launches=(launch(source, 10, 120, within),)))
    assert result.text is not None, result
    return source, result.text, result.outcomes[0].choices


def status(source: Path, text: str, begin: int, end: int) -> str:
    file = source.parent / "translated.py"
    file.write_text(text)
    return validate_launch(str(source), str(file), launch(source, begin, end), "gfx1250")["status"]


@pytest.mark.compile
def test_sizes_from_memory_are_bounds_of_tiles(tmp_path: Path):
    source, text, choices = translated(tmp_path)
    assert any("by the tensor data mover" in choice for choice in choices), choices
    assert "assumes storage of x_ptr, y_ptr" in text.replace("\n#  ", "")
    for begin, end in ((10, 120), (0, ROWS), (40, 41), (7, 71)):
        assert status(source, text, begin, end) == "validated", (begin, end)
    unbounded = text.replace("gl.minimum(gl.maximum(size, 0), 2**31 - 1)", "gl.maximum(size, 2**31 - 1)")
    assert unbounded != text and status(source, unbounded, 7, 71) == "mismatch"


def test_tensors_that_may_be_larger_keep_their_pointers(tmp_path: Path):
    _, _, choices = translated(tmp_path, within=False)
    assert any("its tensor may exceed 2 GiB" in choice for choice in choices), choices
