"""A loop whose index is given a hint (`i = tl.multiple_of(i, n)`) is pipelined; the hint holds for tiles that there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(x_ptr, y_ptr, z_ptr, first, n, B: tl.constexpr):
        o = tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        for i in range(first, n, B):
            i = tl.multiple_of(i, B)
            rows = i + o
            x = tl.load(x_ptr + rows[:, None] * B + o[None, :], mask=(rows < n)[:, None], other=0.0)
            y = tl.load(y_ptr + rows[:, None] * B + o[None, :])
            acc = tl.dot(tl.trans(x), y, acc)
        tl.store(z_ptr + o[:, None] * B + o[None, :], acc)
    """)
B, ROWS = 32, 160
SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "first": "i32", "n": "i32"}


@pytest.mark.parametrize("target", ["gfx1250", "gfx950", "gfx942"])
@pytest.mark.parametrize("tiles", [0, 1, 4])
def test_it_is_pipelined(tiles: int, target: str, tmp_path: Path):
    given = tensor(ROWS, B)
    values = dict.fromkeys(("x_ptr", "y_ptr", "z_ptr"), given) | {"first": B, "n": B + B * tiles}
    text = validated(tmp_path, SOURCE, launch("product", SIGNATURE, {"B": B}, values=values), target)
    assert "NUM_BUFFERS" in text, text
