"""Helpers whose tensors have another shape in each round of an unrolled loop: their layouts follow from what they are given."""

from __future__ import annotations


import pytest

from slow_rows import slow_but
from translation_of import compiled, dedent, launch, translate, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def exchange(x, flip, i: tl.constexpr, n: tl.constexpr):
        shape: tl.constexpr = [2**i, 2, 2 ** (n - i - 1)]
        y = tl.reshape(x, shape)
        # which half
        half = tl.arange(0, 2)[None, :, None]
        left = tl.reshape(tl.broadcast_to(tl.sum(y * (1 - half), 1)[:, None, :], shape), x.shape)
        right = tl.reshape(tl.broadcast_to(tl.sum(y * half, 1)[:, None, :], shape), x.shape)
        return tl.where((left > right) != flip, left + right - x, x)


    @triton.jit
    def merge(x, stage: tl.constexpr, n: tl.constexpr):
        if stage < n:
            shape: tl.constexpr = [2 ** (n - 1 - stage), 2, 2**stage]
            flip = tl.reshape(tl.broadcast_to(tl.arange(0, 2)[None, :, None], shape), x.shape)
        else:
            flip = 0
        for i in tl.static_range(stage):
            x = exchange(x, flip, i + (n - stage), n)
        return x


    @triton.jit
    def k(x_ptr, y_ptr, N: tl.constexpr):
        o = tl.arange(0, 2**N)
        x = tl.load(x_ptr + o)
        for stage in tl.static_range(1, N + 1):
            x = merge(x, stage, N)
        tl.store(y_ptr + o, x)
""")
SPEC = launch("k", {"x_ptr": "*i32", "y_ptr": "*i32"}, {"N": 8}, warps=1)


@pytest.mark.parametrize("target", slow_but(["gfx950", "gfx1201"]))
def test_layouts_are_those_of_the_given_tensor(target: str, tmp_path):
    text = translate(tmp_path, SOURCE, SPEC, target=target).text
    assert text.count("def exchange") == text.count("def merge") == 1
    exchange = text[text.index("def exchange") : text.index("def merge")]
    assert "y = gl.reshape(x, shape)\n    layout: gl.constexpr = y.type.layout\n    # which half" in exchange
    merge = text[text.index("def merge") : text.index("def k(")]
    asked = merge.index("        layout: gl.constexpr = gl.reshape(x, shape).type.layout\n        flip = ")
    assert asked < merge.index("    else:\n        flip = 0\n    for i in gl.static_range(stage):"), merge
    assert "Layout([" not in exchange + merge and "convert_layout" not in text
    assert "    for stage in gl.static_range(1, N + 1):\n        x = merge(x, stage, N)\n" in text
    found = compiled(tmp_path, text, SPEC, target)
    assert found.metrics.lds_bytes == 0


@pytest.mark.slow
def test_it_sorts(tmp_path):
    validated(tmp_path, SOURCE, SPEC, "gfx950")


ONE_SHAPE = {"merge(x, stage, N)": "merge(x, N, N)", "tl.static_range(stage)": "tl.static_range(1)"}
RETURNED = {
    "return tl.where((left > right) != flip, left + right - x, x)": "return y",
    "x = exchange(x, flip, i + (n - stage), n)": "x += tl.sum(exchange(x, flip, i + (n - stage), n))",
}


@pytest.mark.parametrize(
    "changes", slow_but([ONE_SHAPE, RETURNED]), ids=["one shape", "the caller is given the tensor"]
)
def test_layouts_stay_constants(changes: dict, tmp_path):
    source = SOURCE
    for old, new in changes.items():
        assert old in source
        source = source.replace(old, new)
    text = translate(tmp_path, source, SPEC).text
    exchange = text[text.index("def exchange") : text.index("def merge")]
    assert ".type.layout" not in exchange
    compiled(tmp_path, text, SPEC)
