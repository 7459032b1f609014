"""Sorts and selections, whose loops that are written out change shapes, in the only iteration too."""

from __future__ import annotations

from pathlib import Path

import pytest
from slow_rows import slow_but
from translation_of import dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def select(x_ptr, y_ptr, B: tl.constexpr, K: tl.constexpr, LARGEST: tl.constexpr):
        x = tl.load(x_ptr + tl.arange(0, 2)[:, None] * B + tl.arange(0, B)[None, :])
        for i in range(2):
            y = tl.topk(x - i, K, descending=LARGEST)
            tl.store(y_ptr + (2 * i + tl.arange(0, 2))[:, None] * K + tl.arange(0, K)[None, :], y)


    @triton.jit
    def first(x_ptr, y_ptr, B: tl.constexpr, K: tl.constexpr, LARGEST: tl.constexpr):
        tl.store(y_ptr + tl.arange(0, K), tl.topk(tl.load(x_ptr + tl.arange(0, B)), K, descending=LARGEST))


    @triton.jit
    def flattened(x_ptr, y_ptr, B: tl.constexpr, K: tl.constexpr, LARGEST: tl.constexpr):
        x = tl.load(x_ptr + tl.arange(0, B))
        for i in tl.static_range(B // K - 1):
            x = tl.reshape(x, (2, K))
            x = tl.max(x, 0)
        tl.store(y_ptr + tl.arange(0, K), x)


    @triton.jit
    def kept(x_ptr, y_ptr, B: tl.constexpr, K: tl.constexpr, LARGEST: tl.constexpr):
        x = tl.load(x_ptr + tl.arange(0, B))
        y = tl.sum(x, 0, True) + tl.min(x, 0, False, True, True) + tl.xor_sum(x.to(tl.int32), 0, True)
        tl.store(y_ptr + tl.arange(0, 1), y)
""")


@pytest.mark.parametrize("target", slow_but(["gfx950", "gfx1250"]))
@pytest.mark.parametrize(
    "kernel, size, kept, largest",
    slow_but(
        [
            ("select", 16, 8, False),
            ("first", 4, 2, True),
            ("select", 64, 32, True),
            ("select", 16, 4, True),
            ("first", 64, 32, True),
            ("flattened", 64, 32, True),
            ("kept", 64, 32, True),
        ],
        kept=2,
    ),
)
def test_selections(kernel: str, size: int, kept: int, largest: bool, target: str, tmp_path: Path):
    values = {"x_ptr": tensor(2, size), "y_ptr": tensor(4, size)}
    constexprs = {"B": size, "K": kept, "LARGEST": largest}
    validated(tmp_path, SOURCE, launch(kernel, {"x_ptr": "*fp32", "y_ptr": "*fp32"}, constexprs, values=values), target)
