"""A loop whose index is given a hint (`i = tl.multiple_of(i, n)`) is pipelined; the hint holds for tiles that there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

from gluonize.judge.verdict import validate_launch

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


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", ["gfx1250", "gfx950", "gfx942"])
def test_it_is_pipelined(target: str, tmp_path: Path):
    given = tensor(ROWS, B)

    def spec_of(tiles: int):
        values = dict.fromkeys(("x_ptr", "y_ptr", "z_ptr"), given) | {"first": B, "n": B + B * tiles}
        return launch("product", SIGNATURE, {"B": B}, values=values)

    text = validated(tmp_path, SOURCE, spec_of(4), target)
    assert "NUM_BUFFERS" in text, text
    files = str(tmp_path / "source.py"), str(tmp_path / "output.py")
    for tiles in (0, 1):
        assert validate_launch(*files, spec_of(tiles), target)["status"] == "validated", (tiles, text)
