"""A number that moves from tile to tile, for the loads that run ahead and for what consumes their tiles."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

from gluonize.judge.verdict import validate_launch

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(x_ptr, y_ptr, z_ptr, end_ptr, first, blocks, rows, B: tl.constexpr):
        o = tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        start = first
        y_ptrs = y_ptr + (first + o)[:, None] * B + o[None, :]
        for i in range(blocks):
            row = start + o
            x = tl.load(x_ptr + row[:, None] * B + o[None, :], mask=(row < rows)[:, None], other=0.0)
            y = tl.load(y_ptrs)
            weight = tl.where(row < start + i, 2.0, 1.0)
            acc += tl.dot(tl.trans(x), y) * weight[None, :]
            start += B
            y_ptrs += B * B
        tl.store(z_ptr + o[:, None] * B + o[None, :], acc)
        tl.store(end_ptr, start)
""")
B = 32
SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "end_ptr": "*i32"}
SIGNATURE |= dict.fromkeys(("first", "blocks", "rows"), "i32")


def spec_of(blocks: int, stages: int = 2):
    rows = B * (blocks + 1)
    values = {name: tensor(rows, B) for name in ("x_ptr", "y_ptr")} | {"z_ptr": tensor(B, B), "end_ptr": tensor(1)}
    numbers = {"first": B, "blocks": blocks, "rows": rows - 5}
    return launch("product", SIGNATURE, {"B": B}, values=values | numbers, stages=stages)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", ["gfx950", "gfx942", "gfx1201", "gfx1250"])
def test_each_side_moves_its_own(target: str, tmp_path: Path):
    text = validated(tmp_path, SOURCE, spec_of(5, stages=3), target)
    files = str(tmp_path / "source.py"), str(tmp_path / "output.py")
    for blocks in (0, 1, 2):
        assert validate_launch(*files, spec_of(blocks, stages=3), target)["status"] == "validated", (blocks, text)
    assert "NUM_BUFFERS" in text, text
    if target != "gfx1250":  # the data mover counts tiles
        assert "start_ahead = start" in text and "start_ahead += B" in text, text


def test_a_number_of_the_wrong_side_is_found(tmp_path: Path):
    text = validated(tmp_path, SOURCE, spec_of(4), "gfx950")
    for wrong in (
        text.replace("start_ahead = start\n", "start_ahead = start + B\n"),
        text.replace("start_ahead + o", "start + o"),
    ):
        assert wrong != text
        (tmp_path / "output.py").write_text(wrong)
        files = str(tmp_path / "source.py"), str(tmp_path / "output.py")
        assert validate_launch(*files, spec_of(4), "gfx950")["status"] != "validated"


def test_a_number_with_a_constant_start(tmp_path: Path):
    source = SOURCE.replace("start = first", "start = 0")
    text = validated(tmp_path, source, spec_of(4), "gfx950")
    assert "start_ahead = start" in text, text
