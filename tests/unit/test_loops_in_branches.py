"""Pipelined loops in the branches of a condition: what a branch assigns keeps its type."""

import pytest
from translation_of import compiled, dedent, launch, translate

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def kernel(a_ptr, b_ptr, c_ptr, K, full, B: tl.constexpr):
        o = tl.arange(0, B)
        acc = tl.zeros((B, B), dtype=tl.float32)
        BEFORE
        if full > 0:
            for k in tl.range(0, K, B, num_stages=4):
                a = tl.load(a_ptr + o[:, None] * K + (k + o)[None, :])
                b = tl.load(b_ptr + (k + o)[:, None] * B + o[None, :])
                acc = tl.dot(a, b, acc)
        else:
            for k in tl.range(0, K, B, num_stages=2):
                a = tl.load(a_ptr + o[:, None] * K + (k + o)[None, :])
                b = tl.load(b_ptr + (k + o)[:, None] * B + o[None, :])
                acc = tl.dot(a, b, acc) * 2
        tl.store(c_ptr + o[:, None] * B + o[None, :], acc)
    """)
LOOP = """for k in tl.range(0, K, B, num_stages=3):
            a = tl.load(a_ptr + o[:, None] * K + (k + o)[None, :])
            b = tl.load(b_ptr + (k + o)[:, None] * B + o[None, :])
            acc = tl.dot(a, b, acc)"""


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", ["gfx950", "gfx942"])
@pytest.mark.parametrize("before", ["", LOOP], ids=["branches", "after a loop"])
def test_rings_of_branches_have_names_of_their_own(before, target, tmp_path):
    pointers = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}
    attrs = dict.fromkeys(pointers, "DS") | {"K": "D"}
    spec = launch("kernel", pointers | {"K": "i32", "full": "i32"}, {"B": 64}, attrs=attrs)
    text = translate(tmp_path, SOURCE.replace("BEFORE", before), spec, target=target).text
    assert text.count("NUM_BUFFERS") > 4, text
    compiled(tmp_path, text, spec, target)


def test_a_loop_with_constant_bounds_and_no_masks(tmp_path):
    """Whether the first tiles are there is known at compile time; a copy takes a value for its mask."""
    text = SOURCE.replace("BEFORE", "").replace("K, full", "full, K: tl.constexpr")
    text = text.replace("tl.range(0, K, B, num_stages=2)", "tl.range(0, K, B, num_stages=4)")
    pointers = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}
    spec = launch("kernel", pointers | {"full": "i32"}, {"K": 128, "B": 64}, attrs=dict.fromkeys(pointers, "DS"))
    text = translate(tmp_path, text, spec, target="gfx950").text
    assert "mask=gl.to_tensor(t * B < K)" in text, text
    compiled(tmp_path, text, spec, "gfx950")
