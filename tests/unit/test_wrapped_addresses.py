"""Addresses of tiles for the tensor data mover that are 32-bit numbers in part: they wrap around where those of the source do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from slow_rows import slow_but
from translation_of import dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(x, y, o, n, stride, far, B: tl.constexpr):
        pid = tl.program_id(0)
        r = tl.arange(0, B)
        c = tl.arange(0, 64)
        a = {start} + r[:, None] * stride + c[None, :]
        b = y + c[:, None] * B + r[None, :]
        acc = tl.zeros((B, B), dtype=tl.float32)
        for k in range(0, n, 64):
            u = tl.load(a, mask=c[None, :] < n - k, other=0.0)
            v = tl.load(b, mask=c[:, None] < n - k, other=0.0)
            acc = tl.dot(u, v, acc)
            a += 64
            b += 64 * B
        tl.store(o + pid * B * B + r[:, None] * B + r[None, :], acc)
    """)
# Where a tile begins, and what of it the output has.
STARTS = {
    "x + pid * B * stride + far": "x + pid * stride * B + far,",
    "x + (pid * B * stride).to(tl.int64)": "x + (pid * B * stride).to(gl.int64),",
    "x + (pid * B * stride + far)": "x + (pid * B * stride).to(gl.int64) + far,",
    "x - (-pid * B * stride - n) + far": "x + (n - (-pid) * stride * B) + far,",
    "x + pid.to(tl.int64) * B * stride + far": "x + pid.to(gl.int64) * stride * B + far,",
    "x + far + (pid * B).to(tl.int64) * stride": "x + far + pid.to(gl.int64) * stride * B,",
}


@pytest.mark.compile
@pytest.mark.parametrize("start", slow_but(STARTS, 2))
def test_sums_of_two_widths(start: str, tmp_path: Path):
    """A validation runs a program whose 32-bit product of sizes has wrapped around, too."""
    B, n, stride = 64, 150, 192
    signature = {"x": "*fp16", "y": "*fp16", "o": "*fp32", "n": "i32", "stride": "i32", "far": "i64"}
    values = {"x": tensor(8 * B, stride), "y": tensor(4 * stride, B), "o": tensor(4 * B, B)}
    values |= {"n": n, "stride": stride, "far": 64}
    spec = replace(launch("product", signature, {"B": B}, values=values), grid=(3,))
    text = validated(tmp_path, SOURCE.format(start=start), spec, "gfx1250")
    assert STARTS[start] in text, text
