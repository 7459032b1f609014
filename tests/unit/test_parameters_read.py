"""Compile-time parameters whose values are in the translation without their names: other values are refused."""

from __future__ import annotations

import pytest
from translation_of import compiled, dedent, launch, translate

from gluonize.diagnostics import TranslationError

SOURCE = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def padded(p, mask, PAD: tl.constexpr):
        return tl.load(p, mask=mask, other=PAD)

    @triton.jit
    def kernel(x_ptr, out_ptr, n, PAD: tl.constexpr, SCALE: tl.constexpr, STAGES: tl.constexpr):
        i = tl.arange(0, 64)
        x = tl.load(x_ptr + i, mask=i < n, other=PAD) * SCALE
        for k in tl.range(0, n, num_stages=STAGES):
            x += 1.0
        tl.store(out_ptr + i, x)
""")
POINTERS = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}


def spec(pad: int):
    return launch("kernel", POINTERS, {"PAD": pad, "SCALE": 1, "STAGES": 2})


def test_a_value_that_stands_without_its_name_is_asserted(tmp_path):
    text = translate(tmp_path, SOURCE, spec(0)).text
    assert (
        "other=" not in text[text.index("def kernel") :] and "static_assert(gl.num_warps() == 4 and PAD == 0)" in text
    )
    assert "SCALE ==" not in text and "STAGES ==" not in text  # named in the text, and a hint
    compiled(tmp_path, text, spec(0))
    with pytest.raises(TranslationError, match="PAD == 0"):
        compiled(tmp_path, text, spec(7))


def test_a_value_that_is_named_is_not(tmp_path):
    text = translate(tmp_path, SOURCE, spec(7)).text
    assert "other=PAD" in text and "PAD ==" not in text
    compiled(tmp_path, text, spec(3))


def test_helpers_keep_what_their_callers_decide(tmp_path):
    text = translate(
        tmp_path, SOURCE.replace("tl.load(x_ptr + i, mask=i < n, other=PAD)", "padded(x_ptr + i, i < n, PAD)"), spec(0)
    ).text
    assert "other=PAD" in text and "PAD ==" not in text
    compiled(tmp_path, text, spec(7))
