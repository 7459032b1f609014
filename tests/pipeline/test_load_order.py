"""Where RDNA loads the tiles ahead: after this iteration's reads, or before them where a lane has many offsets or all tiles."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(x_ptr, y_ptr, z_ptr, K, stride_k, stride_n, B: tl.constexpr):
        o = tl.arange(0, B)
        rows = tl.arange(0, 2 * B)
        acc = tl.zeros((2 * B, B), tl.float32)
        for k in range(0, K, B):
            depth = k + o
            x = tl.load(x_ptr + rows[:, None] * K + depth[None, :], mask=(depth < K)[None, :], other=0.0)
            y_ptrs = y_ptr + o[:, None] * stride_n + depth[None, :] * stride_k
            y = tl.load(y_ptrs, mask=(depth < K)[None, :], other=0.0)
            acc = tl.dot(x, tl.trans(y), acc)
        tl.store(z_ptr + rows[:, None] * B + o[None, :], acc)
    """)
SIGNATURE = {"x_ptr": "*fp16", "y_ptr": "*fp16", "z_ptr": "*fp32", "K": "i32", "stride_k": "i32", "stride_n": "i32"}


@pytest.mark.parametrize("target, B, first", [("gfx1201", 64, True), ("gfx1201", 32, False), ("gfx1100", 64, True)])
def test_many_offsets_of_a_lane_are_used_before_operands_are_read(target: str, B: int, first: bool, tmp_path: Path):
    values = {"x_ptr": tensor(2 * B, 3 * B), "y_ptr": tensor(3 * B, 2 * B), "z_ptr": tensor(2 * B, B)}
    values |= {"K": 3 * B, "stride_k": 2 * B, "stride_n": 2}
    attrs = {"x_ptr": "DS", "y_ptr": "DS", "z_ptr": "DS", "K": "D"}
    text = validated(tmp_path, SOURCE, launch("product", SIGNATURE, {"B": B}, attrs=attrs, values=values), target)
    body = text.partition("for k in range(0, K, B):")[2]
    for tile in "xy":
        assert (body.index(f"{tile}_next = ") < body.index(f"{tile} = {tile}_smem")) == first, text


@pytest.mark.parametrize(
    "target, B, warps, stages, first",
    [
        ("gfx1201", 32, 1, 3, True),
        ("gfx1100", 32, 1, 3, True),
        ("gfx1201", 32, 2, 3, False),
        ("gfx1201", 32, 1, 2, False),  # into the slot that is read
        ("gfx1201", 64, 1, 3, False),  # 192 registers
        ("gfx942", 32, 1, 3, False),
    ],
)
def test_one_warp_loads_small_tiles_before_it_reads(
    target: str, B: int, warps: int, stages: int, first: bool, tmp_path: Path
):
    source = SOURCE.replace("o[:, None] * stride_n + depth[None, :] * stride_k", "depth[:, None] * B + o[None, :]")
    source = source.replace("y_ptrs, mask=(depth < K)[None, :]", "y_ptrs, mask=(depth < K)[:, None]").replace(
        "tl.trans(y)", "y"
    )
    values = {"x_ptr": tensor(2 * B, 3 * B), "y_ptr": tensor(3 * B, B), "z_ptr": tensor(2 * B, B)}
    values |= {"K": 3 * B, "stride_k": 1, "stride_n": 1}
    attrs = {"x_ptr": "DS", "y_ptr": "DS", "z_ptr": "DS", "K": "D"}
    spec = launch("product", SIGNATURE, {"B": B}, attrs=attrs, values=values, warps=warps, stages=stages)
    body = validated(tmp_path, source, spec, target).partition("for k in range(0, K, B):")[2]
    for tile in "xy":
        assert (body.index(f"{tile}_next = ") < body.index(f"{tile} = {tile}_smem")) == first, body
