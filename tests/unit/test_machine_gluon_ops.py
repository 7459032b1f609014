"""Gluon and AMD ops on the reference machine, each against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from machine_harness import run_kernel
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna3, cdna4, cdna5

from gluonize.judge.machine.hazards import Hazard, NotRunnable

RNG = np.random.default_rng(11)
SEEDED = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def same_numbers():
    """Whichever tests ran before in this process."""
    RNG.bit_generator.state = SEEDED


N = 64


@gluon.jit
def _tile(layout: gl.constexpr):
    return (
        gl.arange(0, 64, gl.SliceLayout(1, layout))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, layout))[None, :]
    )


@gluon.jit
def buffers(x_ptr, out_ptr, count_ptr):
    L: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    o = _tile(L)
    x = cdna3.buffer_load(x_ptr, o, mask=o % 3 == 0, other=7.0)
    y = cdna3.buffer_load(x_ptr + 64, o, mask=o < 4032)
    cdna3.buffer_store(x + y, out_ptr, o, mask=o % 2 == 0)
    old = cdna3.buffer_atomic_add(count_ptr, o % 4, (o * 0 + 1).to(gl.uint32))
    cdna3.buffer_store(old, count_ptr + 4, o)


def test_buffer_accesses():
    x = RNG.integers(0, 50, 4096).astype(np.float32)
    out, _ = run_kernel(
        buffers,
        {"x_ptr": "*fp32", "out_ptr": "*fp32", "count_ptr": "*u32"},
        {"x_ptr": x, "out_ptr": np.zeros(4096), "count_ptr": np.zeros(4100)},
    )
    o = np.arange(4096)
    a = np.where(o % 3 == 0, x, 7)
    b = np.where(o < 4032, np.roll(x, -64), 0)
    np.testing.assert_array_equal(out["out_ptr"], np.where(o % 2 == 0, a + b, 0))
    np.testing.assert_array_equal(out["count_ptr"], [1024] * 4 + [i // 4 for i in range(4096)])


@gluon.jit
def views(x_ptr, out_ptr):
    L: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    H: gl.constexpr = gl.BlockedLayout([1, 4], [8, 8], [4, 1], [1, 0])
    S: gl.constexpr = gl.SwizzledSharedLayout(8, 2, 4, [1, 0])
    o = _tile(L)
    x = cdna3.buffer_load(x_ptr, o)
    ring = gl.allocate_shared_memory(gl.float32, [2, 64, 64], S)
    ring.index(1).store(x)
    ring.index(0).store(ring.index(1).permute([1, 0]).load(L))
    cdna3.buffer_store(ring.index(0).load(L), out_ptr, o)
    half = ring.index(1).slice(32, 32, 1).load(H)
    p = gl.arange(0, 64, gl.SliceLayout(1, H))[:, None] * 32 + gl.arange(0, 32, gl.SliceLayout(0, H))[None, :]
    cdna3.buffer_store(half, out_ptr + 4096, p)
    part = gl.amd.slice(x, [32, 64], [32, 0])
    q = gl.arange(0, 32, gl.SliceLayout(1, L))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, L))[None, :]
    cdna3.buffer_store(part, out_ptr + 4096 + 2048, q)
    index = (
        gl.arange(0, 64, gl.SliceLayout(1, L))[:, None] * 0 + gl.arange(0, 64, gl.SliceLayout(0, L))[None, :] * 5
    ) % 64
    cdna3.buffer_store(ring.index(1).gather(index, 1), out_ptr + 8192, o)


def test_shared_memory_views():
    x = RNG.standard_normal((64, 64)).astype(np.float32)
    types = {"x_ptr": "*fp32", "out_ptr": "*fp32"}
    out = run_kernel(views, types, {"x_ptr": x, "out_ptr": np.zeros(12288)})[0]["out_ptr"]
    np.testing.assert_array_equal(out[:4096].reshape(64, 64), x.T)
    np.testing.assert_array_equal(out[4096:6144].reshape(64, 32), x[:, 32:])
    np.testing.assert_array_equal(out[6144:8192].reshape(32, 64), x[32:])
    np.testing.assert_array_equal(out[8192:].reshape(64, 64), x[:, np.arange(64) * 5 % 64])


@gluon.jit
def scaled(a_ptr, b_ptr, s_ptr, c_ptr, f_ptr):
    mma: gl.constexpr = gl.amd.AMDMFMALayout(version=4, instr_shape=[32, 32, 64], transposed=True, warps_per_cta=[2, 2])
    A: gl.constexpr = gl.DotOperandLayout(0, mma, 16)
    B: gl.constexpr = gl.DotOperandLayout(1, mma, 16)
    S: gl.constexpr = cdna4.get_mfma_scale_layout(A, [64, 4])
    L: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    a = gl.load(
        a_ptr + gl.arange(0, 64, gl.SliceLayout(1, A))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, A))[None, :]
    )
    b = gl.load(
        b_ptr + gl.arange(0, 128, gl.SliceLayout(1, B))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, B))[None, :]
    )
    s = gl.load(
        s_ptr + gl.arange(0, 64, gl.SliceLayout(1, S))[:, None] * 4 + gl.arange(0, 4, gl.SliceLayout(0, S))[None, :]
    )
    acc = cdna4.mfma_scaled(a, s, "e2m1", b, None, "e4m3", gl.zeros((64, 64), gl.float32, mma))
    gl.store(
        c_ptr
        + gl.arange(0, 64, gl.SliceLayout(1, mma))[:, None] * 64
        + gl.arange(0, 64, gl.SliceLayout(0, mma))[None, :],
        acc,
    )
    packed = gl.load(a_ptr + _tile(L))
    wide = gl.fp4_to_fp(packed, gl.float16, 1)
    W: gl.constexpr = wide.type.layout
    at = gl.arange(0, 64, gl.SliceLayout(1, W))[:, None] * 128 + gl.arange(0, 128, gl.SliceLayout(0, W))[None, :]
    gl.store(f_ptr + at, wide)


@gluon.jit
def repacked(a_ptr, b_ptr, a_out, b_out):
    mma: gl.constexpr = gl.amd.AMDMFMALayout(version=4, instr_shape=[32, 32, 64], transposed=True, warps_per_cta=[2, 2])
    A: gl.constexpr = gl.DotOperandLayout(0, mma, 16)
    B: gl.constexpr = gl.DotOperandLayout(1, mma, 16)
    L: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    S: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0, 1])
    R: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    m = gl.arange(0, 32, gl.SliceLayout(1, L))[:, None] * 128 + gl.arange(0, 128, gl.SliceLayout(0, L))[None, :]
    n = gl.arange(0, 128, gl.SliceLayout(1, L))[:, None] * 32 + gl.arange(0, 32, gl.SliceLayout(0, L))[None, :]
    a = cdna4.load_shared_fp4_repacked(gl.allocate_shared_memory(gl.uint8, [32, 128], S, gl.load(a_ptr + m)), A)
    b = cdna4.load_shared_fp4_repacked(gl.allocate_shared_memory(gl.uint8, [128, 32], R, gl.load(b_ptr + n)), B)
    i = gl.arange(0, 64, gl.SliceLayout(1, A))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, A))[None, :]
    j = gl.arange(0, 64, gl.SliceLayout(1, B))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, B))[None, :]
    gl.store(a_out + i, a)
    gl.store(b_out + j, b)


def test_fp4_packed_along_the_rows_is_loaded_packed_along_the_columns():
    codes = RNG.integers(0, 16, (64, 128))  # A: rows, K
    out = run_kernel(
        repacked,
        {name: "*u8" for name in ("a_ptr", "b_ptr", "a_out", "b_out")},
        {
            "a_ptr": codes[0::2] | (codes[1::2] << 4),
            "b_ptr": codes.T[:, 0::2] | (codes.T[:, 1::2] << 4),
            "a_out": np.zeros((64, 64)),
            "b_out": np.zeros((64, 64)),
        },
    )[0]
    along_k = codes[:, 0::2] | (codes[:, 1::2] << 4)
    np.testing.assert_array_equal(out["a_out"].view(np.uint8).reshape(64, -1), along_k)
    np.testing.assert_array_equal(out["b_out"].view(np.uint8).reshape(64, -1), along_k.T)


FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def test_scaled_mfma_and_fp4():
    codes = RNG.integers(0, 16, (64, 128))
    packed = codes[:, 0::2] | (codes[:, 1::2] << 4)
    b = RNG.choice([0.5, 1.0, -1.5, 2.0], (128, 64))
    s = RNG.integers(122, 132, (64, 4))
    out = run_kernel(
        scaled,
        {"a_ptr": "*u8", "b_ptr": "*fp8e4nv", "s_ptr": "*u8", "c_ptr": "*fp32", "f_ptr": "*fp16"},
        {"a_ptr": packed, "b_ptr": b, "s_ptr": s, "c_ptr": np.zeros((64, 64)), "f_ptr": np.zeros((64, 128))},
    )[0]
    np.testing.assert_allclose(out["c_ptr"], (FP4[codes] * np.repeat(2.0 ** (s - 127), 32, 1)) @ b, rtol=1e-5)
    np.testing.assert_array_equal(out["f_ptr"], FP4[codes].astype(np.float16))


@gluon.jit
def tensor_mover(x_ptr, out_ptr, m, n):
    L: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    S: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[64, 8]], [64, 64], [1, 0])
    R: gl.constexpr = gl.SliceLayout(1, gl.BlockedLayout([64, 1], [1, 32], [1, 4], [1, 0]))
    source = cdna5.tdm.make_tensor_descriptor(x_ptr, [m, n], [n, 1], [64, 64], S)
    target = cdna5.tdm.make_tensor_descriptor(out_ptr, [128, 64], [64, 1], [64, 64], S)
    smem = gl.allocate_shared_memory(gl.float16, [2, 64, 64], S)
    cdna5.tdm.async_load(source, [m - 60, n - 50], smem.index(0))
    rows = (gl.arange(0, 64, R) * 7) % 32
    cdna5.tdm.async_gather(cdna5.tdm.update_tensor_descriptor(source, add_offsets=[0, 8]), rows, smem.index(1))
    cdna5.tdm.async_wait(0)
    cdna5.tdm.async_store(target, [0, 0], smem.index(0))
    smem.index(1).store(smem.index(1).load(L) * 2)
    cdna5.tdm.async_store(target, [64, 0], smem.index(1))
    cdna5.tdm.async_wait(0)


def test_tensor_data_mover():
    x = RNG.integers(0, 100, (128, 96)).astype(np.float16)
    out = run_kernel(tensor_mover, {"x_ptr": "*fp16", "out_ptr": "*fp16", "m": "i32", "n": "i32"},
                     {"x_ptr": x, "out_ptr": np.zeros((128, 64)), "m": 128, "n": 96}, target="gfx1250")[0]["out_ptr"]  # fmt: skip
    corner = np.zeros((64, 64))
    corner[:60, :50] = x[-60:, -50:]
    np.testing.assert_array_equal(out[:64], corner)
    np.testing.assert_array_equal(out[64:], 2 * x[np.arange(64) * 7 % 32, 8:72])


@gluon.jit
def store_unwaited(x_ptr, m):
    L: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    S: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[64, 8]], [64, 64], [1, 0])
    target = cdna5.tdm.make_tensor_descriptor(x_ptr, [64, 64], [64, 1], [64, 64], S)
    smem = gl.allocate_shared_memory(gl.float16, [64, 64], S)
    smem.store(gl.full((64, 64), 1.0, gl.float16, L))
    cdna5.tdm.async_store(target, [0, 0], smem)
    if m > 0:
        smem.store(gl.full((64, 64), 2.0, gl.float16, L))


def test_asynchronous_store_needs_a_wait():
    types = {"x_ptr": "*fp16", "m": "i32"}
    _, machine = run_kernel(store_unwaited, types, {"x_ptr": np.zeros((64, 64)), "m": 0}, target="gfx1250")
    assert [f.kind for f in machine.findings] == ["lds-store-unwaited"]
    with pytest.raises(Hazard) as raised:
        run_kernel(store_unwaited, types, {"x_ptr": np.zeros((64, 64)), "m": 5}, target="gfx1250")
    assert raised.value.kind == "lds-overwrite-source"


@gluon.jit
def refill(x_ptr, out_ptr, BARRIER: gl.constexpr, RELAXED: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([1, 4], [4, 16], [4, 1], [1, 0])
    S: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    o = _tile(L)
    smem = gl.allocate_shared_memory(gl.float32, [64, 64], S)
    cdna4.async_copy.buffer_load_to_shared(smem, x_ptr, o)
    cdna4.async_copy.commit_group()
    cdna4.async_copy.wait_group(0)
    if RELAXED:
        x = cdna4.async_copy.load_shared_relaxed(smem, L)
    else:
        x = smem.load(L)
    if BARRIER:
        gl.barrier()
    cdna4.async_copy.buffer_load_to_shared(smem, x_ptr + 4096, o)
    cdna4.async_copy.commit_group()
    cdna4.async_copy.wait_group(0)
    cdna3.buffer_store(x + smem.load(L), out_ptr, o)


@pytest.mark.parametrize("barrier, relaxed, hazard", [(True, True, False), (False, True, True), (False, False, False)])
def test_refill_of_a_slot_after_a_relaxed_read_needs_a_barrier(barrier: bool, relaxed: bool, hazard: bool):
    types = {"x_ptr": "*fp32", "out_ptr": "*fp32"}
    x = RNG.standard_normal(8192).astype(np.float32)
    arguments = (refill, types, {"x_ptr": x, "out_ptr": np.zeros(4096)})
    constexprs = {"BARRIER": barrier, "RELAXED": relaxed}
    if hazard:
        with pytest.raises(Hazard) as raised:
            run_kernel(*arguments, constexprs=constexprs)
        assert raised.value.kind == "lds-overwrite-read"
        assert raised.value.finding.op == "amdg.buffer_load_to_local"
    else:
        np.testing.assert_array_equal(run_kernel(*arguments, constexprs=constexprs)[0]["out_ptr"], x[:4096] + x[4096:])


@gluon.jit
def assembly(x_ptr):
    L: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    i = gl.arange(0, 256, L)
    x = gl.load(x_ptr + i)
    y = gl.inline_asm_elementwise("v_sad_u8 $0, $1, $1, $1", "=v,v", [x], dtype=gl.float32, is_pure=True, pack=1)
    gl.store(x_ptr + i, y)


def test_inline_assembly_is_refused_by_name():
    with pytest.raises(NotRunnable) as raised:
        run_kernel(assembly, {"x_ptr": "*fp32"}, {"x_ptr": np.zeros(256)})
    assert raised.value.op == "tt.elementwise_inline_asm"


@gluon.jit
def hinted(x_ptr, n, K: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    o = gl.arange(0, 256, L) * n
    o = gl.max_contiguous(gl.multiple_of(o, K), K)
    gl.store(x_ptr + o, 1.0)


@pytest.mark.parametrize("n, k, found", [(1, 8, []), (2, 8, ["false-hint"]), (2, 1, []), (1, 512, [])])
def test_false_hints_are_found(n: int, k: int, found: list[str]):
    _, machine = run_kernel(
        hinted, {"x_ptr": "*fp32", "n": "i32"}, {"x_ptr": np.zeros(512), "n": n}, constexprs={"K": k}
    )
    assert [f.kind for f in machine.broken.values()] == found
