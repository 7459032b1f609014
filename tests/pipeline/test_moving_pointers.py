"""Pointers and indices that move from tile to tile, for the loads that run ahead and for what consumes their tiles."""

from __future__ import annotations

from pathlib import Path

import pytest
from gluonize.judge.verdict import validate_launch
from slow_rows import slow_but_every
from translation_of import dedent, launch, tensor, validated

HEAD = """
    import triton
    import triton.language as tl


    @triton.jit
    def product(x_ptr, y_ptr, z_ptr, first, blocks, APART: tl.constexpr, B: tl.constexpr):
        o = tl.arange(0, B)
        tile = o[:, None] * B + o[None, :]
        acc = tl.zeros((B, B), tl.float32)
"""
TAIL = """
        tl.store(z_ptr + tile, acc)
"""
# `APART` is how far behind a tile lies what its own iteration reads: where the tile says so, so that no load runs ahead for it.
READ_BEHIND = """
        {before}
        for i in range(blocks):
            x = tl.load({pointers})
            y = tl.load(y_ptr + i * B * B + tile)
            acc += tl.dot(x, y)
            acc += tl.load({behind}, mask=x > 0, other=0.0)
            {step}
    """


def read_behind(pointers: str, behind: str, step: str, before: str = "") -> str:
    return READ_BEHIND.format(pointers=pointers, behind=behind, step=step, before=before)


ONES = "step = tl.full((B, B), 1, tl.int32) * B * B"
BODIES = {
    "tensor of pointers": read_behind("x_ptrs", "x_ptrs + APART", "x_ptrs += B * B", "x_ptrs = x_ptr + tile"),
    "offsets of each lane": read_behind(
        "x_ptrs", "x_ptrs + APART", "x_ptrs += step", f"x_ptrs = x_ptr + tile\n        {ONES}"
    ),
    "scalar pointer": read_behind(
        "row_ptr + tile", "row_ptr + APART + tile", "row_ptr += B * B", "row_ptr = x_ptr + first * B"
    ),
    "parameter": read_behind("x_ptr + tile", "x_ptr + APART + tile", "x_ptr += B * B"),
    "tensor of indices": """
        rows = o + first
        for i in range(blocks):
            x = tl.load(x_ptr + rows[:, None] * B + o[None, :], mask=rows[:, None] < blocks * B - 3, other=0.0)
            y = tl.load(y_ptr + i * B * B + tile)
            acc += tl.dot(x, y) * tl.where(rows < 2 * B, 2.0, 1.0)[None, :]
            rows += B
    """,
    "run of a loop around it": """
        x_ptrs = x_ptr + tile
        for j in range(2):
            for i in range(blocks):
                x = tl.load(x_ptrs)
                y = tl.load(y_ptr + i * B * B + tile)
                acc += tl.dot(x, y)
                acc += tl.load(x_ptrs + APART, mask=x > 0, other=0.0)
                x_ptrs += B * B
            x_ptrs += B
    """,
}
B = 32
SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "first": "i32", "blocks": "i32"}


def source_of(case: str) -> str:
    return dedent(HEAD + BODIES[case].rstrip() + TAIL)


def spec_of(blocks: int, stages: int = 3):
    rows = B * (2 * blocks + 2)
    values = {"x_ptr": tensor(2 * rows, B), "y_ptr": tensor(rows, B), "z_ptr": tensor(B, B)}
    numbers = {"first": 1, "blocks": blocks}
    constexprs = {"B": B, "APART": rows * B}
    return launch("product", SIGNATURE, constexprs, values=values | numbers, stages=stages)


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "case, target", list(zip(BODIES, ["gfx1250", "gfx942", "gfx1201", "gfx942", "gfx1201", "gfx1250"]))
)
def test_each_side_moves_its_own(case: str, target: str, tmp_path: Path):
    text = validated(tmp_path, source_of(case), spec_of(5), target)
    assert "NUM_BUFFERS" in text, text


@pytest.mark.one_of(3)
@pytest.mark.parametrize("case", slow_but_every(BODIES, 2))
def test_any_number_of_tiles(case: str, tmp_path: Path):
    text = validated(tmp_path, source_of(case), spec_of(5), "gfx950")
    assert "NUM_BUFFERS" in text and "_ahead" in text.partition("for i in")[0], text
    files = str(tmp_path / "source.py"), str(tmp_path / "output.py")
    for blocks in (0, 1, 2, 3, 4, 6):
        assert (answer := validate_launch(*files, spec_of(blocks), "gfx950"))["status"] == "validated", answer


WRONG = {  # what the loads are given, and what they are given instead: where a tile of the other side is
    "tensor of pointers": ("x_ahead_base, x_ahead_offs", "x_base, x_ahead_offs"),
    "offsets of each lane": ("x_ptr, x_ahead_offs", "x_ptr, x_offs"),
    "scalar pointer": ("row_ahead_ptr = row_ptr\n", "row_ahead_ptr = row_ptr + B\n"),
    "parameter": (
        "gl.minimum((slot - 1).to(gl.uint32), NUM_BUFFERS - 1).to(gl.int32)",
        "slot",
    ),  # read in this iteration
    "tensor of indices": ("rows_ahead += B\n", "rows_ahead += 2 * B\n"),
}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("case", WRONG)
def test_a_tile_of_the_wrong_side_is_found(case: str, tmp_path: Path):
    text = validated(tmp_path, source_of(case), spec_of(4), "gfx950")
    wrong = text.replace(*WRONG[case])
    assert wrong != text, text
    (tmp_path / "output.py").write_text(wrong)
    files = str(tmp_path / "source.py"), str(tmp_path / "output.py")
    assert validate_launch(*files, spec_of(4), "gfx950")["status"] != "validated"


def test_pointers_asked_for_their_type_move_once(tmp_path: Path):
    """`x_ptrs.dtype` reads no pointer: the loop needs no second one."""
    source = source_of("tensor of pointers").replace("acc += tl.load(x_ptrs + APART, mask=x > 0, other=0.0)", "")
    source = source.replace("acc += tl.dot(x, y)", "acc += tl.dot(x, (y * 2).to(x_ptrs.dtype.element_ty))")
    text = validated(tmp_path, source, spec_of(4), "gfx950")
    assert "NUM_BUFFERS" in text and "x_ahead" not in text, text
