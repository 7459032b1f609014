"""Statements with lines that begin left of their block, in a loop whose warps alternate between stages."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

from gluonize.decide.choices.chosen import choices_of

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(x, y, o, n, B: tl.constexpr):
        r = tl.arange(0, B)
        a = x + r[:, None] * B + r[None, :]
        b = y + r[:, None] * B + r[None, :]
        acc = tl.zeros((B, B), dtype=tl.float32)
        for k in range(n):
            w = k * (2
    - 1)
            u = tl.load(a)
    # of y
            v = tl.load(b)
            acc = tl.dot(u, v, acc)
            acc = acc * (1.0
    - 0.5) + w
    #       acc = acc * 2
            a += B * B
            b += (B
    * B)
        tl.store(o + r[:, None] * B + r[None, :], acc)
    """)


@pytest.mark.compile
@pytest.mark.parametrize("target", ["gfx950", "gfx1250"])
def test_such_lines_are_indented_with_their_stage(target: str, tmp_path: Path):
    values = {"x": tensor(6 * 64, 64), "y": tensor(6 * 64, 64), "o": tensor(64, 64), "n": 5}
    spec = launch("product", {"x": "*fp16", "y": "*fp16", "o": "*fp32", "n": "i32"}, {"B": 64}, warps=8, values=values)
    chosen = (("product", choices_of(warp_groups="alternating", depth="2")),)
    text = validated(tmp_path, SOURCE, spec, target, chosen=chosen)
    _, first, last = text.split("with gl.amd.warp_pipeline_stage(")
    assert " " * 12 + "w = k" in first and " " * 12 + "acc = acc * (1.0" in last, text


@pytest.mark.compile
def test_such_lines_behind_tabs(tmp_path: Path):
    values = {"x": tensor(6 * 64, 64), "y": tensor(6 * 64, 64), "o": tensor(64, 64), "n": 5}
    spec = launch("product", {"x": "*fp16", "y": "*fp16", "o": "*fp32", "n": "i32"}, {"B": 64}, warps=8, values=values)
    chosen = (("product", choices_of(warp_groups="alternating", depth="2")),)
    text = validated(tmp_path, SOURCE.replace("    ", "\t"), spec, "gfx950", chosen=chosen)
    assert "\n\t\t    w = k * (2\n" in text, text
