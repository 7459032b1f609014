"""Masks are not made far ahead of what they select, where they would fill the scalar registers."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import compiled, dedent, launch, tensor, translate, validated

HEAD = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(q_ptr, k_ptr, g_ptr, out_ptr, n, B: tl.constexpr):
        o = tl.arange(0, B)
        at = o[:, None] * B + o[None, :]
        mask = o < n
        q = tl.load(q_ptr + at, mask=mask[:, None], other=0.0)
        k = tl.load(k_ptr + at, mask=mask[:, None], other=0.0)
        g = tl.load(g_ptr + o, mask=mask, other=0.0)
""")
TILE = """
    a = tl.load(out_ptr + at, mask=mask[:, None], other=0.0)
    a = tl.where(o[:, None] >= o[None, :], a, 0.0)
    s = tl.dot(a.to(q.dtype), k)
    s += tl.dot(q, tl.trans(k))
"""
DECAY = """
    decay = tl.where(o[:, None] >= o[None, :], tl.exp2(g[:, None] - g[None, :]), 0.0)
    s = tl.dot(q, tl.trans(k)) * decay
"""
PRODUCT = """
    s = tl.dot(q, tl.trans(k))
    s = tl.where(o[:, None] >= o[None, :], s, 0.0)
    s = tl.dot(s.to(q.dtype), k)
"""
WITHIN = """
    s = tl.dot(tl.where(o[:, None] >= o[None, :], q, 0.0).to(q.dtype), k)
"""
ROWS = """
    g = tl.where(o < n - 1, g, 0.0)
    s = tl.dot(q, k) * g[:, None]
"""
LOOP = """
    q = tl.where(o[:, None] >= o[None, :], q, 0.0)
    s = tl.zeros((B, B), tl.float32)
    for i in range(n):
        s += tl.dot(q, k)
"""
NO_PRODUCT = """
    s = tl.where(o[:, None] >= o[None, :], q, 0.0).to(tl.float32)
"""
STORE = "    tl.store(out_ptr + at, s)\n"
SIGNATURE = {"q_ptr": "*fp16", "k_ptr": "*fp16", "g_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
VALUES = {"q_ptr": tensor(64, 64), "k_ptr": tensor(64, 64), "g_ptr": tensor(64), "out_ptr": tensor(64, 64), "n": 50}
HINT = "    hint.sched_barrier()\n"


def spec(warps: int):
    return launch("kernel", SIGNATURE, {"B": 64}, warps=warps, values=VALUES)


def test_the_mask_of_a_loaded_tile_takes_no_scalar_register_from_others(tmp_path: Path):
    text = validated(tmp_path, HEAD + TILE + STORE, spec(1), "gfx1250")
    assert text.count(HINT) == 1
    kept, early = (compiled(tmp_path, t, spec(1), "gfx1250").metrics for t in (text, text.replace(HINT, "")))
    assert kept.sgpr_spill == 0 < early.sgpr_spill


@pytest.mark.parametrize(
    "body, target, hints",
    [
        (TILE, "gfx1250", 1),
        (DECAY, "gfx1250", 1),
        (PRODUCT, "gfx1250", 0),
        (WITHIN, "gfx1250", 0),
        (ROWS, "gfx1250", 0),
        (LOOP, "gfx1250", 0),
        (NO_PRODUCT, "gfx1250", 0),
        ("    hint = 1\n" + TILE, "gfx1250", 0),
        (TILE, "gfx950", 0),
        (TILE, "gfx1201", 0),
    ],
    ids=["tile", "decay", "a product", "in a product", "rows", "before a loop", "no product", "a name taken", "64 lanes", "rdna"],
)
def test_only_masks_of_loaded_tiles_before_products_are_kept_back(body, target, hints, tmp_path: Path):
    text = translate(tmp_path, HEAD + body + STORE, spec(4), target=target).text
    assert text.count(HINT) == hints and ("import hint" in text) == bool(hints)
