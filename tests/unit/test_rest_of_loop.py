"""Pipelined loops whose end is read from memory: a tile ahead is there while enough of the loop is left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

ROWS = 300
SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def grouped_rows_kernel(x_ptr, w_ptr, out_ptr, groups_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
        group = tl.program_id(0)
        first = tl.load(groups_ptr + 2 * group)
        size = tl.load(groups_ptr + 2 * group + 1)
        n = tl.arange(0, N)
        acc = tl.zeros((N, N), dtype=tl.float32)
        for m in range(0, size, BLOCK):
            rows = first + m + tl.arange(0, BLOCK)
            mask = rows < first + size
            x = tl.load(x_ptr + rows.to(tl.int64)[:, None] * N + n[None, :], mask=mask[:, None], other=0.0)
            w = tl.load(w_ptr + rows.to(tl.int64)[:, None] * N + n[None, :], mask=mask[:, None], other=0.0)
            acc += tl.dot(tl.trans(x), w)
        tl.store(out_ptr + group * N * N + n[:, None] * N + n[None, :], acc)
""")
POINTERS = {"x_ptr": "*fp16", "w_ptr": "*fp16", "out_ptr": "*fp32", "groups_ptr": "*i32"}
# (first row, number of rows): none, a part of a tile, one tile, a few, more than fill the pipeline.
GROUPS = [0, 0, 0, 5, 5, 32, 37, 90, 127, 173]


def grouped():
    """Five groups of rows; nothing is known of their numbers before the launch."""
    values = {
        "x_ptr": tensor(ROWS, 32),
        "w_ptr": tensor(ROWS, 32),
        "out_ptr": tensor(5, 32, 32),
        "groups_ptr": tensor(len(GROUPS), data=GROUPS),
    }
    spec = launch("grouped_rows_kernel", POINTERS, {"N": 32, "BLOCK": 32}, stages=3, values=values)
    return replace(spec, grid=(5,))


# The same rows, counted from the first of the group.
FROM_ROW = SOURCE.replace("range(0, size, BLOCK)", "range(first, first + size, BLOCK)").replace("first + m", "m")


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize("target", ["gfx942", "gfx950", "gfx1250", "gfx1201"])
def test_what_is_left_of_a_loop_from_anywhere_is_an_unsigned_number(target: str, tmp_path: Path) -> None:
    text = validated(tmp_path, FROM_ROW, grouped(), target)
    assert " - m).to(gl.uint32) > " in text


@pytest.mark.one_of(3)
@pytest.mark.compile
@pytest.mark.parametrize("target", ["gfx942", "gfx950", "gfx1250", "gfx1201"])
def test_a_tile_is_there_while_enough_of_the_loop_is_left(target: str, tmp_path: Path) -> None:
    text = validated(tmp_path, SOURCE, grouped(), target)
    assert "# Prologue" in text and " < size" not in text.split("for m in range(0, size, BLOCK):")[1]
    assert "size - m > " in text
