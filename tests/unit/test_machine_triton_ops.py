"""Triton ops on the reference machine, each against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from machine_harness import run_kernel
from triton.language.extra import libdevice

from gluonize.judge.machine.hazards import WaitsForever

RNG = np.random.default_rng(7)
SEEDED = RNG.bit_generator.state
INT_EXTREMES = np.array([0, 1, -1, 7, -7, 2**31 - 1, -(2**31), 5, -5, 3, 100, -100, 2**30, 12345, -12345, 2], np.int32)


@pytest.fixture(autouse=True)
def same_numbers():
    """Whichever tests ran before in this process."""
    RNG.bit_generator.state = SEEDED


@triton.jit
def integers(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(a_ptr + i), tl.load(b_ptr + i)
    ua, ub = a.to(tl.uint32, bitcast=True), b.to(tl.uint32, bitcast=True)
    tl.store(out_ptr + i, a + b)
    tl.store(out_ptr + N + i, a * b)
    tl.store(out_ptr + 2 * N + i, a // b)
    tl.store(out_ptr + 3 * N + i, a % b)
    tl.store(out_ptr + 4 * N + i, (ua // ub).to(tl.int32, bitcast=True))
    tl.store(out_ptr + 5 * N + i, (ua % ub).to(tl.int32, bitcast=True))
    tl.store(out_ptr + 6 * N + i, a >> 3)
    tl.store(out_ptr + 7 * N + i, (ua >> 3).to(tl.int32, bitcast=True))
    tl.store(out_ptr + 8 * N + i, tl.umulhi(ua, ub).to(tl.int32, bitcast=True))
    tl.store(out_ptr + 9 * N + i, (ua < ub).to(tl.int32))
    tl.store(out_ptr + 10 * N + i, tl.minimum(ua, ub).to(tl.int32, bitcast=True))
    tl.store(out_ptr + 11 * N + i, a.to(tl.int8).to(tl.int32))
    tl.store(out_ptr + 12 * N + i, a.to(tl.uint8).to(tl.int32))


def test_integer_arithmetic():
    n = 16
    a, b = INT_EXTREMES, np.where(np.roll(INT_EXTREMES, 5) == 0, 9, np.roll(INT_EXTREMES, 5)).astype(np.int32)
    out = run_kernel(integers, {"a_ptr": "*i32", "b_ptr": "*i32", "out_ptr": "*i32"},
                     {"a_ptr": a, "b_ptr": b, "out_ptr": np.zeros((13, n), np.int32)}, constexprs={"N": n})[0]["out_ptr"]  # fmt: skip
    wide_a, wide_b = a.astype(np.int64), b.astype(np.int64)
    ua, ub = a.view(np.uint32), b.view(np.uint32)
    quotient = (np.abs(wide_a) // np.abs(wide_b)) * np.sign(wide_a) * np.sign(wide_b)
    expected = [
        wide_a + wide_b, wide_a * wide_b, quotient, wide_a - quotient * wide_b, ua // ub, ua % ub, a >> 3, ua >> 3,
        (ua.astype(np.uint64) * ub.astype(np.uint64)) >> np.uint64(32), ua < ub, np.minimum(ua, ub),
        a.astype(np.int8), a.astype(np.uint8),
    ]  # fmt: skip
    for row, (found, wanted) in enumerate(zip(out, expected)):
        np.testing.assert_array_equal(found, np.asarray(wanted).astype(np.int64).astype(np.int32), err_msg=f"row {row}")


@triton.jit
def floats(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(a_ptr + i), tl.load(b_ptr + i)
    tl.store(out_ptr + i, a + b)
    tl.store(out_ptr + N + i, a * b)
    tl.store(out_ptr + 2 * N + i, tl.where(a > b, a, b))
    tl.store(out_ptr + 3 * N + i, tl.exp(a.to(tl.float32)).to(a.dtype))
    tl.store(out_ptr + 4 * N + i, tl.maximum(a, b))
    tl.store(out_ptr + 5 * N + i, tl.sqrt(tl.abs(a.to(tl.float32))).to(a.dtype))


def to_bf16(x):
    """Round to nearest even on the upper half of an fp32."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize(
    "dtype, narrow",
    [
        ("*fp32", lambda x: np.asarray(x, np.float32)),
        ("*fp16", lambda x: np.asarray(x, np.float16)),
        ("*bf16", to_bf16),
    ],
)
def test_float_arithmetic_rounds_after_each_op(dtype: str, narrow):
    a, b = narrow(RNG.standard_normal(64) * 3), narrow(RNG.standard_normal(64) * 3)
    out = run_kernel(floats, {"a_ptr": dtype, "b_ptr": dtype, "out_ptr": dtype},
                     {"a_ptr": a, "b_ptr": b, "out_ptr": np.zeros((6, 64))}, constexprs={"N": 64})[0]["out_ptr"]  # fmt: skip
    x, y = a.astype(np.float32), b.astype(np.float32)
    expected = [x + y, x * y, np.where(x > y, x, y), np.exp(x), np.maximum(x, y), np.sqrt(np.abs(x))]
    for row, (found, wanted) in enumerate(zip(out, expected)):
        np.testing.assert_array_equal(found, narrow(wanted), err_msg=f"row {row}")


