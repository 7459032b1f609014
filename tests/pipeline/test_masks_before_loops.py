"""A mask made before the loop does not end with it, though its offsets move on."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(x_ptr, y_ptr, z_ptr, N, K, B: tl.constexpr):
        o = tl.arange(0, B)
        k = tl.arange(0, B)
        acc = tl.zeros((B, B), tl.float32)
        x_ptrs = x_ptr + o[:, None] * K + k[None, :]
        y_ptrs = y_ptr + k[:, None] * B + o[None, :]
        mask = (o[:, None] < N) & (k[None, :] < K)
        for i in range(tl.cdiv(K, B)):
            x = tl.load(x_ptrs, mask=mask, other=0.0)
            y = tl.load(y_ptrs)
            acc = tl.dot(x, y, acc)
            k += B
            x_ptrs += B
            y_ptrs += B * B
        tl.store(z_ptr + o[:, None] * B + o[None, :], acc)
    """)
B = 32
SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "N": "i32", "K": "i32"}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", ["gfx1250", "gfx950", "gfx942"])
def test_tiles_past_the_end_are_masked(target: str, tmp_path: Path):
    pointers = ("x_ptr", "y_ptr", "z_ptr")
    values = dict.fromkeys(pointers, tensor(2 * B * B)) | {"N": B, "K": 2 * B}
    spec = launch("product", SIGNATURE, {"B": B}, attrs=dict.fromkeys(pointers, "DS") | {"K": "D"}, values=values)
    text = validated(tmp_path, SOURCE, spec, target)
    assert "NUM_BUFFERS" in text, text
