"""64-bit offsets that a loop moves: 32-bit offsets from a base, where they cannot be negative."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, translate


def moved(folder: Path, start: str) -> str:
    """The translation of a loop over tiles of `x_ptr`, whose 64-bit offsets begin at `start`."""
    text = dedent(f"""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
            pid = tl.program_id(0).to(tl.int64)
            x_ptr += pid * N
            x_ptrs = x_ptr + {start} + tl.arange(0, BLOCK)
            total = tl.zeros((BLOCK,), tl.float32)
            for k in range(0, N, BLOCK):
                total += tl.load(x_ptrs, mask=tl.arange(0, BLOCK) < N - k, other=0.0)
                x_ptrs += BLOCK
            tl.store(out_ptr + pid * BLOCK + tl.arange(0, BLOCK), total)
        """)
    spec = launch("kernel", {"x_ptr": "*fp32", "out_ptr": "*fp32", "N": "i32"}, {"BLOCK": 256})
    return translate(folder, text, spec).text


def test_offsets_that_cannot_be_negative_are_cut_to_32_bits(tmp_path):
    text = moved(tmp_path, "pid * BLOCK + tl.arange(0, BLOCK) * pid")
    assert "x_base += BLOCK" in text and ".to(gl.int32)" in text
    assert "buffer_load(x_base, x_offs" in text


def test_offsets_that_may_be_negative_are_taken_from_the_tensor_s_start(tmp_path):
    text = moved(tmp_path, "pid * BLOCK + (tl.arange(0, BLOCK) - 8) * pid")
    assert "x_base" not in text and "x_ptr +=" not in text and "x_offs += pid * N" in text
    assert "buffer_load(x_ptr, x_offs" in text


def test_64_bit_row_pointers_of_a_loop_stay_pointers(tmp_path):
    text = dedent("""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, first_ptr, out_ptr, N, rows, BLOCK: tl.constexpr):
            pid = tl.program_id(0).to(tl.int64)
            first = tl.load(first_ptr)
            total = tl.zeros((BLOCK,), tl.float32)
            for row in range(rows):
                row_ptr = x_ptr + pid * N + row * N
                total += tl.load(row_ptr + first + tl.arange(0, BLOCK))
            tl.store(out_ptr + pid * BLOCK + tl.arange(0, BLOCK), total)
        """)
    sizes = {"N": "i32", "rows": "i32"}
    spec = launch("kernel", {"x_ptr": "*fp32", "first_ptr": "*i32", "out_ptr": "*fp32"} | sizes, {"BLOCK": 256})
    text = translate(tmp_path, text, spec).text
    assert "row_ptr = x_ptr + pid * N + row * N" in text and "buffer_load(row_ptr + first, " in text
    assert "storage of x_ptr" not in text


def descending(folder: Path, stop: str) -> str:
    """The translation of a loop whose index goes down to above `stop`, over rows of a moved base."""
    text = dedent(f"""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
            pid = tl.program_id(0).to(tl.int64)
            x_ptr += pid * N
            total = tl.zeros((BLOCK,), tl.float32)
            for i in range(N - 1, {stop}, -1):
                total += tl.load(x_ptr + tl.arange(0, BLOCK) * pid * i)
            tl.store(out_ptr + pid * BLOCK + tl.arange(0, BLOCK), total)
        """)
    spec = launch("kernel", {"x_ptr": "*fp32", "out_ptr": "*fp32", "N": "i32"}, {"BLOCK": 256})
    return translate(folder, text, spec).text


def test_an_index_that_goes_down_to_0_is_not_negative(tmp_path):
    text = descending(tmp_path, "-1")
    assert "buffer_load(x_ptr, " in text and "x_ptr += pid * N" in text


def test_an_index_that_goes_below_0_may_be_negative(tmp_path):
    text = descending(tmp_path, "-2")
    assert "x_ptr +=" not in text and "x_offs += pid * N" in text


@pytest.mark.parametrize("offsets, moved_base", [("row * N + o", True), ("row * N + (o - 8)", False)])
def test_a_name_for_several_tiles_is_a_base_and_32_bit_offsets(tmp_path, offsets: str, moved_base: bool):
    text = dedent(f"""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, out_ptr, N, rows, BLOCK: tl.constexpr):
            row = tl.program_id(0).to(tl.int64)
            x_ptr += row * N
            o = tl.arange(0, BLOCK) * row
            tile = x_ptr + {offsets}
            total = tl.load(tile)
            for i in range(rows):
                tile = x_ptr + {offsets} + i * N
                total += tl.load(tile)
            tl.store(out_ptr + tl.arange(0, BLOCK), total)
        """)
    pointers = {"x_ptr": "*fp32", "out_ptr": "*fp32"}
    made = translate(tmp_path, text, launch("kernel", pointers | {"N": "i32", "rows": "i32"}, {"BLOCK": 256})).text
    assert made.count("buffer_load(") == 2 and "gl.load(" not in made
    assert ("x_ptr += row * N" in made) == moved_base
