"""Loops whose index has 64 bits: the coordinates of the tensor data mover have 32, also before the loop."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(x_ptr, y_ptr, z_ptr, n, start, B: tl.constexpr):
        o = tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        for i in range(FIRST, n, B):
            rows = i + o
            x = tl.load(x_ptr + rows[:, None] * B + o[None, :])
            y = tl.load(y_ptr + rows[:, None] * B + o[None, :])
            acc = tl.dot(tl.trans(x), y, acc)
        tl.store(z_ptr + o[:, None] * B + o[None, :], acc)
    """)
B, ROWS = 32, 256
SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "n": "i64", "start": "i64"}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("first", ["0", "B", "start"])
def test_coordinates_of_the_first_tiles(first: str, tmp_path: Path):
    values = dict.fromkeys(("x_ptr", "y_ptr", "z_ptr"), tensor(ROWS, B)) | {"n": ROWS, "start": B}
    spec = launch("product", SIGNATURE, {"B": B}, values=values)
    text = validated(tmp_path, SOURCE.replace("FIRST", first), spec, "gfx1250")
    assert "NUM_BUFFERS" in text and "tdm." in text, text
