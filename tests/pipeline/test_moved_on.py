"""Variables that tiles ahead move and that are read when the loop is over: behind it, by its next run, by another move."""

from __future__ import annotations

from pathlib import Path

import pytest
from slow_rows import slow_but_crossed
from translation_of import dedent, launch, tensor, validated

B = 32
HEAD = """
    import triton
    import triton.language as tl


    @triton.jit
    def product(x_ptr, y_ptr, z_ptr, n, K, B: tl.constexpr):
        o = tl.arange(0, B)
        tile = o[:, None] * B + o[None, :]
        y = tl.load(y_ptr + tile)
        acc = tl.zeros((B, B), tl.float32)
        off = o + 0
        x_ptrs = x_ptr + tile
"""
TAIL = """
        tl.store(z_ptr + tile, acc)
"""
LOADED = "x = tl.load(x_ptrs, mask=off[:, None] < n, other=0.0)"
BODIES = {
    "next run of the loop": f"""
        for j in range(2):
            for i in range(0, K // 2):
                {LOADED}
                acc = acc * 0.5 + tl.dot(x, y)
                x_ptrs += B * B
                off += B
    """,
    "next run, a constant number of tiles": f"""
        for j in range(2):
            for i in range(2):
                {LOADED}
                acc = acc * 0.5 + tl.dot(x, y)
                x_ptrs += B * B
                off += B
    """,
    "next run in a while loop": f"""
        j = 0
        while j < K:
            for i in range(j, min(j + 2, K)):
                {LOADED}
                acc = acc * 0.5 + tl.dot(x, y)
                x_ptrs += B * B
                off += B
            j += 2
    """,
    "next run, moved down before the load": f"""
        x_ptrs += K * B * B
        off += K * B
        for j in range(2):
            for i in range(K // 2 - 1, -1, -1):
                x_ptrs -= B * B
                off -= B
                {LOADED}
                acc = acc * 0.5 + tl.dot(x, y)
    """,
    "moved back by hand": f"""
        for j in range(2):
            for i in range(K):
                {LOADED}
                acc = acc * 0.5 + tl.dot(x, y)
                x_ptrs += B * B
                off += B
            x_ptrs -= B * B * K
            off -= B * K
    """,
    "there and back": f"""
        for i in range(K):
            {LOADED}
            acc = acc * 0.5 + tl.dot(x, y)
            x_ptrs += B * B
            off += B
        for i in range(K):
            x_ptrs -= B * B
            off -= B
            {LOADED}
            acc = acc * 0.5 + tl.dot(x, y)
    """,
    "a move that cannot be undone": """
        first = 1
        for j in range(2):
            for i in range(3):
                x = tl.load(x_ptr + first * B * B + tile, mask=o[:, None] + first * B < n, other=0.0)
                acc = acc * 0.5 + tl.dot(x, y)
                first = (first * 5 + 3) % K
    """,
    "index of the last tile": """
        m = o
        for i in range(K):
            m = i * B + o
            x = tl.load(x_ptr + m[:, None] * B + o[None, :], mask=m[:, None] < n, other=0.0)
            acc = acc * 0.5 + tl.dot(x, y)
        m += 1
        acc += m[None, :]
    """,
    "twice in an iteration": f"""
        for i in range(K // 2):
            {LOADED}
            acc = acc * 0.5 + tl.dot(x, y)
            x_ptrs += B * B
            off += B
            {LOADED}
            acc = acc * 0.25 + tl.dot(x, y)
            x_ptrs += B * B
            off += B
    """,
    "twice, behind a loop that may not run": f"""
        if n > 1000:
            for i in range(0, K):
                {LOADED}
                acc = acc * 0.5 + tl.dot(x, y)
                x_ptrs += B * B
                off += B
        for i in range(0, K):
            {LOADED}
            acc = acc * 0.25 + tl.dot(x, y)
            x_ptrs += B * B
            off += B
    """,
}
SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "n": "i32", "K": "i32"}


def spec_of(stages: int, blocks: int = 4):
    rows = blocks * B - 5
    values = {
        "x_ptr": tensor(rows, B, dtype="float16"),
        "y_ptr": tensor(B, B, dtype="float16"),
        "z_ptr": tensor(B, B, dtype="float32"),
        "n": rows,
        "K": blocks,
    }
    return launch("product", SIGNATURE, {"B": B}, stages=stages, values=values)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("case, target", slow_but_crossed(BODIES, ["gfx950", "gfx942", "gfx1250"], 3))
def test_values_moved_ahead_are_right_when_the_loop_is_over(case: str, target: str, tmp_path: Path):
    text = validated(tmp_path, dedent(HEAD + BODIES[case].rstrip() + TAIL), spec_of(3), target)
    assert "_smem" in text, text  # it is still pipelined
