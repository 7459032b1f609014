"""`tl.load_tensor_descriptor(d, at)` and `tl.store_tensor_descriptor(d, at, x)` are what the methods are."""

import pytest
from translation_of import dedent, launch, translate

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(x, w, y, K, B: tl.constexpr):
        xd = tl.make_tensor_descriptor(x, shape=[64, K], strides=[K, 1], block_shape=[B, B])
        wd = tl.make_tensor_descriptor(w, shape=[K, 64], strides=[64, 1], block_shape=[B, B])
        yd = tl.make_tensor_descriptor(y, shape=[64, 64], strides=[64, 1], block_shape=[B, B])
        row = tl.program_id(0) * B
        acc = tl.zeros((B, B), tl.float32)
        for k in tl.range(0, K, B, num_stages=2):
            a = xd.load([row, k])
            b = wd.load([k, 0])
            acc = tl.dot(a, b, acc)
        yd.store([row, 0], acc.to(tl.float16))
    """)
FORMS = {
    "by position": ("tl.load_tensor_descriptor(xd, [row, k])", "tl.store_tensor_descriptor(yd, [row, 0], acc.to(tl.float16))"),
    "by name": ("tl.load_tensor_descriptor(offsets=[row, k], desc=xd)", "tl.store_tensor_descriptor(yd, value=acc.to(tl.float16), offsets=[row, 0])"),
}  # fmt: skip


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", ["gfx1250", "gfx950"])
@pytest.mark.parametrize("form", FORMS)
def test_functions_and_methods_of_descriptors_become_the_same(tmp_path, form, target):
    load, store = FORMS[form]
    text = SOURCE.replace("xd.load([row, k])", load).replace("yd.store([row, 0], acc.to(tl.float16))", store)
    assert load in text and store in text
    pointers = {name: "*fp16" for name in "xwy"}
    spec = launch("product", {**pointers, "K": "i32"}, {"B": 64}, attrs={**dict.fromkeys("xwy", "DS"), "K": "D"})
    codes = [translate(tmp_path, source, spec, target=target).text for source in (text, SOURCE)]
    assert "load_tensor_descriptor" not in codes[0]
    bodies = [code[code.index("@gluon.jit") :] for code in codes]
    assert bodies[0] == bodies[1] and "range" in bodies[0]
