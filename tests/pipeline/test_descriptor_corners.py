"""Tiles of descriptors on a target with a tensor data mover that start before the tensor or at odd places in it, with unit
dimensions or without: bounds-masked accesses, by copies where the rows are aligned and through registers elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import compiled, dedent, launch, tensor, validated

SOURCE = """
    import triton
    import triton.language as tl


    @triton.jit
    def product(a_ptr, b_ptr, c_ptr, M, K, pad, B: tl.constexpr):
        r = tl.arange(0, B)
        a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[B, B])
        b_desc = tl.make_tensor_descriptor(b_ptr, shape=[K, B], strides=[B, 1], block_shape=[B, B])
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, B):
            a = {a}
            b = {b}
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + r[:, None] * B + r[None, :], acc)
"""
UNIT = """
    a_unit = tl.make_tensor_descriptor(a_ptr, shape=[2, B, K], strides=[B * K, K, 1], block_shape=[1, B, B])
"""
PLAIN = "b_desc.load([k, 0])"
COPIES, REGISTERS = "global_to_shared(", "load_tile"
CASES = {
    "before the tensor": ("a_desc.load([-1, k - B])", PLAIN, COPIES),
    "odd": ("a_desc.load([-1, k - 1])", PLAIN, REGISTERS),
    "odd by an argument": ("a_desc.load([-pad, k - pad])", "b_desc.load([k - pad, 0])", REGISTERS),
    "beside a pointer": ("a_desc.load([-1, k - 3])", "tl.load(b_ptr + (k + r)[:, None] * B + r[None, :])", REGISTERS),
    "unit dimension": ("tl.reshape(a_unit.load([pad - 1, 0, k]), (B, B))", PLAIN, COPIES),
    "odd, with a unit dimension": ("tl.reshape(a_unit.load([pad - 1, 0, k - 1]), (B, B))", PLAIN, REGISTERS),
}
SIGNATURE = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "M": "i32", "K": "i32", "pad": "i32"}
ATTRS = {"a_ptr": "DS", "b_ptr": "DS", "c_ptr": "DS", "K": "D"}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("case", CASES)
def test_corners_of_tiles(case: str, tmp_path: Path):
    a, b, how = CASES[case]
    source = dedent(SOURCE.format(a=a, b=b))
    if "a_unit" in a:
        source = source.replace("    acc = tl.zeros", UNIT.strip("\n") + "\n    acc = tl.zeros")
    values = {"a_ptr": tensor(64, 96), "b_ptr": tensor(96, 32), "c_ptr": tensor(32, 32), "M": 64, "K": 96, "pad": 1}
    spec = launch("product", SIGNATURE, {"B": 32}, attrs=ATTRS, stages=3, values=values)
    text = validated(tmp_path, source, spec, "gfx1250")
    assert "NUM_BUFFERS" in text and how in text, text
    compiled(tmp_path, text, spec, "gfx1250")


def test_a_tile_outside_of_products_has_no_ring(tmp_path: Path):
    source = dedent(SOURCE.format(a="a_desc.load([-1, k - 1])", b="a")).replace("tl.dot(a, b, acc)", "acc + a + b")
    values = {"a_ptr": tensor(64, 96), "b_ptr": tensor(96, 32), "c_ptr": tensor(32, 32), "M": 64, "K": 96, "pad": 1}
    spec = launch("product", SIGNATURE, {"B": 32}, attrs=ATTRS, stages=3, values=values)
    compiled(tmp_path, validated(tmp_path, source, spec, "gfx1250"), spec, "gfx1250")
