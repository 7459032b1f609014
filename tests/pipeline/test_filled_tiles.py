"""Tiles whose masked lanes hold something other than 0: copies straight to LDS take it along."""

from __future__ import annotations

from pathlib import Path

import pytest
from slow_rows import in_turn
from translation_of import compiled, dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(a_ptr, b_ptr, c_ptr, K, fill, B: tl.constexpr):
        r = tl.arange(0, B)
        each = (r[:, None] - r[None, :]).to(tl.float16)
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, B):
            a = tl.load(a_ptr + r[:, None] * K + (k + r)[None, :], mask=r[:, None] < 20, other=OTHER)
            b = tl.load(b_ptr + (k + r)[:, None] * B + r[None, :], mask=(k + r)[:, None] < K - 3, other=-1)
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + r[:, None] * B + r[None, :], acc)
""")
SIGNATURE = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32", "fill": "fp32"}
VALUES = {"a_ptr": tensor(32, 96), "b_ptr": tensor(96, 32), "c_ptr": tensor(32, 32), "K": 96, "fill": 2.5}
ATTRS = {"a_ptr": "DS", "b_ptr": "DS", "c_ptr": "DS", "K": "D"}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("other, target", in_turn(["1.5", "fill", "k", "each"], ["gfx950", "gfx1250"]))
def test_copies_fill(other: str, target: str, tmp_path: Path):
    spec = launch("product", SIGNATURE, {"B": 32}, attrs=ATTRS, stages=3, values=VALUES)
    text = validated(tmp_path, SOURCE.replace("OTHER", other), spec, target)
    copies = "load_to_shared(" if target == "gfx950" else "async_copy.global_to_shared("
    assert text.count(copies) == 4 and "NUM_BUFFERS" in text, text
    compiled(tmp_path, text, spec, target)
