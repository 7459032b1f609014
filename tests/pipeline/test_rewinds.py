"""What runs ahead in a pipelined loop and is next used by `x += c`: it goes on from where the loop's own tiles ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from slow_rows import slow_but_crossed
from translation_of import dedent, launch, tensor, validated

from gluonize.judge.verdict import validate_launch

HEAD = """
    import triton
    import triton.language as tl


    @triton.jit
    def walk(a_ptrs, b_ptr, K, B: tl.constexpr):
        r = tl.arange(0, B)
        b_ptrs = b_ptr + r[:, None] * B + r[None, :]
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, B):
            acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
            a_ptrs += B
            b_ptrs += B * B
        a_ptrs -= K
        return acc, a_ptrs


    @triton.jit
    def product(a_ptr, b_ptr, c_ptr, n, K, mode, B: tl.constexpr):
        r = tl.arange(0, B)
        b_tile = r[:, None] * B + r[None, :]
        acc = tl.zeros((B, B), tl.float32)
        a_ptrs = a_ptr + r[:, None] * K + r[None, :]
        b_ptrs = b_ptr + b_tile
        off = 0
        m = r
"""
TAIL = """
        tl.store(c_ptr + b_tile, acc)
"""
BODIES = {
    "pointer that an outer loop takes back": """
        for i in range(n):
            b_ptrs = b_ptr + i * K * B + b_tile
            for k in range(0, K, B):
                acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
                a_ptrs += B
                b_ptrs += B * B
            a_ptrs -= K
    """,
    "pointer that a branch takes back": """
        for i in range(n):
            b_ptrs = b_ptr + i * K * B + b_tile
            for k in range(0, K, B):
                acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
                a_ptrs += B
                b_ptrs += B * B
            if i >= 0:
                a_ptrs -= K
    """,
    "pointer that a while loop takes back": """
        i = 0
        while i < n:
            b_ptrs = b_ptr + i * K * B + b_tile
            for k in range(0, K, B):
                acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
                a_ptrs += B
                b_ptrs += B * B
            a_ptrs -= K
            i += 1
    """,
    "pointer that the next loop moves first": """
        for k in range(0, K, B):
            acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
            a_ptrs += B
            b_ptrs += B * B
        for k in range(0, K, B):
            a_ptrs -= B
            acc += tl.dot(tl.load(a_ptrs), tl.load(b_ptr + b_tile))
    """,
    "number that is halved": """
        for k in range(0, K, B):
            a = tl.load(a_ptr + r[:, None] * K + (off + r)[None, :])
            acc = tl.dot(a, tl.load(b_ptr + (off + r)[:, None] * B + r[None, :]), acc)
            off += B
        off //= 2
        acc += off
    """,
    "tensor that is made anew": """
        for k in range(0, K, B):
            m = k + r
            a = tl.load(a_ptr + r[:, None] * K + m[None, :])
            acc = tl.dot(a, tl.load(b_ptr + m[:, None] * B + r[None, :]), acc)
        m += 1
        acc += m[None, :]
    """,
    "tensor that is made anew in a branch": """
        if mode == 2:
            for k in range(0, K, B):
                m = k + r
                a = tl.load(a_ptr + r[:, None] * K + m[None, :])
                acc = tl.dot(a, tl.load(b_ptr + m[:, None] * B + r[None, :]), acc)
            m += 1
            acc += m[None, :]
    """,
    "pointer that a helper takes back": """
        for i in range(n):
            more, a_ptrs = walk(a_ptrs, b_ptr + i * K * B, K, B)
            acc += more
    """,
}
B = 32
SIGNATURE = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"} | dict.fromkeys(("n", "K", "mode"), "i32")


def spec_of(n: int, K: int, mode: int = 2):
    values = {"a_ptr": tensor(B, max(K, B)), "b_ptr": tensor(max(n, 1), max(K, B), B), "c_ptr": tensor(B, B)}
    return launch("product", SIGNATURE, {"B": B}, values=values | {"n": n, "K": K, "mode": mode}, stages=3)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("case, target", slow_but_crossed(BODIES, ["gfx950", "gfx942", "gfx1201", "gfx1250"], 4))
def test_the_next_move_starts_from_the_last_tile(case: str, target: str, tmp_path: Path):
    """Whatever the launch that was translated for shows: one run of the loop, and a branch that is not taken."""
    source = dedent(HEAD + BODIES[case].rstrip() + TAIL)
    validated(tmp_path, source, spec_of(1, 96, mode=0), target)
    files = str(tmp_path / "source.py"), str(tmp_path / "output.py")
    for n, K, mode in ((2, 96, 2), (3, 32, 2), (2, 160, 2)):
        answer = validate_launch(*files, spec_of(n, K, mode), target)
        assert answer["status"] == "validated", (answer, (tmp_path / "output.py").read_text())
