"""Products of fp32 in the precision that the source asks for."""

from __future__ import annotations

from pathlib import Path

import pytest
from slow_rows import slow_but
from translation_of import compiled, dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(a_ptr, b_ptr, c_ptr, K):
        om = tl.arange(0, 64)
        on = tl.arange(0, 64)
        ok = tl.arange(0, 32)
        acc = tl.zeros((64, 64), tl.float32)
        for k in range(0, K, 32):
            a = tl.load(a_ptr + om[:, None] * K + (k + ok)[None, :])
            b = tl.load(b_ptr + on[None, :] * K + (k + ok)[:, None])
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + om[:, None] * 64 + on[None, :], acc)
""")


def both(folder: Path, argument: str, target: str):
    """-> (the translation, its metrics, Triton's)."""
    source = SOURCE.replace("acc)\n    tl.store", f"acc{argument})\n    tl.store")
    pointers = ("a_ptr", "b_ptr", "c_ptr")
    signature = dict.fromkeys(pointers, "*fp32") | {"K": "i32"}
    values = dict.fromkeys(pointers, tensor(8192)) | {"K": 128}
    spec = launch("kernel", signature, {}, attrs=dict.fromkeys(pointers, "DS") | {"K": "D"}, values=values)
    text = validated(folder, source, spec, target)
    return text, *(compiled(folder, kernel, spec, target).metrics for kernel in (text, source))


@pytest.mark.parametrize("argument", slow_but(["", ", input_precision='tf32'"]))
def test_tf32_of_cdna3_has_its_own_instructions(argument: str, tmp_path: Path):
    text, ours, theirs = both(tmp_path, argument, "gfx942")
    assert ours.loop.matrix == theirs.loop.matrix and ours.loop.insns <= theirs.loop.insns, (ours, theirs)
    assert "mfma_tf32(" in text and "cdna3.mfma(" not in text, text


@pytest.mark.parametrize("argument, target", slow_but([(", input_precision='ieee'", "gfx942"), ("", "gfx950")]))
def test_other_products_are_exact(argument: str, target: str, tmp_path: Path):
    text, ours, theirs = both(tmp_path, argument, target)
    assert ours.loop.matrix == theirs.loop.matrix, (ours, theirs)
    assert ".mfma(" in text and "tf32" not in text, text
