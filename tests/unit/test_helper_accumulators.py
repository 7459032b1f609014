"""An accumulator that starts as zeros and is added to in a helper lies where the helper's products have it."""

import pytest
from translation_of import compiled, dedent, launch, translate

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def add(acc, a_ptr, b_ptr, first, last, B: tl.constexpr, N: tl.constexpr):
        o, n = tl.arange(0, B), tl.arange(0, N)
        for k in range(first, last):
            a = tl.load(a_ptr + k * B * B + o[:, None] * B + o[None, :])
            b = tl.load(b_ptr + k * B * N + o[:, None] * N + n[None, :])
            SUM
        return acc, k


    @triton.jit
    def kernel(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr, N: tl.constexpr):
        acc = tl.zeros((B, N), dtype=tl.float32)
        acc, k = add(acc, a_ptr, b_ptr, 0, K, B, N)
        acc, k = add(acc, a_ptr, b_ptr, K, 2 * K, B, N)
        tl.store(c_ptr + tl.arange(0, B)[:, None] * N + tl.arange(0, N)[None, :], acc)
    """).replace("return acc, k", "return acc, first")


@pytest.mark.one_of(2)
@pytest.mark.parametrize("sum", ["acc += tl.dot(a, b)", "acc = acc * 2\n        acc += tl.dot(a, b).to(tl.float32)"])
@pytest.mark.parametrize("target", ["gfx1250", "gfx942"])
def test_the_accumulator_is_not_moved_in_the_loop(target, sum, tmp_path):
    pointers = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}
    spec = launch("kernel", pointers | {"K": "i32"}, {"B": 64, "N": 128}, attrs=dict.fromkeys(pointers, "DS"))
    text = translate(tmp_path, SOURCE.replace("SUM", sum), spec, target=target).text
    helper = text[text.index("def add") : text.index("def kernel")]
    assert "gl.convert_layout(acc" not in helper and "convert_layout(cdna" not in helper.replace("\n", ""), helper
    assert "NUM_BUFFERS" in helper or "mfma" in helper, helper
    compiled(tmp_path, text, spec, target)
