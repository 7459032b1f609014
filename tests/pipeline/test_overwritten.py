"""Loops that write what later iterations load: nothing of that runs ahead."""

from __future__ import annotations

from pathlib import Path

import pytest
from slow_rows import slow_but_crossed
from translation_of import dedent, launch, tensor, validated

HEAD = """
    import triton
    import triton.language as tl


    @triton.jit
    def put(x_ptrs, x):
        tl.store(x_ptrs, x.to(tl.float16))


    @triton.jit
    def walk(x_ptr, w_ptr, i_ptr, n, s, B: tl.constexpr):
        r = tl.arange(0, B)
        o = r[:, None] * B + r[None, :]
        w = tl.load(w_ptr + o)
"""
LOAD = "a = tl.load(x_ptr + i * B * B + o)"
WRITTEN = {
    "the next tile": f"""
        for i in range(n - 1):
            {LOAD}
            tl.store(x_ptr + (i + 1) * B * B + o, tl.dot(a, w).to(tl.float16))
    """,
    "the next tile, through another pointer": """
        p = x_ptr
        q = x_ptr + s
        for i in range(n - 1):
            a = tl.load(p + o)
            tl.store(q + o, tl.dot(a, w).to(tl.float16))
            p += s
            q += s
    """,
    "the same tile again": """
        for i in range(n - 1):
            a = tl.load(x_ptr + o)
            tl.store(x_ptr + o, tl.dot(a, w).to(tl.float16))
    """,
    "rows that overlap": """
        for i in range(0, (n - 1) * B, B // 2):
            p = x_ptr + (i + r)[:, None] * B + r[None, :]
            tl.store(p, tl.dot(tl.load(p), w).to(tl.float16))
    """,
    "in a helper": f"""
        for i in range(n - 1):
            {LOAD}
            put(x_ptr + (i + 1) * B * B + o, tl.dot(a, w))
    """,
    "an atomic": f"""
        for i in range(n - 1):
            {LOAD}
            tl.atomic_add(x_ptr + (i + 1) * B * B + o, tl.dot(a, w).to(tl.float16))
    """,
    "a descriptor": f"""
        d = tl.make_tensor_descriptor(x_ptr, [n * B, B], [B, 1], [B, B])
        for i in range(n - 1):
            {LOAD}
            d.store([i * B + B, 0], tl.dot(a, w).to(tl.float16))
    """,
    "in a loop inside": f"""
        for i in range(n - 1):
            {LOAD}
            c = tl.dot(a, w).to(tl.float16)
            for j in range(i + 1, n):
                tl.store(x_ptr + j * B * B + o, c)
    """,
    "the rows that a tile is gathered by": f"""
        d = tl.make_tensor_descriptor(i_ptr, [n * B], [1], [B])
        for i in range(n - 1):
            rows = tl.load(i_ptr + i * B + r)
            a = tl.load(x_ptr + rows[:, None] * B + r[None, :])
            put(w_ptr + (i + 1) * B * B + o, tl.dot(a, w))
            d.store([i * B + B], B - 1 - r)
    """,
}
APART = {
    "this tile": f"""
        for i in range(n):
            {LOAD}
            tl.store(x_ptr + i * B * B + o, tl.dot(a, w).to(tl.float16))
    """,
    "the tile before": f"""
        for i in range(1, n):
            {LOAD}
            tl.store(x_ptr + (i - 1) * B * B + o, tl.dot(a, w).to(tl.float16))
    """,
    "another argument": f"""
        for i in range(n - 1):
            {LOAD}
            tl.store(w_ptr + (i + 1) * B * B + o, tl.dot(a, w).to(tl.float16))
    """,
}
B, N = 32, 5
SIGNATURE = {"x_ptr": "*fp16", "w_ptr": "*fp16", "i_ptr": "*i32", "n": "i32", "s": "i32"}
VALUES = {
    "x_ptr": tensor(N, B, B, dtype="float16"),
    "w_ptr": tensor(N, B, B, dtype="float16", range=[-0.1, 0.1]),
    "i_ptr": tensor(N, B, dtype="int32", range=[0, 100]),
    "n": N,
    "s": B * B,
}


def translated(case: str, folder: Path, target: str) -> str:
    source = dedent(HEAD + (WRITTEN | APART)[case])
    return validated(folder, source, launch("walk", SIGNATURE, {"B": B}, stages=3, values=VALUES), target)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("case, target", slow_but_crossed(WRITTEN, ["gfx950", "gfx1250"], 2))
def test_what_is_written_is_not_loaded_ahead(case: str, target: str, tmp_path: Path):
    assert "NUM_BUFFERS" not in translated(case, tmp_path, target)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("target", ["gfx950", "gfx1250"])
@pytest.mark.parametrize("case", APART)
def test_what_lies_elsewhere_runs_ahead(case: str, target: str, tmp_path: Path):
    assert "NUM_BUFFERS" in translated(case, tmp_path, target)