@triton.jit
def convert(a_ptr, out_ptr, N: tl.constexpr, KIND: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(a_ptr + i).to(KIND).to(tl.float32))


@pytest.mark.parametrize(
    "kind, value, expected",
    [
        (tl.float8e4nv, 1.0625, 1.0),
        (tl.float8e4nv, 1.1875, 1.25),
        (tl.float8e4nv, 500.0, 448.0),
        (tl.float8e4nv, 0.0029296875, 0.00390625),
        (tl.float8e5, -1.125, -1.0),
        (tl.float8e5, 0.9375, 1.0),
        (tl.float8e4b8, 300.0, 240.0),
        (tl.float8e5b16, 2.0**-17, 2.0**-17),
        (tl.bfloat16, 1.00390625, 1.0),
        (tl.bfloat16, 1.01171875, 1.015625),
        (tl.float16, 1.00048828125, 1.0),
        (tl.int8, -3.99, -3.0),
        (tl.int32, 1e20, 2.0**31),
    ],
)
def test_conversions(kind, value, expected):
    out = run_kernel(convert, {"a_ptr": "*fp32", "out_ptr": "*fp32"}, {"a_ptr": np.full(16, value), "out_ptr": np.zeros(16)},
                     constexprs={"N": 16, "KIND": kind})[0]["out_ptr"]  # fmt: skip
    np.testing.assert_array_equal(out, np.float32(expected))


@triton.jit
def _first_larger(a, i, b, j):
    better = (a > b) | ((a == b) & (i < j))
    return tl.where(better, a, b), tl.where(better, i, j)


