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


BESIDE = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x, g, o, GC, LOW, HAS: tl.constexpr, B: tl.constexpr):
        rows, cols = tl.arange(0, B), tl.arange(0, B)
        v = tl.load(x + rows[:, None] * B + cols[None, :])
        base = g + tl.program_id(0).to(tl.int64) * GC * B
        o_base = o + tl.program_id(0).to(tl.int64) * B
        for turn in range(2):
            if HAS:
                if turn > 0:
                    tl.store(base + rows[:, None] * GC + (cols - LOW)[None, :], v, mask=(cols >= LOW)[None, :])
        if HAS:
            r = base + rows * GC
            tl.store(r + B, tl.sum(v, axis=1))
        tl.store(o_base + rows, tl.sum(v, axis=1))
    """)


def test_a_variable_made_of_a_base_that_becomes_an_offset(tmp_path: Path):
    values = {"x": tensor(1024), "g": tensor(8192), "o": tensor(64), "GC": 80, "LOW": 3}
    kinds = {"x": "*fp32", "g": "*fp32", "o": "*fp32", "GC": "i32", "LOW": "i32"}
    spec = launch("kernel", kinds, {"HAS": True, "B": 32}, values=values)
    validated(tmp_path, BESIDE, spec, "gfx950")
