"""Masks of 64-bit indices end with their loop: the loop's end goes into the bound of a comparison."""

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
    def product(x_ptr, y_ptr, z_ptr, blocks, size, B: tl.constexpr):
        skipped = tl.program_id(0).to(tl.int64)
        o = tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        for i in range(0, blocks):
            rows = (skipped + i) * B + tl.arange(0, B)
            inside = (rows < size)[:, None]
            x = tl.load(x_ptr + rows[:, None] * B + o[None, :], mask=inside, other=0.0)
            y = tl.load(y_ptr + rows[:, None] * B + o[None, :], mask=inside, other=0.0)
            acc = tl.dot(tl.trans(x), y, acc)
        tl.store(z_ptr + o[:, None] * B + o[None, :], acc)
    """)
B = 32
SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "blocks": "i32", "size": "i32", "B": "constexpr"}


def launch(source: Path, blocks: int, size: int) -> LaunchSpec:
    rows = max(1, min(size, blocks * B))
    values = {"x_ptr": tensor(rows, B), "y_ptr": tensor(rows, B), "z_ptr": tensor(B, B), "blocks": blocks, "size": size}
    attrs = dict.fromkeys(("x_ptr", "y_ptr", "z_ptr"), "DS")
    options = {"num_warps": 4, "num_stages": 3}
    return LaunchSpec("p", "product", str(source), SIGNATURE, {"B": B}, attrs, options, (1,), values=values)


def translated(folder: Path, target: str, source: str = SOURCE) -> tuple[Path, str]:
    path = folder / "source.py"
    path.write_text(source)
    result = translate_kernel(TranslateRequest(str(path), target, launches=(launch(path, 3, 80),)))
    assert result.text is not None, result
    return path, result.text


def status(source: Path, text: str, target: str, blocks: int, size: int) -> str:
    file = source.parent / "translated.py"
    file.write_text(text)
    return validate_launch(str(source), str(file), launch(source, blocks, size), target)["status"]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("target", ["gfx950", "gfx942"])
def test_tiles_past_the_end_are_masked_by_the_bound(tmp_path: Path, target: str):
    source, text = translated(tmp_path, target)
    clipped = "gl.where(i_ahead < blocks, size - (skipped + i_ahead) * B, 0)"
    assert clipped in text and "& (i_ahead < blocks)" not in text
    for blocks, size in ((0, 40), (1, 20), (1, 320), (2, 33), (3, 80), (4, 320), (6, 170)):
        assert status(source, text, target, blocks, size) == "validated", (blocks, size)
    # The loop ends before the size: without its end in the bound, tiles behind the tensor would be fetched.
    endless = text.replace(clipped, "size - (skipped + i_ahead) * B")
    assert status(source, endless, target, 4, 320) != "validated"
    shifted = text.replace(clipped, clipped.replace("i_ahead) * B", "i) * B"))
    assert status(source, shifted, target, 4, 100) != "validated"


def test_masks_that_are_false_past_the_end_keep_their_bound(tmp_path: Path):
    counted = SOURCE.replace("tl.program_id(0).to(tl.int64)", "0").replace("(skipped + i) * B", "i.to(tl.int64) * B")
    source, text = translated(tmp_path, "gfx950", counted.replace("range(0, blocks)", "range(0, tl.cdiv(size, B))"))
    bound = "< size - i_ahead.to(gl.int64) * B"
    assert bound in text and "gl.where(" not in text.split("for i in")[1].split("mfma")[0]
    for size in (0, 20, 33, 170):
        assert status(source, text, "gfx950", 8, size) == "validated", size
    assert status(source, text.replace(bound, "< size + B - i_ahead.to(gl.int64) * B"), "gfx950", 8, 33) != "validated"


@pytest.mark.parametrize(
    "before, after",
    [
        pytest.param("rows < size", "rows <= size", id="not a strict bound"),
        pytest.param("rows < size", "rows < size + tl.arange(0, B)", id="lanes differ in their bound"),
        pytest.param("tl.arange(0, B)\n        inside", "tl.arange(0, B) - 1\n        inside", id="maybe below 0"),
    ],
)
def test_other_masks_keep_the_end_of_the_loop_beside_them(tmp_path: Path, before: str, after: str):
    assert before in SOURCE
    _, text = translated(tmp_path, "gfx950", SOURCE.replace(before, after))
    assert "(i_ahead < blocks)" in text and "gl.where(i_ahead" not in text


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", ["gfx950", "gfx942", "gfx1201"])
def test_bounds_of_32_bits_become_the_least_number(tmp_path: Path, target: str):
    """Their difference to the start of a tile may overflow."""
    source, text = translated(tmp_path, target, SOURCE.replace("tl.program_id(0).to(tl.int64)", "tl.program_id(0)"))
    bounded = "gl.where(i_ahead < blocks, size, -(2**31))"
    assert bounded in text and "& (i_ahead < blocks)" not in text, text
    for blocks, size in ((0, 40), (1, 20), (1, 320), (2, 33), (3, 80), (4, 320), (6, 170)):
        assert status(source, text, target, blocks, size) == "validated", (blocks, size)
    assert status(source, text.replace(bounded, "size"), target, 4, 320) != "validated"
