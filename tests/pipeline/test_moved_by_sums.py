"""What is added to an address, or moves a pointer, keeps its own value: parentheses around what binds less, or spans lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

HEAD = """
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(x_ptr, z_ptr, n, B: tl.constexpr):
        o = tl.arange(0, B)
"""
SHIFTED = """
        x = tl.load(x_ptr + ((n & 3) << 2) + o)
        tl.store(z_ptr + ((n ^ 1) & 1) + o, x)
"""
PLAIN_LOOP = """
        x_ptrs = x_ptr + o
        acc = tl.zeros((B,), tl.float32)
        for i in range(n):
            acc += tl.load(x_ptrs)
            x_ptrs += (B *
                       2)
        tl.store(z_ptr + o, acc + tl.load(x_ptrs))
"""
PIPELINED = """
        tile = o[:, None] * B + o[None, :]
        x_ptrs = x_ptr + tile
        acc = tl.zeros((B, B), tl.float32)
        for i in range(n):
            x = tl.load(x_ptrs)
            acc += tl.dot(x, x)
            x_ptrs += (B *
                       B)
        tl.store(z_ptr + tile, acc + tl.load(x_ptrs))
"""


BODIES = {"shifted": (SHIFTED, "fp32"), "plain loop": (PLAIN_LOOP, "fp32"), "pipelined": (PIPELINED, "fp16")}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("case", BODIES)
@pytest.mark.parametrize("target", ["gfx950", "gfx1250", "gfx1201"])
def test_what_is_added_stays_whole(case: str, target: str, tmp_path: Path):
    body, dtype = BODIES[case]
    signature = {"x_ptr": f"*{dtype}", "z_ptr": "*fp32", "n": "i32"}
    values = {"x_ptr": tensor(256, 32), "z_ptr": tensor(40, 32), "n": 3}
    spec = launch("kernel", signature, {"B": 32}, values=values, stages=3)
    validated(tmp_path, dedent(HEAD + body.rstrip("\n") + "\n"), spec, target)
