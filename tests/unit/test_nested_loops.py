"""Pipelined loops inside pipelined loops: what each adds has a name of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(a_ptr, b_ptr, v_ptr, out_ptr, N, K: tl.constexpr, B: tl.constexpr):
        i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
        out = tl.zeros([B, B], tl.float32)
        for n in range(N):
            acc = tl.zeros([B, B], tl.float32)
            for k in range(K):
                a = tl.load(a_ptr + (n * K + k) * B * B + i * B + j)
                b = tl.load(b_ptr + k * B * B + i * B + j)
                acc = tl.dot(a, b, acc)
            v = tl.load(v_ptr + n * B * B + i * B + j)
            out = tl.dot(acc.to(tl.float16), v, out)
        tl.store(out_ptr + i * B + j, out)
""")
N, K, B = 5, 1, 64  # Triton has no inner loop, and fetches its tiles ahead in the outer one
SPEC = launch(
    "kernel",
    {"a_ptr": "*fp16", "b_ptr": "*fp16", "v_ptr": "*fp16", "out_ptr": "*fp32", "N": "i32"},
    {"K": K, "B": B},
    values={
        "a_ptr": tensor(N * K, B, B),
        "b_ptr": tensor(K, B, B),
        "v_ptr": tensor(N, B, B),
        "out_ptr": tensor(B, B),
        "N": N,
    },
)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("target", ["gfx950", "gfx942", "gfx1201", "gfx1250"])
def test_an_inner_loop_changes_nothing_that_the_outer_one_goes_on_with(tmp_path: Path, target: str):
    text = validated(tmp_path, SOURCE, SPEC, target=target)
    assert "a_smem = gl.allocate" in text and "v_smem = gl.allocate" in text, text