@triton.jit
def _affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def reductions(x_ptr, sums_ptr, where_ptr, scan_ptr, back_ptr, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    x = tl.load(x_ptr + r * C + c)
    index = tl.broadcast_to(c, (R, C))
    tl.store(sums_ptr + tl.arange(0, R), tl.sum(x, 1))
    _, at = tl.reduce((x, index), 1, _first_larger)
    tl.store(where_ptr + tl.arange(0, R), at)
    _, y = tl.associative_scan((x, x), 1, _affine)
    tl.store(scan_ptr + r * C + c, y)
    tl.store(back_ptr + r * C + c, tl.cumsum(x, 0, reverse=True))


def test_reductions_and_scans_with_several_operands():
    x = (RNG.integers(-4, 5, (8, 32)) / 4).astype(np.float32)
    out = run_kernel(
        reductions,
        {"x_ptr": "*fp32", "sums_ptr": "*fp32", "where_ptr": "*i32", "scan_ptr": "*fp32", "back_ptr": "*fp32"},
        {"x_ptr": x, "sums_ptr": np.zeros(8), "where_ptr": np.zeros(8), "scan_ptr": np.zeros((8, 32)), "back_ptr": np.zeros((8, 32))},
        constexprs={"R": 8, "C": 32},
    )[0]  # fmt: skip
    np.testing.assert_allclose(out["sums_ptr"], x.sum(1), rtol=1e-6)
    np.testing.assert_array_equal(out["where_ptr"], x.argmax(1))
    y = np.zeros_like(x)
    state = np.zeros(8, np.float32)
    for c in range(32):
        state = state * x[:, c] + x[:, c] if c else x[:, 0]
        y[:, c] = state
    np.testing.assert_allclose(out["scan_ptr"], y, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(out["back_ptr"], x[::-1].cumsum(0)[::-1], rtol=1e-6)


@triton.jit
def _log_of_sum(a, b):
    return tl.maximum(a, b) + libdevice.log1p(tl.exp(-tl.abs(a - b)))


@triton.jit
def log_of_sums(x_ptr, out_ptr, last_ptr, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.associative_scan(x, 1, _log_of_sum))
    tl.store(last_ptr + tl.arange(0, R), tl.reduce(x, 1, _log_of_sum))


def test_functions_of_the_device_library_combine_the_elements_of_scans_and_reductions():
    x = np.random.default_rng(11).standard_normal((4, 16)).astype(np.float32)
    arguments = {"x_ptr": x, "out_ptr": np.zeros((4, 16)), "last_ptr": np.zeros(4)}
    out = run_kernel(log_of_sums, dict.fromkeys(arguments, "*fp32"), arguments, constexprs={"R": 4, "C": 16})[0]
    expected = np.logaddexp.accumulate(x.astype(np.float64), 1)
    np.testing.assert_allclose(out["out_ptr"], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(out["last_ptr"], expected[:, -1], rtol=1e-5, atol=1e-5)


@triton.jit
def shapes(x_ptr, out_ptr):
    i = tl.arange(0, 64)
    x = tl.load(x_ptr + i)
    y = tl.trans(x.reshape(2, 4, 8), (2, 0, 1))
    even, odd = tl.split(y.reshape(8, 4, 2))
    z = tl.join(odd, even).reshape(64)
    z = tl.interleave(z, -z).reshape(128)
    g = tl.gather(z.reshape(16, 8), tl.broadcast_to((tl.arange(0, 8)[None, :] * 3) % 8, (16, 8)), 1)
    tl.store(out_ptr + tl.arange(0, 128), g.reshape(128))
    tl.store(out_ptr + 128 + tl.arange(0, 64), tl.flip(x, 0))
    tl.store(out_ptr + 192 + i, tl.sort(x, descending=True))
    tl.store(out_ptr + 256 + tl.arange(0, 8), tl.histogram((x % 8).to(tl.int32), 8))


def test_shape_ops_gather_sort_histogram():
    x = RNG.permutation(64).astype(np.int32)
    out = run_kernel(shapes, {"x_ptr": "*i32", "out_ptr": "*i32"}, {"x_ptr": x, "out_ptr": np.zeros(264)})[0]["out_ptr"]
    y = x.reshape(2, 4, 8).transpose(2, 0, 1).reshape(8, 4, 2)
    z = np.stack([y[..., 1], y[..., 0]], -1).reshape(64)
    z = np.stack([z, -z], -1).reshape(16, 8)
    np.testing.assert_array_equal(out[:128], z[:, (np.arange(8) * 3) % 8].reshape(128))
    np.testing.assert_array_equal(out[128:192], x[::-1])
    np.testing.assert_array_equal(out[192:256], np.sort(x)[::-1])
    np.testing.assert_array_equal(out[256:], np.bincount(x % 8, minlength=8))


@triton.jit
def atomics(i_ptr, f_ptr, u_ptr, old_ptr, lock_ptr):
    i = tl.arange(0, 16)
    tl.atomic_add(i_ptr + i % 4, i)
    tl.atomic_max(i_ptr + 4 + i % 4, i - 8)
    tl.atomic_min(u_ptr + i % 2, (i * 0 + 3).to(tl.uint32))
    tl.atomic_add(f_ptr + i % 2, i.to(tl.float32), mask=i < 8)
    tl.store(old_ptr + tl.program_id(0) * 16 + i, tl.atomic_add(i_ptr + 8 + i % 2, 1))
    tl.atomic_cas(lock_ptr, 0, 5)
    tl.atomic_xchg(lock_ptr + 1, tl.program_id(0))


def test_atomics_apply_lane_after_lane():
    out, _ = run_kernel(
        atomics,
        {"i_ptr": "*i32", "f_ptr": "*fp32", "u_ptr": "*u32", "old_ptr": "*i32", "lock_ptr": "*i32"},
        {
            "i_ptr": np.zeros(16),
            "f_ptr": np.zeros(2),
            "u_ptr": [-1, 2],
            "old_ptr": np.zeros(32),
            "lock_ptr": np.zeros(2),
        },
        grid=(2,),
    )
    assert out["i_ptr"][:4].tolist() == [2 * (0 + 4 + 8 + 12) + 8 * k for k in range(4)]
    assert out["i_ptr"][4:8].tolist() == [4, 5, 6, 7]
    assert out["u_ptr"].tolist() == [3, 2]  # -1 is the largest when unsigned
    assert out["f_ptr"].tolist() == [2.0 * (0 + 2 + 4 + 6), 2.0 * (1 + 3 + 5 + 7)]
    assert out["old_ptr"].tolist() == [k // 2 for k in range(32)]
    assert out["lock_ptr"].tolist() == [5, 1]


@triton.jit
def _helper(x, n):
    if n > 2:
        return x * 2
    return x + 100


@triton.jit(noinline=True)
def _called(x, n):
    if n > 5:
        return x - 1
    return x + n


@triton.jit
def control(out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    x = i
    k = 0
    while k < n:
        if k % 2 == 0:
            x = _helper(x, k)
        else:
            x += _called(n, k)
        k += 1
    for j in range(n, 0, -2):
        x += j
    tl.store(out_ptr + i, x)


@pytest.mark.parametrize("n", [0, 2, 7, 9])
def test_control_flow_and_calls(n: int):
    out = run_kernel(control, {"out_ptr": "*i32", "n": "i32"}, {"out_ptr": np.zeros(16), "n": n}, constexprs={"N": 16})[
        0
    ]["out_ptr"]
    x = np.arange(16)
    for k in range(n):
        if k % 2 == 0:
            x = x * 2 if k > 2 else x + 100
        else:
            x = x + (n - 1 if k > 5 else n + k)
    x = x + sum(range(n, 0, -2))
    np.testing.assert_array_equal(out, x)


@triton.jit
def descriptors(a_ptr, out_ptr, m, n):
    source = tl.make_tensor_descriptor(a_ptr, [m, n], [n, 1], [8, 16])
    target = tl.make_tensor_descriptor(out_ptr, [m, n], [n, 1], [8, 16])
    for r in range(0, m, 8):
        x = source.load([r, 16])
        target.store([r, 0], x)
        target.atomic_add([r, 16], x)


@pytest.mark.parametrize("target", ["gfx950", "gfx1250"])  # rewritten to pointers, and kept
def test_descriptors(target: str):
    a = RNG.integers(0, 100, (12, 32)).astype(np.float32)
    out = run_kernel(descriptors, {"a_ptr": "*fp32", "out_ptr": "*fp32", "m": "i32", "n": "i32"},
                     {"a_ptr": a, "out_ptr": np.ones((12, 32)), "m": 12, "n": 32}, target=target)[0]["out_ptr"]  # fmt: skip
    np.testing.assert_array_equal(out, np.concatenate([a[:, 16:], a[:, 16:] + 1], 1))


@triton.jit
def scaled(a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, A: tl.constexpr, B: tl.constexpr, PACK: tl.constexpr):
    m, n = tl.arange(0, 32), tl.arange(0, 32)
    ka, kb, s = tl.arange(0, 128 // PACK), tl.arange(0, 128), tl.arange(0, 4)
    a = tl.load(a_ptr + m[:, None] * (128 // PACK) + ka[None, :])
    b = tl.load(b_ptr + kb[:, None] * 32 + n[None, :])
    sa = tl.load(sa_ptr + m[:, None] * 4 + s[None, :])
    sb = tl.load(sb_ptr + n[:, None] * 4 + s[None, :])
    tl.store(c_ptr + m[:, None] * 32 + n[None, :], tl.dot_scaled(a, sa, A, b, sb, B))


FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def test_scaled_dot_of_fp4_and_fp8():
    codes = RNG.integers(0, 16, (32, 128))
    packed = (codes[:, 0::2] | (codes[:, 1::2] << 4)).astype(np.int64)
    b = RNG.choice([0.5, 1.0, -1.5, 2.0, -0.25], (128, 32))
    sa, sb = RNG.integers(120, 134, (32, 4)), RNG.integers(120, 134, (32, 4))
    types = {"a_ptr": "*u8", "b_ptr": "*fp8e4nv", "sa_ptr": "*u8", "sb_ptr": "*u8", "c_ptr": "*fp32"}
    values = {"a_ptr": packed, "b_ptr": b, "sa_ptr": sa, "sb_ptr": sb, "c_ptr": np.zeros((32, 32))}
    out = run_kernel(scaled, types, values, constexprs={"A": "e2m1", "B": "e4m3", "PACK": 2})[0]["c_ptr"]
    wide_a = FP4[codes] * np.repeat(2.0 ** (sa - 127), 32, 1)
    wide_b = b * np.repeat(2.0 ** (sb - 127), 32, 1).T
    rounding = 128 * 2.0**-24 * (abs(wide_a) @ abs(wide_b))  # of a sum of 128 products in fp32
    assert (abs(out - wide_a @ wide_b) <= rounding).all()


@triton.jit
def dots(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + i * N + j), tl.load(b_ptr + i * N + j)
    tl.store(c_ptr + i * N + j, tl.dot(a, b))


def test_int8_dot_is_exact():
    a, b = RNG.integers(-128, 128, (32, 32)), RNG.integers(-128, 128, (32, 32))
    types = {"a_ptr": "*i8", "b_ptr": "*i8", "c_ptr": "*i32"}
    out = run_kernel(dots, types, {"a_ptr": a, "b_ptr": b, "c_ptr": np.zeros((32, 32))}, constexprs={"N": 32})[0][
        "c_ptr"
    ]
    np.testing.assert_array_equal(out, a @ b)


@triton.jit
def one_item(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.arange(0, 1))
    tl.store(out_ptr, x.item() * 2)


def test_item_of_a_tensor_of_one_element():
    out, _ = run_kernel(
        one_item, {"x_ptr": "*fp32", "out_ptr": "*fp32"}, {"x_ptr": np.array([3.0]), "out_ptr": np.zeros(1)}
    )
    np.testing.assert_array_equal(out["out_ptr"], [6.0])


@triton.jit
def polls(x_ptr, out_ptr, expected, LIMIT: tl.constexpr):
    i = tl.arange(0, 4)
    done = tl.atomic_poll(x_ptr + i, expected, timeout_ns=LIMIT)
    tl.store(out_ptr + i, done.to(tl.int32))


def test_polling_sees_what_is_there():
    types = {"x_ptr": "*i32", "out_ptr": "*i32", "expected": "i32"}
    values = {"x_ptr": np.array([3, 3, 4, 3]), "out_ptr": np.zeros(4), "expected": 3}
    out = run_kernel(polls, types, values, constexprs={"LIMIT": 100})[0]["out_ptr"]
    np.testing.assert_array_equal(out, [1, 1, 0, 1])
    with pytest.raises(WaitsForever):
        run_kernel(polls, types, values, constexprs={"LIMIT": None})
