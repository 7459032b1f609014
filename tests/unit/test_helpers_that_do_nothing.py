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


@pytest.mark.one_of(3)
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


SORT = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def swap(x, ids, B: tl.constexpr, i: tl.constexpr):
        shape: tl.constexpr = [B // 2 ** (i + 1), 2, 2**i]
        y, z = tl.reshape(x, shape), tl.reshape(ids, shape)
        y = tl.broadcast_to(tl.sum(y, 1)[:, None, :], shape) - y
        z = tl.broadcast_to(tl.sum(z, 1)[:, None, :], shape) - z
        y, z = tl.reshape(y, (B,)), tl.reshape(z, (B,))
        return tl.where(x < 2.0, y, x), tl.where(x < 2.0, z, ids)


    @triton.jit
    def sort(x, ids, B: tl.constexpr):
        for i in tl.static_range(1, 3):
            x, ids = swap(x, ids, B, i)
        return x, ids


    @triton.jit
    def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
        o = tl.arange(0, B)
        x = tl.load(x_ptr + o, mask=o < n, other=0.0)
        r = tl.where(o < n, tl.rand(7, o), 1.0)
        _, ids = sort(r, o, B)
        tl.store(y_ptr + ids, x, mask=o < n)
""")


def test_index_arithmetic_lies_where_the_helper_has_it(tmp_path: Path):
    """Wide loads give `o` two elements per lane, and `r` has one: what is sorted together lies together."""
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
    values = {"x_ptr": tensor(1024), "y_ptr": tensor(1024), "n": 1024}
    attrs = {"x_ptr": "DS", "y_ptr": "DS", "n": "D"}
    spec = launch("kernel", signature, {"B": 1024}, attrs=attrs, values=values)
    text = validated(tmp_path, SORT, spec)
    helper = text[text.index("def sort") : text.index("def kernel")]
    assert "gl.convert_layout" not in helper, text
