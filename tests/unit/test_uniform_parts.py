"""Addresses that a loop computes anew: what all lanes share is a scalar, and the tensor of offsets stays the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import compiled, dedent, launch, translate


def gathered(folder: Path, body: str, start: str = "tl.load(starts + k).to(tl.int64) * 16", target: str = "gfx942"):
    """The text of a sum over blocks of rows that are listed in memory, and its compiled kernel."""
    text = dedent(f"""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, starts, out_ptr, N, blocks):
            r, c = tl.arange(0, 16), tl.arange(0, 64)
            total = tl.zeros((16, 64), tl.float32)
            for k in range(blocks):
                start = {start}
                rows = start + r
                {body}
            tl.store(out_ptr + r[:, None] * 64 + c[None, :], total)
        """)
    kinds = {"x_ptr": "*fp32", "starts": "*i32", "out_ptr": "*fp32", "N": "i32", "blocks": "i32"}
    spec = launch("kernel", kinds, {})
    text = translate(folder, text, spec, target=target).text
    compiled(folder, text, spec, target)
    return text


LOAD = "total += tl.load(p, mask=(rows < N)[:, None], other=0.0)"


def test_the_base_takes_what_64_bit_rows_share(tmp_path):
    text = gathered(tmp_path, f"p = x_ptr + rows[:, None] * 64 + c[None, :]; {LOAD}")
    assert "p_base = x_ptr + start * 64" in text
    (offsets,) = [line.strip() for line in text.splitlines() if "p_offs =" in line]
    assert "start" not in offsets and "rows" not in offsets
    assert "buffer_load(p_base, p_offs, mask" in text


def test_registers_are_too_few_on_rdna(tmp_path):
    body = f"p = x_ptr + rows[:, None] * 64 + c[None, :]; {LOAD}"
    assert "p_base" not in gathered(tmp_path, body, target="gfx1100")


def test_offsets_of_a_plain_access_are_narrow_before_they_are_added(tmp_path):
    text = gathered(tmp_path, LOAD.replace("p,", "x_ptr + rows[:, None] * 64 + c[None, :],"))
    assert "(start * 64).to(gl.int32)" in text and "rows[:, None] *" not in text


def test_what_is_added_to_the_rows_may_not_change_before_the_use(tmp_path):
    text = gathered(tmp_path, f"start += 16; p = x_ptr + rows[:, None] * 64 + c[None, :]; {LOAD}")
    assert "rows" in "".join(line for line in text.splitlines() if "p_offs =" in line)


@pytest.mark.parametrize("rows", ["rows - 8", "rows * rows", "rows // 2"])
def test_what_is_no_sum_of_a_scalar_and_fixed_rows_stays(tmp_path, rows):
    text = gathered(tmp_path, f"q = {rows}; p = x_ptr + q[:, None] * 64 + c[None, :]; {LOAD}")
    assert "q" in "".join(line for line in text.splitlines() if "p_offs =" in line)
