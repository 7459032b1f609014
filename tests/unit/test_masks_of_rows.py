"""Masks and indices made of rows: the rows move to another layout, not what is made of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(t_ptr, a_ptr, c_ptr, N, V, B: tl.constexpr):
        o = tl.arange(0, B)
        token = tl.load(t_ptr + o)
        valid = token < V
        mask = valid[:, None] & (o[None, :] < N)
        a = tl.load(a_ptr + o[:, None] * B + o[None, :], mask=mask, other=0.0)
        tl.atomic_add(c_ptr + token[:, None] * N + o[None, :], a.to(tl.float32), mask=mask)
""")


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
@pytest.mark.parametrize(
    "mask",
    [
        "valid[:, None] & (o[None, :] < N)",
        "(valid[:, None] & (o[None, :] < N)) | ((token[:, None] + o[None, :]) < 3)",
        "(o[None, :] < N) & valid[:, None]",
    ],
)
def test_rows_move_and_not_the_mask(mask: str, target: str, tmp_path: Path):
    signature = {"t_ptr": "*i32", "a_ptr": "*fp16", "c_ptr": "*fp32", "N": "i32", "V": "i32"}
    tokens = {**tensor(64), "tensor": {**tensor(64)["tensor"], "data": [(7 * i + 3) % 64 for i in range(64)]}}
    values = {"t_ptr": tokens, "a_ptr": tensor(64, 64), "c_ptr": tensor(64, 60), "N": 60, "V": 50}
    text = validated(tmp_path, SOURCE.replace("mask = valid[:, None] & (o[None, :] < N)", f"mask = {mask}"), launch(
        "kernel", signature, {"B": 64}, values=values), target)  # fmt: skip
    assert "gl.convert_layout(mask" not in text and "mask=gl.convert_layout(" not in text, text


SPREAD = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(w_ptr, s_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
        o, n, all = tl.arange(0, M), tl.arange(0, N), tl.arange(0, 8 * N)
        w = tl.load(w_ptr + o[:, None] * N + n[None, :])
        w = tl.interleave(w, w)
        w = tl.interleave(w, w)
        w = tl.interleave(w, w)
        shifts = tl.reshape(tl.broadcast_to((tl.arange(0, 8) * 4)[None, :], (M * N, 8)), (M, 8 * N))
        scale = tl.load(s_ptr + all[None, :])
        scale = tl.broadcast_to(scale, (M, 8 * N))
        tl.store(y_ptr + o[:, None] * 8 * N + all[None, :], (((w >> shifts) & 15) * scale).to(tl.bfloat16))
""")


def test_what_is_spread_over_a_tile_moves_before(tmp_path: Path):
    """Of `scale` a row moves to where `w` lies, not the tile that it is made into."""
    signature = {"w_ptr": "*i32", "s_ptr": "*bf16", "y_ptr": "*bf16"}
    values = {"w_ptr": tensor(32, 32), "s_ptr": tensor(256), "y_ptr": tensor(32, 256)}
    spec = launch("kernel", signature, {"M": 32, "N": 32}, values=values)
    text = validated(tmp_path, SPREAD, spec, "gfx950")
    assert "tl.broadcast_to(gl.convert_layout(scale, " in text, text
