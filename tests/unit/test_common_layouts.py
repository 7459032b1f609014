"""Expressions of tensors that lie in one layout: computed there, moved once to the layout in which Triton computes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, translate


def carried(folder: Path, expression: str) -> str:
    """The translation of a loop that carries `h`, which Triton has in the layouts of its stores and of its products."""
    text = dedent(f"""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, y_ptr, w_ptr, h_ptr, sum_ptr, n):
            i, j = tl.arange(0, 32), tl.arange(0, 64)
            tile = i[:, None] * 64 + j[None, :]
            h = tl.zeros((32, 64), tl.float32)
            z = tl.load(y_ptr + tile)
            row, column = tl.load(w_ptr + j), tl.load(w_ptr + i)
            for t in range(n):
                x = tl.load(x_ptr + t * 2048 + tile)
                if (t & 1) == 0:
                    tl.store(h_ptr + t * 2048 + tile, h.to(tl.float16) + x)
                if t & 1:
                    y = tl.load(y_ptr + t * 2048 + tile)
                    tl.atomic_add(sum_ptr + t, tl.sum({expression}))
                h *= 0.5
                if t & 1:
                    a = tl.load(w_ptr + t * 2048 + tile)
                    b = tl.load(w_ptr + t * 4096 + j[:, None] * 64 + j[None, :])
                    h += tl.dot(a, b).to(tl.float16)
        """)
    pointers = {"x_ptr": "*fp16", "y_ptr": "*fp32", "w_ptr": "*fp16", "h_ptr": "*fp16", "sum_ptr": "*fp32"}
    return translate(folder, text, launch("kernel", pointers | {"n": "i32"}, {}), target="gfx950").text


def test_what_lies_in_one_layout_is_computed_there(tmp_path):
    text = carried(tmp_path, "y * (h + x)")
    assert text.count("gl.convert_layout(y * (h + x), mma)") == 1


@pytest.mark.parametrize(
    "expression", ["h * (h + 1.0)", "h * z"], ids=["one-tensor", "the-other-is-moved-before-the-loop"]
)
def test_one_tensor_is_moved_itself(tmp_path, expression: str):
    (line,) = (line for line in carried(tmp_path, expression).splitlines() if "gl.sum(" in line)
    assert "gl.sum(gl.convert_layout(h, mma) * " in line


@pytest.mark.parametrize("row", ["row", "row[None, :]", "column[:, None]", "row.to(tl.float32)"])
def test_a_row_from_before_the_loop_lies_where_the_rest_does(tmp_path, row: str):
    text = carried(tmp_path, f"({row} - y) * (h + x)")
    (line,) = (line for line in text.splitlines() if "gl.sum(" in line)
    assert line.count("convert_layout") == 1


def test_what_is_made_of_rows_from_before_a_loop_is_made_where_it_is_used(tmp_path):
    """Nothing of a row is moved in the loop: it is had in the layout of the products too."""
    text = dedent("""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, y_ptr, out_ptr, n):
            i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
            y = tl.load(y_ptr + i * 64 + j)
            row = tl.sum(y.to(tl.float32), axis=0)
            for t in range(n):
                x = tl.load(x_ptr + t * 4096 + i * 64 + j)
                d = tl.dot(x, y)
                tl.store(out_ptr + t * 4096 + i * 64 + j, (2 * row) * d - row * row)
        """)
    pointers = {"x_ptr": "*fp16", "y_ptr": "*fp16", "out_ptr": "*fp32"}
    text = translate(tmp_path, text, launch("kernel", pointers | {"n": "i32"}, {}), target="gfx950").text
    assert "convert_layout" not in text.partition("for t in")[2]
