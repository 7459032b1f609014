"""Two loads of a pipelined loop that assign the same variable have tiles of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from slow_rows import slow_but
from translation_of import dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(w_ptr, h_ptr, c_ptr, T, B: tl.constexpr):
        o = tl.arange(0, B)
        h = tl.load(h_ptr + o[:, None] * B + o[None, :])
        for t in range(0, T):
            rows = (t * B + o)[:, None] * (2 * B)
            w = tl.load(w_ptr + rows + o[None, :])
            c = tl.dot(w, h)
            w = tl.load(w_ptr + rows + (B + o)[None, :])
            c = tl.dot(w, h, c)
            tl.store(c_ptr + (t * B + o)[:, None] * B + o[None, :], c)
""")
SIGNATURE = {"w_ptr": "*fp16", "h_ptr": "*fp16", "c_ptr": "*fp32", "T": "i32"}


@pytest.mark.parametrize("target", slow_but(["gfx942", "gfx950", "gfx1250"], 2))
def test_each_load_has_its_own_tiles(target: str, tmp_path: Path):
    values = dict.fromkeys(("w_ptr", "h_ptr", "c_ptr"), tensor(1 << 15)) | {"T": 5}
    text = validated(tmp_path, SOURCE, launch("kernel", SIGNATURE, {"B": 32}, values=values), target)
    assert "NUM_BUFFERS" in text and "w_smem" in text and "w_2_smem" in text, text
