"""What may be negative, or goes back, is added to a tensor's own start, not to a pointer that was moved."""

from __future__ import annotations

from pathlib import Path

import pytest

from translation_of import dedent, launch, translate


def window(folder: Path, added: str) -> str:
    """The translation of two loads around a pointer to the row of the program."""
    text = dedent(f"""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
            pid = tl.program_id(0)
            offs = tl.arange(0, BLOCK)
            row_ptr = x_ptr + pid * N
            left = {added}
            x = tl.load(row_ptr + left, mask=left >= 0)
            y = tl.load(row_ptr + offs, mask=offs < N)
            tl.store(out_ptr + pid * BLOCK + offs, x + y)
        """)
    spec = launch("kernel", {"x_ptr": "*fp32", "out_ptr": "*fp32", "N": "i32"}, {"BLOCK": 256})
    return translate(folder, text, spec).text


def test_a_row_pointer_becomes_an_offset_where_less_than_nothing_may_be_added(tmp_path):
    text = window(tmp_path, "offs - 1")
    assert "row_offs = pid * N" in text
    assert "buffer_load(x_ptr, left + row_offs, mask=left >= 0)" in text and "gl.load" not in text


def test_a_row_pointer_stays_the_base_where_only_more_is_added(tmp_path):
    text = window(tmp_path, "offs + 1")
    assert "row_ptr = x_ptr + pid * N" in text and "buffer_load(row_ptr, left, mask=left >= 0)" in text


@pytest.mark.parametrize("target, buffer", [("gfx942", False), ("gfx950", True), ("gfx1201", True), ("gfx1250", True)])
def test_bf16_additions_are_buffer_atomics_where_triton_makes_them(tmp_path, target, buffer):
    text = dedent("""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
            offs = tl.arange(0, BLOCK)
            tl.atomic_add(out_ptr + offs, tl.load(x_ptr + offs), sem="relaxed")
        """)
    spec = launch("kernel", {"x_ptr": "*bf16", "out_ptr": "*bf16"}, {"BLOCK": 1024})
    text = translate(tmp_path, text, spec, target=target).text
    assert ("cdna4.buffer_atomic_add(" in text) == buffer
    assert ("gl.atomic_add(" in text) != buffer


def walked(folder: Path, move: str, block: int, target: str = "gfx1201") -> str:
    """The translation of a loop over the rows of `x_ptr` from the last to the first."""
    text = dedent(f"""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
            x_ptrs = x_ptr + (rows - 1) * BLOCK + tl.arange(0, BLOCK)
            total = tl.zeros((BLOCK,), tl.float32)
            for _ in range(rows):
                total += tl.load(x_ptrs)
                {move}
            tl.store(out_ptr + tl.arange(0, BLOCK), total)
        """)
    spec = launch("kernel", {"x_ptr": "*fp32", "out_ptr": "*fp32", "rows": "i32"}, {"BLOCK": block})
    return translate(folder, text, spec, target=target).text


def test_pointers_that_walk_back_move_their_offsets_where_those_are_few(tmp_path):
    text = walked(tmp_path, "x_ptrs -= BLOCK", 256)
    assert "x_offs = gl.arange(0, BLOCK, layout=layout) + (rows - 1) * BLOCK" in text
    assert "buffer_load(x_ptr, x_offs)" in text and "x_offs -= BLOCK" in text


@pytest.mark.parametrize("block, target", [(2048, "gfx1201"), (256, "gfx942")])
def test_pointers_that_walk_back_move_their_base_where_offsets_are_many_or_scalars_cheap(tmp_path, block, target):
    text = walked(tmp_path, "x_ptrs -= BLOCK", block, target)
    assert "x_base = x_ptr + (rows - 1) * BLOCK" in text
    assert "buffer_load(x_base, x_offs)" in text and "x_base -= BLOCK" in text


def test_pointers_that_a_tensor_moves_back_move_their_offsets(tmp_path):
    text = walked(tmp_path, "x_ptrs -= tl.arange(0, BLOCK) + BLOCK", 2048)
    assert "x_base" not in text and "buffer_load(x_ptr, x_offs)" in text and "x_offs -= gl.arange(" in text
