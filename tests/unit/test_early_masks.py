"""Masks are not made far ahead of what they select, where they would fill the scalar registers."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixture_set import ROOT, Fixture
from translation_of import compiled, dedent, launch, tensor, translate, validated

from translator.source.launch_spec import read_launches

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
LOADED = """
    a = tl.load(out_ptr + at, mask=mask[:, None], other=0.0)
    q = tl.where(o[:, None] >= o[None, :], a, 0.0).to(q.dtype)
    s = tl.zeros((B, B), tl.float32)
    for i in range(n):
        s += tl.dot(q, k)
"""
LOOP = """
    q = tl.where(o[:, None] >= o[None, :], q, 0.0)
    s = tl.zeros((B, B), tl.float32)
    for i in range(n):
        s += tl.dot(q, k)
"""
NAMED = """
    s = tl.dot(q, tl.trans(k))
    m = o[:, None] >= o[None, :]
    s = s * tl.exp2(g)[:, None]
    s = tl.where(m, s, 0.0)
    s = tl.dot(s.to(q.dtype), k)
"""
NAMED_BEFORE = """
    m = o[:, None] >= o[None, :]
    s = tl.dot(q, tl.trans(k))
    s = tl.where(m, s, 0.0)
    s = tl.dot(s.to(q.dtype), k)
"""
RUNNING = """
    s = tl.zeros((B, B), tl.float32)
    for i in range(n):
        a = tl.dot(q, tl.trans(k))
        a = tl.where(o[:, None] >= o[None, :] + i, a, 0.0)
        s = tl.dot(a.to(q.dtype), k, s)
"""
FROM_BEFORE = RUNNING.replace("o[:, None] >= o[None, :] + i", "m").replace(
    "    s", "    m = o[:, None] >= o[None, :]\n    s", 1
)
WRITTEN_OUT = """
    s = tl.zeros((B, B), tl.float32)
    start = tl.program_id(0) * B
    for i in range(start, start + B, 32):
        c = i + tl.arange(0, 32)
        b = tl.load(k_ptr + c[:, None] * B + o[None, :])
        a = tl.dot(q, tl.trans(b))
        a = tl.where(o[:, None] >= c[None, :], a, 0.0)
        s = tl.dot(a.to(q.dtype), b, s)
"""
NO_PRODUCT = """
    s = tl.where(o[:, None] >= o[None, :], q, 0.0).to(tl.float32)
"""
PIPELINED = """
    s = tl.zeros((B, B), tl.float32)
    for i in range(0, n, 32):
        c = i + tl.arange(0, 32)
        b = tl.load(k_ptr + c[:, None] * B + o[None, :])
        a = tl.dot(q, tl.trans(b))
        a = tl.where(o[:, None] >= c[None, :], a, 0.0)
        s = tl.dot(a.to(q.dtype), b, s)
"""
WAITING = PIPELINED.replace("        a = tl.dot", "        a = tl.load(g_ptr + c)[None, :] + tl.dot")
BEHIND = """
    s = tl.zeros((B, B), tl.float32)
    for i in range(n):
        s += tl.dot(q, k)
    m = o[:, None] > o[None, :]
    s = tl.where(m, s, 0.0)
    s = tl.dot(s.to(q.dtype), k)
    s = tl.where(m, -s, 0.0)
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


def test_the_mask_of_a_loop_takes_no_scalar_register_from_others(tmp_path: Path):
    """Causal attention, as it is in the goldens."""
    attention = Fixture(ROOT / "flash_attention")
    causal = next(s for s in read_launches(attention.launches_file) if s.id.endswith("causal"))
    text = attention.golden_file("gfx1250").read_text()
    assert HINT in text
    kept, early = (compiled(tmp_path, t, causal, "gfx1250").metrics for t in (text, text.replace(HINT, "    pass\n")))
    assert kept.sgpr_spill < early.sgpr_spill and kept.loop.insns < early.loop.insns


@pytest.mark.parametrize(
    "body, target, warps, hints",
    [
        (TILE, "gfx1250", 4, 1),
        (DECAY, "gfx1250", 4, 1),
        (PRODUCT, "gfx1250", 4, 0),
        (WITHIN, "gfx1250", 4, 0),
        (ROWS, "gfx1250", 4, 0),
        (LOADED, "gfx1250", 4, 0),
        (LOOP, "gfx1250", 4, 1),
        (NO_PRODUCT, "gfx1250", 4, 0),
        (PRODUCT, "gfx1250", 2, 1),
        (WITHIN, "gfx1250", 2, 0),
        (NAMED, "gfx1250", 2, 1),
        (NAMED_BEFORE, "gfx1250", 2, 1),
        (RUNNING, "gfx1250", 4, 0),
        (RUNNING, "gfx1250", 2, 1),
        (FROM_BEFORE, "gfx1250", 2, 0),
        (WRITTEN_OUT, "gfx1250", 4, 1),
        ("    hint = 1\n" + TILE, "gfx1250", 4, 0),
        (TILE, "gfx950", 4, 0),
        (BEHIND, "gfx950", 2, 2),
        (BEHIND, "gfx942", 2, 2),
        (BEHIND, "gfx950", 4, 0),
        (BEHIND.replace("for i in range(n)", "if n > 1"), "gfx950", 2, 0),
        (PIPELINED, "gfx942", 1, 1),
        (WAITING, "gfx950", 1, 1),
        (WAITING, "gfx950", 2, 0),
        (TILE, "gfx1201", 4, 0),
    ],
    ids="tile,decay,product,within,rows,loaded before a loop,before a loop,no product,many,many within,named,named before,loop,many in a loop,"
    "from before a loop,written out,a name taken,64 lanes,behind a loop,behind a loop on gfx942,few behind a loop,no loop,"
    "in a loop on gfx942,with waiting tiles on gfx950,few in a loop,rdna".split(","),
)
def test_masks_ahead_of_products_and_large_ones_are_kept_back(body, target, warps, hints, tmp_path: Path):
    text = translate(tmp_path, HEAD + body + STORE, spec(warps), target=target).text
    assert text.count(HINT) == hints and ("import hint" in text) == bool(hints)


def test_a_mask_is_kept_back_where_it_is_made_unless_a_product_follows(tmp_path: Path):
    after, before = (
        translate(tmp_path, HEAD + b + STORE, spec(2), target="gfx1250").text for b in (NAMED, NAMED_BEFORE)
    )
    assert HINT + "    m = " in after and HINT + "    s = gl.where(m" in before


def test_a_mask_before_a_loop_is_kept_behind_the_tiles_that_are_loaded(tmp_path: Path):
    text = translate(tmp_path, HEAD + LOOP + STORE, spec(4), target="gfx1250").text
    assert HINT + "    g = cdna5.buffer_load" in text


@pytest.mark.parametrize("target, kept", [("gfx942", True), ("gfx950", False), ("gfx1201", False)])
def test_the_mask_of_a_loop_with_other_lanes(target: str, kept: bool):
    """Causal attention, of which no tile waits in registers."""
    assert (HINT in (ROOT / "flash_attention" / "golden" / f"{target}.py").read_text()) == kept
