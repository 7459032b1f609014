"""Operations of kernels for NVIDIA GPUs on the reference machine, each family against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from nvidia_machine import BLACKWELL, Flat, Tiles, run
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2
from triton.experimental.gluon.language.nvidia.blackwell import clc, tma as blackwell_tma
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from gluonize.judge.machine.memory.tensor_descriptors import Descriptor, PixelBox

BOTH = ["cuda:90", BLACKWELL]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32)


@gluon.jit
def offsets(rows: gl.constexpr, columns: gl.constexpr, layout: gl.constexpr):
    r = gl.arange(0, rows, layout=gl.SliceLayout(1, layout))[:, None]
    return r * columns + gl.arange(0, columns, layout=gl.SliceLayout(0, layout))[None, :]


# Copies ------------------------------------------------------------------------------------------------------------------


@gluon.jit
def moved(x, y, row, column, KIND: gl.constexpr):
    shared = gl.allocate_shared_memory(x.dtype, x.block_shape, x.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, x.nbytes_per_cta)
    tma.async_load(x, [row, column], bar, shared)
    mbarrier.wait(bar, 0)
    mbarrier.invalidate(bar)
    if KIND == "store":
        tma.async_store(y, [row, column], shared)
    if KIND == "add":
        tma.async_atomic_add(y, [row, column], shared)
    if KIND == "max":
        tma.async_atomic_max(y, [row, column], shared)
    tma.store_wait(0)


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize("kind", ["store", "add", "max"])
@pytest.mark.parametrize("place", [(0, 0), (32, 64), (-16, 40)])
def test_tiles_that_hang_over_the_edge(target: str, kind: str, place):
    """What lies outside is read as 0 and not written."""
    x, y = (np.random.default_rng(n).integers(-9, 9, (48, 80)).astype(np.int32) for n in (1, 2))
    block = {"block": (32, 32), "kind": "i32"}
    arguments = {"x": Tiles(x, **block), "y": Tiles(y, **block), "row": place[0], "column": place[1]}
    arrays, _ = run(moved, arguments, {"KIND": kind}, target)
    expected, part = y.copy(), np.s_[max(place[0], 0) : place[0] + 32, max(place[1], 0) : place[1] + 32]
    function = {"store": lambda a, b: b, "add": np.add, "max": np.maximum}[kind]
    expected[part] = function(y[part], x[part])
    assert (arrays["y"] == expected).all()


@gluon.jit
def gathered(x, y, index, column):
    layout: gl.constexpr = gl.SliceLayout(0, gl.BlockedLayout([1, 4], [32, 1], [1, 4], [1, 0]))
    rows = gl.load(index + gl.arange(0, 32, layout=layout))
    shared = gl.allocate_shared_memory(gl.float16, [32, 64], x.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, 32 * 64 * 2)
    blackwell_tma.async_gather(x, rows, column, bar, shared)
    mbarrier.wait(bar, 0)
    blackwell_tma.async_scatter(y, rows, column, shared)
    tma.store_wait(0)


def test_rows_are_gathered_and_scattered():
    x, y = normal(48, 128), np.zeros((48, 128))
    index = np.random.default_rng(3).permutation(60)[:32].astype(np.int32)  # some are behind the last row
    arguments = {"x": Tiles(x, (1, 64)), "y": Tiles(y, (1, 64)), "index": Flat(index, "i32"), "column": 64}
    arrays, _ = run(gathered, arguments, target=BLACKWELL)
    expected, there = y.copy(), index[index < 48]
    expected[there, 64:] = x[there, 64:]
    assert (arrays["y"] == expected).all()


@gluon.jit
def by_threads(x, y, n, BLOCK: gl.constexpr, SIGNAL: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    slots = gl.allocate_shared_memory(gl.float32, [2, BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    if SIGNAL:
        bar = mbarrier.allocate_mbarrier()
        mbarrier.init(bar, count=128)
    for slot in gl.static_range(2):
        place = slot * BLOCK + gl.arange(0, BLOCK, layout=layout)
        async_copy.async_load(slots.index(slot), x + place, mask=place < n)
        async_copy.commit_group()
    if SIGNAL:
        async_copy.mbarrier_arrive(bar, increment_count=False)
        mbarrier.wait(bar, 0)
    for slot in gl.static_range(2):
        place = slot * BLOCK + gl.arange(0, BLOCK, layout=layout)
        if not SIGNAL:
            async_copy.wait_group(1 - slot)
        gl.store(y + place, slots.index(slot).load(layout), mask=place < n)


@pytest.mark.parametrize("target, signal", [("cuda:80", False), ("cuda:90", False), ("cuda:90", True)])
def test_copies_by_threads(target: str, signal: bool):
    """Waited for in groups, or by a barrier at which every thread arrives when its copies are done."""
    x = np.arange(1000, dtype=np.float32)
    arguments = {"x": Flat(x, "fp32"), "y": Flat(np.zeros(1000), "fp32"), "n": 1000}
    arrays, _ = run(by_threads, arguments, {"BLOCK": 512, "SIGNAL": signal}, target)
    assert (arrays["y"] == x).all()


@gluon.jit
def made_here(p, q, m, n, stride, NAN: gl.constexpr):
    layout: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    registers: gl.constexpr = gl.BlockedLayout([1, 2], [1, 32], [4, 1], [1, 0])
    x = tma.make_tensor_descriptor(p, [m, n], [stride, 1], [32, 64], layout, "nan" if NAN else "zero")
    shared = gl.allocate_shared_memory(gl.float16, [32, 64], layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, x.nbytes_per_cta)
    tma.async_load(x, [16, 0], bar, shared)
    mbarrier.wait(bar, 0)
    gl.store(q + offsets(32, 64, registers), shared.load(registers))


@pytest.mark.parametrize("nan", [False, True])
def test_a_descriptor_that_the_kernel_makes(nan: bool):
    x = normal(40, 96)
    arguments = {"p": Flat(x), "q": Flat(np.zeros((32, 64))), "m": 40, "n": 56, "stride": 96}
    arrays, _ = run(made_here, arguments, {"NAN": nan})
    expected = np.full((32, 64), np.nan if nan else 0, np.float16)
    expected[:24, :56] = x[16:, :56]
    assert np.array_equal(arrays["q"], expected, equal_nan=True)


def test_pixels_of_images():
    """Rows of an image follow each other, then images; a step of 2 and a border of 1."""
    images = np.arange(2 * 5 * 6 * 4).reshape(2, 5, 6, 4)
    box = PixelBox((-1, -1), (-1, -2), (2, 2))
    described = Descriptor(0, images.shape, (120, 24, 4, 1), (10, 8), "i8", box=box)
    address, inside = described.pixels([0, 1, -1, 2], [1, 0])
    places = [(n, h, w) for n in range(2) for h in (-1, 1, 3) for w in (-1, 1, 3)]
    for pixel, (n, h, w) in enumerate(places[3:13]):
        there = 0 <= h + 1 < 5 and 0 <= w < 6
        assert inside[pixel].tolist() == [there] * 2 + [False] * 6
        assert not there or address[pixel, :2].tolist() == images[n, h + 1, w, 2:].tolist()


# Products ----------------------------------------------------------------------------------------------------------------


@gluon.jit
def hopper(a, b, out, USE: gl.constexpr, REGISTERS: gl.constexpr, TRANSPOSED: gl.constexpr, ASYNC: gl.constexpr):
    result: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 32, 16])
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, a.nbytes_per_cta + b.nbytes_per_cta)
    x = gl.allocate_shared_memory(gl.float16, a.block_shape, a.layout)
    y = gl.allocate_shared_memory(gl.float16, b.block_shape, b.layout)
    tma.async_load(a, [0, 0], bar, x)
    tma.async_load(b, [0, 0], bar, y)
    mbarrier.wait(bar, 0)
    right = y.permute((1, 0)) if TRANSPOSED else y
    acc = gl.full([64, 32], 1.0, gl.float32, result)
    left = x.load(gl.DotOperandLayout(0, result, 2)) if REGISTERS else x
    acc = warpgroup_mma(left, right, acc, use_acc=USE, is_async=ASYNC)
    acc = warpgroup_mma(left, right, acc, is_async=ASYNC)
    if ASYNC:
        acc = warpgroup_mma_wait(0, deps=[acc])
    gl.store(out + offsets(64, 32, result), acc)


@pytest.mark.parametrize("use", [True, False])
@pytest.mark.parametrize(
    "registers, transposed, waits", [(False, False, True), (True, False, True), (False, True, False)]
)
def test_products_of_warp_groups(use: bool, registers: bool, transposed: bool, waits: bool):
    a, b = normal(64, 64), normal(64, 32, seed=1)
    right = Tiles(np.ascontiguousarray(b.T), (32, 64)) if transposed else Tiles(b, (64, 32), swizzle=64)
    arguments = {"a": Tiles(a, (64, 64)), "b": right, "out": Flat(np.zeros((64, 32)), "fp32")}
    wanted = {"USE": use, "REGISTERS": registers, "TRANSPOSED": transposed, "ASYNC": waits}
    arrays, machine = run(hopper, arguments, wanted)
    assert np.allclose(arrays["out"], use + 2 * wide(a) @ wide(b), atol=1e-3) and not machine.findings


@gluon.jit
def ampere(a, b, out):
    result: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [4, 1], [16, 8])
    x = gl.load(a + offsets(64, 32, gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])))
    y = gl.load(b + offsets(32, 16, gl.BlockedLayout([1, 1], [2, 16], [4, 1], [1, 0])))
    x, y = gl.convert_layout(x, gl.DotOperandLayout(0, result, 2)), gl.convert_layout(
        y, gl.DotOperandLayout(1, result, 2)
    )
    gl.store(out + offsets(64, 16, result), mma_v2(x, y, gl.full([64, 16], 2.0, gl.float32, result)))


def test_products_of_warps():
    a, b = normal(64, 32), normal(32, 16, seed=1)
    arrays, _ = run(ampere, {"a": Flat(a), "b": Flat(b), "out": Flat(np.zeros((64, 16)), "fp32")}, target="cuda:80")
    assert np.allclose(arrays["out"], 2 + wide(a) @ wide(b), atol=1e-3)


@gluon.jit
def tensor_core(a, b, out, ON: gl.constexpr, LEFT: gl.constexpr, BARRIER: gl.constexpr, N: gl.constexpr):
    kind: gl.constexpr = blackwell.TensorMemoryLayout([128, N], col_stride=1)
    bars = mbarrier.allocate_mbarrier(batch=2)
    for i in gl.static_range(2):
        mbarrier.init(bars.index(i), count=1)
    mbarrier.expect(bars.index(0), a.nbytes_per_cta + b.nbytes_per_cta)
    x = gl.allocate_shared_memory(gl.float16, a.block_shape, a.layout)
    y = gl.allocate_shared_memory(gl.float16, b.block_shape, b.layout)
    tma.async_load(a, [0, 0], bars.index(0), x)
    tma.async_load(b, [0, 0], bars.index(0), y)
    mbarrier.wait(bars.index(0), 0)
    acc = blackwell.allocate_tensor_memory(gl.float32, [128, N], kind)
    registers: gl.constexpr = acc.get_reg_layout()
    acc.store(gl.full([128, N], 3.0, gl.float32, registers))
    if LEFT == "tensor":
        held: gl.constexpr = blackwell.TensorMemoryLayout([128, 64], col_stride=1)
        left = blackwell.allocate_tensor_memory(gl.float16, [128, 64], held)
        left.store(x.load(left.get_reg_layout()))
    else:
        left = x
    blackwell.tcgen05_mma(left, y, acc, use_acc=False, pred=ON)
    if BARRIER:
        blackwell.tcgen05_mma(left, y, acc, mbarriers=[bars.index(1)])
    else:
        blackwell.tcgen05_mma(left, y, acc)
        blackwell.tcgen05_commit(bars.index(1))
    mbarrier.wait(bars.index(1), 0)
    low, high = acc.slice(0, N // 2), acc.slice(N // 2, N // 2)
    half: gl.constexpr = low.get_reg_layout()
    place = gl.arange(0, 128, layout=gl.SliceLayout(1, half))[:, None] * N
    column = gl.arange(0, N // 2, layout=gl.SliceLayout(0, half))[None, :]
    gl.store(out + place + column, low.load())
    gl.store(out + place + N // 2 + column, high.load())


@pytest.mark.parametrize(
    "on, left, barrier", [(True, "shared", True), (True, "tensor", False), (False, "shared", False)]
)
def test_products_of_the_tensor_core(on: bool, left: str, barrier: bool):
    a, b = normal(128, 64), normal(64, 64, seed=1)
    arguments = {"a": Tiles(a, (128, 64)), "b": Tiles(b, (64, 64)), "out": Flat(np.zeros((128, 64)), "fp32")}
    arrays, _ = run(tensor_core, arguments, {"ON": on, "LEFT": left, "BARRIER": barrier, "N": 64}, BLACKWELL)
    expected = 2 * wide(a) @ wide(b) if on else 3 + wide(a) @ wide(b)
    assert np.allclose(arrays["out"], expected, atol=1e-3)


# Tensor memory -----------------------------------------------------------------------------------------------------------


@gluon.jit
def named_again(x, out, most):
    layout: gl.constexpr = blackwell.TensorMemoryLayout([128, 64], col_stride=1)
    held = blackwell.allocate_tensor_memory(gl.float32, [128, 64], layout)
    registers: gl.constexpr = held.get_reg_layout()
    held.store(gl.load(x + offsets(128, 64, registers)))
    value, reduced = held.load_max(registers)
    gl.store(most + gl.arange(0, 128, layout=gl.SliceLayout(1, registers)), reduced)
    narrow: gl.constexpr = blackwell.TensorMemoryLayout([128, 32], col_stride=1)
    halves = held.slice(32, 32).reinterpret(gl.float16, [128, 32], narrow)  # the lower half of columns 32 to 63
    halves.store(gl.full([128, 32], 1.0, gl.float16, halves.get_reg_layout()))
    gl.store(out + offsets(128, 64, registers), held.load(registers))


def test_tensor_memory_under_another_type():
    x = np.random.default_rng(0).standard_normal((128, 64)).astype(np.float32)
    arguments = {"x": Flat(x, "fp32"), "out": Flat(np.zeros((128, 64)), "fp32"), "most": Flat(np.zeros(128), "fp32")}
    arrays, _ = run(named_again, arguments, target="cuda:103")
    assert (arrays["most"] == x.max(1)).all()
    pairs = np.full((128, 16), 0x3C003C00, np.uint32).view(np.float32)
    assert (arrays["out"] == np.concatenate([x[:, :32], pairs, x[:, 48:]], 1)).all()


@gluon.jit
def two_slots(x, out):
    layout: gl.constexpr = blackwell.TensorMemoryLayout([64, 32], col_stride=1)
    held = blackwell.allocate_tensor_memory(gl.float32, [2, 64, 32], layout)
    registers: gl.constexpr = held.index(0).get_reg_layout()
    for slot in gl.static_range(2):
        held.index(slot).store(gl.load(x + slot * 2048 + offsets(64, 32, registers)))
    for slot in gl.static_range(2):
        gl.store(out + slot * 2048 + offsets(64, 32, registers), held.index(slot).load(registers))


def test_slots_of_tensor_memory_lie_beside_each_other():
    x = np.random.default_rng(0).standard_normal((2, 64, 32)).astype(np.float32)
    arguments = {"x": Flat(x, "fp32"), "out": Flat(np.zeros((2, 64, 32)), "fp32")}
    arrays, _ = run(two_slots, arguments, target=BLACKWELL)
    assert (arrays["out"] == x).all()


@gluon.jit
def scaled(a, b, a_scale, b_scale, out, FORMAT: gl.constexpr, COPY: gl.constexpr):
    kind: gl.constexpr = blackwell.TensorMemoryLayout([128, 128], col_stride=1)
    bars = mbarrier.allocate_mbarrier(batch=2)
    for i in gl.static_range(2):
        mbarrier.init(bars.index(i), count=1)
    mbarrier.expect(bars.index(0), a.nbytes_per_cta + b.nbytes_per_cta)
    x = gl.allocate_shared_memory(a.dtype, a.block_shape, a.layout)
    y = gl.allocate_shared_memory(b.dtype, b.block_shape, b.layout)
    tma.async_load(a, [0, 0], bars.index(0), x)
    tma.async_load(b, [0, 0], bars.index(0), y)
    mbarrier.wait(bars.index(0), 0)
    acc = blackwell.allocate_tensor_memory(gl.float32, [128, 128], kind)
    scales: gl.constexpr = blackwell.TensorMemoryScalesLayout()
    left = blackwell.allocate_tensor_memory(gl.uint8, [128, 4], scales)
    right = blackwell.allocate_tensor_memory(gl.uint8, [128, 4], scales)
    if COPY:
        blocks: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
        row: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
        first = gl.allocate_shared_memory(gl.uint8, [32, 16], blocks, gl.load(a_scale + offsets(32, 16, row)))
        second = gl.allocate_shared_memory(gl.uint8, [32, 16], blocks, gl.load(b_scale + offsets(32, 16, row)))
        fence_async_shared()
        blackwell.tcgen05_copy(first.reshape((32, 4, 4)).permute((1, 0, 2)).reshape((128, 4)), left)
        blackwell.tcgen05_copy(second.reshape((32, 4, 4)).permute((1, 0, 2)).reshape((128, 4)), right)
    else:
        left.store(gl.load(a_scale + offsets(128, 4, left.get_reg_layout())))
        right.store(gl.load(b_scale + offsets(128, 4, right.get_reg_layout())))
    blackwell.tcgen05_mma_scaled(x, y.permute((1, 0)), acc, left, right, FORMAT, FORMAT, use_acc=False)
    blackwell.tcgen05_commit(bars.index(1))
    mbarrier.wait(bars.index(1), 0)
    registers: gl.constexpr = acc.get_reg_layout()
    gl.store(out + offsets(128, 128, registers), acc.load(registers))


def _blocks(scales: np.ndarray) -> np.ndarray:
    """Scales [128, 4] as they are copied: row 32 * j + i of the tile at [i, 4 * j]."""
    return scales.reshape(4, 32, 4).transpose(1, 0, 2).reshape(32, 16)


@pytest.mark.parametrize("form", ["e4m3", "e2m1"])
@pytest.mark.parametrize("copied", [False, True])
def test_scaled_products(form: str, copied: bool):
    rng = np.random.default_rng(5)
    exponents = [rng.integers(124, 131, (128, 4)).astype(np.uint8) for _ in range(2)]
    if form == "e4m3":
        values = [rng.integers(-8, 9, (128, 128)).astype(np.float32) for _ in range(2)]
        tiles = [Tiles(value, (128, 128), "fp8e4nv") for value in values]
    else:
        codes = [rng.integers(0, 256, (128, 64)).astype(np.uint8) for _ in range(2)]
        table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
        values = [np.stack([table[code & 15], table[code >> 4]], -1).reshape(128, 128) for code in codes]
        tiles = [Tiles(code, (128, 64), "u8", swizzle=64) for code in codes]
    given = [Flat(_blocks(x) if copied else x, "u8") for x in exponents]
    arguments = dict(zip(("a", "b", "a_scale", "b_scale"), (*tiles, *given)), out=Flat(np.zeros((128, 128)), "fp32"))
    arrays, _ = run(scaled, arguments, {"FORMAT": form, "COPY": copied}, BLACKWELL)
    left, right = (v * np.repeat(2.0 ** (e.astype(int) - 127), 32, 1) for v, e in zip(values, exponents))
    assert np.allclose(arrays["out"], left @ right.T, rtol=1e-5)


# Launches ----------------------------------------------------------------------------------------------------------------


@gluon.jit
def taken_over(done, by):
    answer = gl.allocate_shared_memory(gl.int64, [2], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    tile, phase, more = gl.program_id(0), 0, True
    while more:
        mbarrier.expect(bar, 16)
        clc.try_cancel(answer, bar)
        gl.atomic_add(done + tile, 1)
        gl.store(by + tile, gl.program_id(0))
        mbarrier.wait(bar, phase)
        found = clc.load_result(answer)
        more = found.is_canceled()
        if more:
            tile = found.program_id(0)
        phase ^= 1


def test_programs_take_over_those_that_have_not_begun():
    arguments = {"done": Flat(np.zeros(7), "i32"), "by": Flat(np.zeros(7), "i32")}
    arrays, _ = run(taken_over, arguments, target=BLACKWELL, grid=(7,))
    assert (arrays["done"] == 1).all()
    assert arrays["by"].tolist() == [0, 0, 0, 3, 3, 3, 6]


@gluon.jit
def packed(a, b, c, out):
    layout: gl.constexpr = gl.BlockedLayout([2], [32], [4], [0])
    place = gl.arange(0, 256, layout=layout)
    x, y, z = gl.load(a + place), gl.load(b + place), gl.load(c + place)
    gl.store(out + place, blackwell.fma2(x, y, z))


def test_arithmetic_on_pairs():
    """A fused multiply-add is rounded once."""
    x = np.float32(1 + 2.0**-12) * np.ones(256, np.float32)
    y, z = x, -np.float32(1 + 2.0**-11) * np.ones(256, np.float32)
    arguments = {name: Flat(value, "fp32") for name, value in zip("abc", (x, y, z))}
    arrays, _ = run(packed, arguments | {"out": Flat(np.zeros(256), "fp32")}, target=BLACKWELL)
    assert (arrays["out"] == np.float32(2.0**-24)).all()
