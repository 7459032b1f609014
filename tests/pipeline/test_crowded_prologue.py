"""Before a loop with many tiles the data mover copies one after the other, so that not all addresses are held at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

KERNEL = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(a_ptr, b_ptr, c_ptr, d_ptr, out_ptr, n, FOUR: tl.constexpr):
        rows, columns = tl.arange(0, 32)[:, None], tl.arange(0, 32)[None, :]
        s = tl.zeros((32, 32), tl.float32)
        for i in range(n):
            at = (i * 32 + rows) * 32 + columns
            mask = i * 32 + rows < n * 32
            s = tl.dot(tl.load(a_ptr + at, mask=mask, other=0.0), tl.load(b_ptr + at, mask=mask, other=0.0), s)
            if FOUR:
                s = tl.dot(tl.load(c_ptr + at, mask=mask, other=0.0), tl.load(d_ptr + at, mask=mask, other=0.0), s)
        tl.store(out_ptr + rows * 32 + columns, s)
""")
POINTERS = {name + "_ptr": "*fp16" for name in "abcd"}
SIGNATURE = {**POINTERS, "out_ptr": "*fp32", "n": "i32"}
VALUES = {**{name: tensor(96, 32) for name in POINTERS}, "out_ptr": tensor(32, 32), "n": 3}
HINT = "hint.sched_barrier()\n        tdm.async_load"


def spec(four: bool, stages: int):
    return launch("kernel", SIGNATURE, {"FOUR": four}, warps=4, stages=stages, values=VALUES)


@pytest.mark.parametrize(
    "four, stages, hints", [(True, 3, 1), (True, 2, 0), (False, 3, 0)], ids=["many", "one of each", "two"]
)
def test_only_many_copies_are_kept_apart(four, stages, hints, tmp_path: Path):
    text = validated(tmp_path, KERNEL, spec(four, stages), "gfx1250")
    assert text.count("tdm.async_load(") == (8 if four else 4) and text.count(HINT) == hints
