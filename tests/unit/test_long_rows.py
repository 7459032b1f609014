"""Rows of which a lane of RDNA holds many elements: moved where a loop reads them, not held from before it."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(x_ptr, r_ptr, y_ptr, z_ptr, n, B: tl.constexpr, C: tl.constexpr):
        rows = tl.arange(0, B)
        cols = tl.arange(0, C)
        r = tl.load(r_ptr + rows)
        y = tl.load(y_ptr + rows[:, None] * B + rows[None, :])
        for i in range(n):
            x = tl.load(x_ptr + i * B * C + rows[:, None] * C + cols[None, :])
            z = tl.dot(tl.trans(x * r[:, None]), y)
            tl.store(z_ptr + i * B * C + cols[:, None] * B + rows[None, :], z)
    """)
SIGNATURE = {"x_ptr": "*bf16", "r_ptr": "*bf16", "y_ptr": "*bf16", "z_ptr": "*fp32", "n": "i32"}


@pytest.mark.parametrize("target, B, inside", [("gfx1100", 64, True), ("gfx1201", 64, True), ("gfx1201", 32, False)])
def test_long_rows_are_moved_in_the_loop(target: str, B: int, inside: bool, tmp_path: Path):
    values = {"x_ptr": tensor(3, B, 32), "r_ptr": tensor(B), "y_ptr": tensor(B, B), "z_ptr": tensor(3, 32, B), "n": 3}
    spec = launch("kernel", SIGNATURE, {"B": B, "C": 32}, values=values, warps=2)
    before, _, body = validated(tmp_path, SOURCE, spec, target).partition("for i in range(n):")
    assert ("gl.convert_layout(r, " in body, "gl.convert_layout(r, " in before) == (inside, not inside), before + body
