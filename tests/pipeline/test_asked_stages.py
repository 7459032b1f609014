"""Warps that are asked to alternate between memory and compute: a loop does, or it is said why none does."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, translate

from gluonize.request import TranslateRequest
from gluonize.translation import translate_kernel

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr, BK: tl.constexpr):
        r = tl.arange(0, B)
        rk = tl.arange(0, BK)
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, BK):
            a = tl.load(a_ptr + r[:, None] * K + (k + rk)[None, :])
            b = tl.load(b_ptr + (k + rk)[:, None] * B + r[None, :])
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + r[:, None] * B + r[None, :], acc)
""")
ONCE = SOURCE.replace("    for k in range(0, K, BK):\n", "    if K:\n        k = 0\n")
SPEC = launch(
    "product", {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32"}, {"B": 128, "BK": 64}, warps=8
)


def test_a_loop_alternates(tmp_path: Path):
    assert "warp_pipeline_stage(" in translate(tmp_path, SOURCE, SPEC, target="gfx950", strategy="ping-pong").text


def test_a_tile_that_warps_exchange_when_it_is_loaded_keeps_them_together(tmp_path: Path):
    """Triton's pipeliner leaves `a` in registers on gfx942: one group of warps would read what the other one has not stored yet."""
    (tmp_path / "source.py").write_text(SOURCE)
    request = TranslateRequest(str(tmp_path / "source.py"), "gfx942", launches=(SPEC,), strategy="ping-pong")
    (found,) = translate_kernel(request).outcomes[0].diagnostics
    assert (found.code, found.line) == ("ping-pong", 10) and "goes through LDS between warps" in found.why


@pytest.mark.parametrize(
    "text, what",
    [
        (ONCE, "`product` has no loop whose warps could alternate"),
        (SOURCE.replace("acc = tl.dot(a, b, acc)", "acc += tl.sum(a, 1)[:, None] + tl.sum(b, 0)[None, :]"), "`for k`"),
    ],
    ids=["no loop", "no product"],
)
def test_where_none_does_it_is_said(text: str, what: str, tmp_path: Path):
    (tmp_path / "source.py").write_text(text)
    request = TranslateRequest(str(tmp_path / "source.py"), "gfx942", launches=(SPEC,), strategy="ping-pong")
    result = translate_kernel(request)
    assert result.text is None
    (found,) = result.outcomes[0].diagnostics
    assert found.code == "strategy" and what in found.message, found
