"""Pointer variables that a loop moves by assignments, each of which makes another variable of the one before."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(a_ptr, d_ptr, n, B: tl.constexpr):
        r = tl.arange(0, B)
        ap = a_ptr + r
        acc = tl.zeros((B,), dtype=tl.float32)
        for t in range(n):
            ap = ap + B
            acc = acc * 2 + tl.load(ap)
            ap = ap + 8
        tl.store(d_ptr + r, acc)
    """)
FORWARD = {
    "twice": SOURCE,
    "three times": SOURCE.replace("        ap = ap + 8\n", "        ap = ap + 8\n        acc += tl.load(ap)\n        ap = ap + n\n"),
    "from anew in a branch": SOURCE.replace("        ap = ap + 8\n", "        if t == 1:\n            ap = a_ptr + r\n        ap = ap + 8\n"),
}  # fmt: skip


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
@pytest.mark.parametrize("source", FORWARD)
def test_each_iteration_reads_where_the_source_does(source: str, target: str, tmp_path: Path):
    values = {"a_ptr": tensor(1024), "d_ptr": tensor(64), "n": 3}
    spec = launch("kernel", {"a_ptr": "*fp32", "d_ptr": "*fp32", "n": "i32"}, {"B": 64}, values=values)
    validated(tmp_path, FORWARD[source], spec, target)
