"""`acc += tl.dot(...)` outside of loops makes a new variable, so that each product accumulates in its own layout."""

from __future__ import annotations

from translation_of import compiled, dedent, launch, translate

TEXT = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, acc_ptr, out_ptr):
        i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
        x = tl.load(x_ptr + i * 64 + j)
        acc = tl.load(acc_ptr + i * 64 + j)
        acc += tl.dot(x, x)
        acc += tl.dot(tl.trans(x), x)
        acc -= tl.dot(x, tl.trans(x))
        tl.store(out_ptr + i * 64 + j, acc)
    """)


def test_a_sum_is_converted_before_the_first_product_only(tmp_path):
    spec = launch("kernel", {"x_ptr": "*fp16", "acc_ptr": "*fp32", "out_ptr": "*fp32"}, {})
    text = translate(tmp_path, TEXT, spec).text
    assert text.count("gl.convert_layout(acc, ") == 1 or "gl.convert_layout(acc, acc_store)" in text
    assert "acc -= cdna3.mfma(" in text
    compiled(tmp_path, text, spec)


def test_zeros_are_made_in_the_layout_of_the_product(tmp_path):
    body = TEXT.replace("acc = tl.load(acc_ptr + i * 64 + j)", "acc = tl.zeros((64, 64), tl.float32)")
    spec = launch("kernel", {"x_ptr": "*fp16", "acc_ptr": "*fp32", "out_ptr": "*fp32"}, {})
    text = translate(tmp_path, body, spec).text
    assert "layout=mma)" in next(line for line in text.splitlines() if "acc = gl.zeros" in line)
