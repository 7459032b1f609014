"""A helper takes its arguments where its live code needs them: what it only returns is not moved there and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def cap(s, c, on: tl.constexpr):
        if on:
            s = c * (2 * tl.sigmoid(2 * s / c) - 1)
        return s


    @triton.jit
    def nested(s, c, on: tl.constexpr):
        s = cap(s, c, on)
        return s if not on else s * c


    @triton.jit
    def early(s, c, on: tl.constexpr):
        if not on:
            return s
        return tl.exp(s * c)


    @triton.jit
    def scaled(s, c, on: tl.constexpr):
        return s * c


    @triton.jit
    def pair(s, c, on: tl.constexpr):
        if on:
            s = s * c
        return s, c


    @triton.jit
    def kernel(a_ptr, b_ptr, y_ptr, n, c, B: tl.constexpr, ON: tl.constexpr):
        o = tl.arange(0, B)
        a = tl.load(a_ptr + o[:, None] * B + o[None, :])
        m = tl.zeros((B,), tl.float32)
        for i in range(n):
            b = tl.load(b_ptr + i * B * B + o[:, None] * B + o[None, :])
            s = tl.dot(a, b)
            s = cap(s, c, ON)
            m = tl.maximum(m, tl.max(s, 1))
        tl.store(y_ptr + o, m)
""")
CALL = "s = cap(s, c, ON)"
B = 32


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize(
    "call",
    [CALL, "s = nested(s, c, ON)", "s = early(s, c, ON)", "s = scaled(s, c, ON)", "s, d = pair(s, c, ON)"],
    ids=["flag", "two levels", "early return", "elementwise", "tuple"],
)
def test_what_a_helper_only_returns_is_not_moved(call: str, on: bool, tmp_path: Path):
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "y_ptr": "*fp32", "n": "i32", "c": "fp32"}
    values = {"a_ptr": tensor(B, B), "b_ptr": tensor(3 * B, B), "y_ptr": tensor(B), "n": 3, "c": 0.5}
    spec = launch("kernel", signature, {"B": B, "ON": on}, values=values)
    text = validated(tmp_path, SOURCE.replace(CALL, call), spec)
    loop = text[text.index("for i in range(n)") :].partition("buffer_store")[0]
    moved = [line for line in loop.splitlines() if "convert_layout" in line and "gl.convert_layout(m" not in line]
    assert not moved, text
