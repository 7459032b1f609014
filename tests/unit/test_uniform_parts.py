"""Addresses that a loop computes anew: what all lanes share is a scalar, and the tensor of offsets stays the same."""

from __future__ import annotations

from dataclasses import replace
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


def test_what_the_lanes_of_a_plain_access_share_goes_into_its_base(tmp_path):
    text = gathered(tmp_path, LOAD.replace("p,", "x_ptr + rows[:, None] * 64 + c[None, :],"))
    assert "buffer_load(x_ptr + start * 64," in text and "rows[:, None] *" not in text


def test_what_is_added_to_the_rows_may_not_change_before_the_use(tmp_path):
    text = gathered(tmp_path, f"start += 16; p = x_ptr + rows[:, None] * 64 + c[None, :]; {LOAD}")
    assert "rows" in "".join(line for line in text.splitlines() if "p_offs =" in line)


@pytest.mark.parametrize("rows", ["rows - 8", "rows * rows", "rows // 2"])
def test_what_is_no_sum_of_a_scalar_and_fixed_rows_stays(tmp_path, rows):
    text = gathered(tmp_path, f"q = {rows}; p = x_ptr + q[:, None] * 64 + c[None, :]; {LOAD}")
    assert "q" in "".join(line for line in text.splitlines() if "p_offs =" in line)


ROWS = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, starts, out_ptr, stride, S):
        r, c = tl.arange(0, 16), tl.arange(0, 64)
        x_ptr += tl.program_id(0).to(tl.int64) * stride
        total = tl.zeros((16, 64), tl.float32)
        for start in range(tl.load(starts), tl.load(starts + 1), 16):
            rows = start + r
            total += tl.load(x_ptr + rows[:, None] * stride + c[None, :], mask=(rows < S)[:, None], other=0.0)
        tl.store(out_ptr + r[:, None] * 64 + c[None, :], total)
""")


@pytest.mark.parametrize("pointer", ["x_ptr + rows[:, None] * stride + c[None, :]", "p"])
def test_on_rdna_it_serves_where_nothing_else_makes_a_base_and_offsets(pointer: str, tmp_path):
    # The start may be negative, as far as the kernel says, and the pointer has another value.
    address = "x_ptr + rows[:, None] * stride + c[None, :]"
    source = ROWS.replace("x_ptr += tl.program_id(0)", "x_ptr = x_ptr + tl.program_id(0)")
    if pointer == "p":
        source = source.replace(f"load({address}", "load(p").replace(
            "rows = start + r", f"rows = start + r; p = {address}"
        )
    kinds = {"x_ptr": "*fp32", "starts": "*i64", "out_ptr": "*fp32", "stride": "i32", "S": "i32"}
    spec = replace(launch("kernel", kinds, {}), id="rows")
    text = translate(tmp_path, source, spec, target="gfx1201").text
    assert "x_ptr + start * stride" in text and "gl.load(x_ptr" not in text and "gl.load(p" not in text, text
    compiled(tmp_path, text, spec, "gfx1201")
