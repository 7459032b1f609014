"""Helpers of unrolled loops, written for each round: where the texts are one, so is the helper, and the loop is a loop."""

from __future__ import annotations

from pathlib import Path

import pytest
from slow_rows import slow_but
from translation_of import compiled, dedent, launch, tensor, translate, validated

BITONIC = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def exchange(x, i: tl.constexpr, up: tl.constexpr, N: tl.constexpr):
        y = tl.reshape(x, [N >> (i + 1), 2, 1 << i])
        upper = tl.arange(0, 2)[None, :, None]
        other = tl.sum(y, 1)[:, None, :] - y
        down = ((tl.arange(0, N >> (i + 1)) >> (up - i)) & 1)[:, None, None]
        return tl.reshape(tl.where((upper == 0) == (down == 0), tl.minimum(y, other), tl.maximum(y, other)), [N])


    @triton.jit
    def kernel(x_ptr, y_ptr, N: tl.constexpr, LOG: tl.constexpr):
        o = tl.arange(0, N)
        x = tl.load(x_ptr + o)
        for s in tl.static_range(LOG):
            for t in tl.static_range(s + 1):
                x = exchange(x, s - t, s, N)
        tl.store(y_ptr + o, x)
""")
LOOPS = "    for s in gl.static_range(LOG):\n        for t in gl.static_range(s + 1):\n            x = exchange(x, s - t, s, N)\n"


def spec(n: int, log: int, warps: int = 4):
    values = {"x_ptr": tensor(n), "y_ptr": tensor(n)}
    return launch("kernel", {"x_ptr": "*i32", "y_ptr": "*i32"}, {"N": n, "LOG": log}, warps=warps, values=values)


@pytest.mark.parametrize("target", slow_but(["gfx942", "gfx1250", "gfx1100"]))
def test_one_exchange_serves_all_rounds(tmp_path: Path, target: str):
    text = validated(tmp_path, BITONIC, spec(256, 8), target)
    assert text.count("def exchange") == 1 and LOOPS in text, text
    assert "layout: gl.constexpr = y.type.layout" in text
    compiled(tmp_path, text, spec(256, 8), target)


def test_branches_that_other_rounds_take_are_put_together(tmp_path: Path):
    """The first round goes one way and the others go another: the text of all of them has both."""
    ways = "        if s == 0:\n            x = exchange(x, 0, 0, N)\n        else:\n            x = exchange(x, s, s, N) + 1\n"
    inner = "        for t in tl.static_range(s + 1):\n            x = exchange(x, s - t, s, N)\n"
    assert inner in BITONIC
    text = validated(tmp_path, BITONIC.replace(inner, ways), spec(64, 3))
    assert "    for s in gl.static_range(LOG):\n" + ways.replace("exchange(x, s", "exchange_2(x, s") in text, text


def test_a_layout_used_before_the_tensor_is_not_asked_of_it(tmp_path: Path):
    """What stands before the tensor cannot ask it for its layout: it is given it."""
    lines = BITONIC.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line.startswith("    y = tl.reshape"))
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    text = translate(tmp_path, "".join(lines), spec(64, 3)).text
    helper = text[text.index("def exchange") :].partition("\n\n\n")[0]
    assert ".type.layout" not in helper and "layout: gl.constexpr, layout_2: gl.constexpr):" in helper
    compiled(tmp_path, text, spec(64, 3))
