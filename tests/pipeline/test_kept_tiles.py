"""Tiles of a loop that is written out keep their LDS to the loop's end, as in Triton's module, where operands could take it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, translate, validated

KERNEL = dedent("""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, y_ptr, z_ptr, out_ptr, n, K: tl.constexpr):
        i, j, k = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :], tl.arange(0, 32)
        a = tl.zeros((64, 32), tl.float32)
        o = tl.zeros((64, 64), tl.float32)
        for t in range(K // 32):
            x = tl.load(x_ptr + i * K + (t * 32 + k)[None, :])
            x = (x * 0.5).to(x.dtype)
            y = tl.load(y_ptr + (t * 32 + k)[:, None] * 64 + j)
            z = tl.load(z_ptr + (t * 32 + k)[:, None] + k[None, :] * K)
            o += tl.dot(x, y)
            a += tl.dot(x, z)
        AFTER
        tl.store(out_ptr + i * 64 + j, o)
        tl.store(out_ptr + 4096 + i * 32 + k[None, :], a)
""")
POINTERS = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp16", "out_ptr": "*fp32"}
VALUES = {"x_ptr": tensor(64, 64), "y_ptr": tensor(64, 64), "z_ptr": tensor(32, 64), "out_ptr": tensor(96, 64), "n": 2}


def source(second: str = "a += tl.dot(x, z)", after: str = "pass") -> str:
    return KERNEL.replace("a += tl.dot(x, z)", second).replace("AFTER", after)


def spec(warps: int = 2):
    return launch("kernel", POINTERS | {"n": "i32"}, {"K": 64}, warps=warps, values=VALUES)


@pytest.mark.parametrize("target", ["gfx950", "gfx1250"])
def test_tiles_that_operands_could_replace_are_kept(target: str, tmp_path: Path):
    text = validated(tmp_path, source(), spec(), target)
    kept = re.findall(r"^    (\w+)_smem\._keep_alive\(\)$", text, re.M)
    assert kept == ["y", "z"]
    body = text[text.index("for t_2 in gl.static_range(K") : text.index("_keep_alive")]
    assert body.index("gl.allocate_shared_memory(x.dtype") < body.index("# Operands do not take the place of tiles")


@pytest.mark.parametrize(
    "change, warps",
    [
        ({}, 1),
        ({"second": "pass"}, 2),
        ({"after": "for t in range(n):\n            o += tl.load(out_ptr + i * 64 + j + t)"}, 2),
    ],
    ids=["one warp never waits", "no operand beside the tiles", "a loop is left"],
)
def test_other_tiles_are_not(change: dict, warps: int, tmp_path: Path):
    assert "_keep_alive" not in translate(tmp_path, source(**change), spec(warps), target="gfx950").text


AGAIN = """p = tl.zeros((64, 64), tl.float32)
    for s in range(K // 32):
        u = tl.load(x_ptr + i * K + (s * 32 + k)[None, :])
        v = tl.load(y_ptr + (s * 32 + k)[:, None] * 64 + j)
        p += tl.dot(u, v)
    o = o + p"""


def test_tiles_are_read_before_those_of_a_later_loop_take_their_place(tmp_path: Path, monkeypatch):
    text = validated(tmp_path, source(after=AGAIN), spec(4), "gfx950")
    assert text.count("gl.barrier()") == 1
    monkeypatch.setattr("gluonize.loops.forms.ring._copied_over", lambda *_: False)
    with pytest.raises(AssertionError, match="read since the last barrier"):
        validated(tmp_path, source(after=AGAIN), spec(4), "gfx950")
