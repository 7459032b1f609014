"""Lifting: kernels that are Gluon already become the Triton kernels that they compute."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.lift.kernel import lift_kernel
from gluonize.read.kernels.load import load_kernel
from gluonize.read.spec.launch import parse_launches

HEAD = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy as cp
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, fence_async_shared, warpgroup_mma, warpgroup_mma_init, warpgroup_mma_wait
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout, allocate_tensor_memory, tcgen05_commit, tcgen05_mma,
)
"""
ADD = """
@gluon.jit
def kernel(x_ptr, y_ptr, n, BLOCK: gl.constexpr, RING: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    lane = gl.arange(0, BLOCK, layout)
    ring = gl.allocate_shared_memory(x_ptr.dtype.element_ty, [RING, BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    for i in gl.static_range(RING - 1):
        at = i * BLOCK + lane
        cp.async_load(ring.index(i), x_ptr + at, mask=at < n)
        cp.commit_group()
    for i in range(gl.cdiv(n, BLOCK)):
        at = (i + RING - 1) * BLOCK + lane
        cp.async_load(ring.index((i + RING - 1) % RING), x_ptr + at, mask=at < n)
        cp.commit_group()
        cp.wait_group(RING - 1)
        here = i * BLOCK + lane
        gl.store(y_ptr + here, ring.index(i % RING).load(layout) + 1.0, mask=here < n)
"""
TILE = """
@gluon.jit
def fill(a, b, m, n, k, slot, full, ra, rb):
    mbarrier.expect(full.index(slot), a.block_type.nbytes + b.block_type.nbytes)
    tma.async_load(a, [m, k], full.index(slot), ra.index(slot))
    tma.async_load(b, [k, n], full.index(slot), rb.index(slot))
"""
HOPPER = TILE + """
@gluon.jit
def kernel(a, b, c, RING: gl.constexpr):
    BM: gl.constexpr = a.block_type.shape[0]
    BK: gl.constexpr = a.block_type.shape[1]
    BN: gl.constexpr = b.block_type.shape[1]
    ra = gl.allocate_shared_memory(a.dtype, [RING, BM, BK], a.layout)
    rb = gl.allocate_shared_memory(b.dtype, [RING, BK, BN], b.layout)
    full = gl.allocate_shared_memory(gl.int64, [RING, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(RING):
        mbarrier.init(full.index(i), count=1)
    m = gl.program_id(0) * BM
    n = gl.program_id(1) * BN
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BN, 16])
    acc = warpgroup_mma_init(gl.zeros((BM, BN), gl.float32, layout))
    for i in gl.static_range(RING - 1):
        fill(a, b, m, n, i * BK, i, full, ra, rb)
    steps = gl.cdiv(a.shape[1], BK)
    for i in range(steps - (RING - 1)):
        ahead = i + RING - 1
        acc = warpgroup_mma_wait(0, deps=(acc,))
        fill(a, b, m, n, ahead * BK, ahead % RING, full, ra, rb)
        mbarrier.wait(full.index(i % RING), i // RING & 1)
        acc = warpgroup_mma(ra.index(i % RING), rb.index(i % RING), acc, is_async=True)
    for j in gl.static_range(RING - 1):
        i = gl.maximum(steps - (RING - 1), 0) + j
        mbarrier.wait(full.index(i % RING), i // RING & 1)
        acc = warpgroup_mma_wait(0, deps=(acc,))
        acc = warpgroup_mma(ra.index(i % RING), rb.index(i % RING), acc, is_async=True)
    acc = warpgroup_mma_wait(0, deps=(acc,))
    out = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
    out.store(acc.to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [m, n], out)
    tma.store_wait(0)
"""
SPECIALIZED = """
@gluon.jit
def step(slot, phase, N: gl.constexpr):
    last = slot == N - 1
    return gl.where(last, 0, slot + 1), gl.where(last, phase ^ 1, phase)

@gluon.jit
def loads(a, b, c, ra, rb, full, free, acc, done, idle, RING: gl.constexpr, RELEASED: gl.constexpr):
    BM: gl.constexpr = a.block_type.shape[0]
    BN: gl.constexpr = b.block_type.shape[1]
    rows = gl.cdiv(c.shape[0], BM)
    slot, phase = gl.to_tensor(0), gl.to_tensor(1)
    for tile in range(gl.program_id(0), rows * gl.cdiv(c.shape[1], BN), gl.num_programs(0)):
        for k in range(0, a.shape[1], a.block_type.shape[1]):
            mbarrier.wait(free.index(slot), phase)
            mbarrier.expect(full.index(slot), a.block_type.nbytes + b.block_type.nbytes)
            tma.async_load(a, [tile % rows * BM, k], full.index(slot), ra.index(slot))
            tma.async_load(b, [k, tile // rows * BN], full.index(slot), rb.index(slot))
            slot, phase = step(slot, phase, RING)

@gluon.jit
def products(a, b, c, ra, rb, full, free, acc, done, idle, RING: gl.constexpr, RELEASED: gl.constexpr):
    BM: gl.constexpr = a.block_type.shape[0]
    BN: gl.constexpr = b.block_type.shape[1]
    slot, phase, which, turn = gl.to_tensor(0), gl.to_tensor(0), gl.to_tensor(0), gl.to_tensor(1)
    for tile in range(gl.program_id(0), gl.cdiv(c.shape[0], BM) * gl.cdiv(c.shape[1], BN), gl.num_programs(0)):
        mbarrier.wait(idle.index(which), turn)
        more = False
        for k in range(0, a.shape[1], a.block_type.shape[1]):
            mbarrier.wait(full.index(slot), phase)
            tcgen05_mma(ra.index(slot), rb.index(slot), acc.index(which), use_acc=more)
            if RELEASED:
                tcgen05_commit(free.index(slot))
            slot, phase = step(slot, phase, RING)
            more = True
        tcgen05_commit(done.index(which))
        which, turn = step(which, turn, 2)

@gluon.jit
def stores(a, b, c, ra, rb, full, free, acc, done, idle, RING: gl.constexpr, RELEASED: gl.constexpr):
    BM: gl.constexpr = a.block_type.shape[0]
    BN: gl.constexpr = b.block_type.shape[1]
    HALF: gl.constexpr = c.block_type.shape[1]
    out = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
    rows = gl.cdiv(c.shape[0], BM)
    which, turn = gl.to_tensor(0), gl.to_tensor(0)
    for tile in range(gl.program_id(0), rows * gl.cdiv(c.shape[1], BN), gl.num_programs(0)):
        mbarrier.wait(done.index(which), turn)
        for half in gl.static_range(BN // HALF):
            part = acc.index(which).slice(half * HALF, HALF).load().to(c.dtype)
            tma.store_wait(pendings=0)
            out.store(part)
            fence_async_shared()
            tma.async_store(c, [tile % rows * BM, tile // rows * BN + half * HALF], out)
        mbarrier.arrive(idle.index(which), count=1)
        which, turn = step(which, turn, 2)
    tma.store_wait(pendings=0)

@gluon.jit
def kernel(a, b, c, RING: gl.constexpr, RELEASED: gl.constexpr):
    BM: gl.constexpr = a.block_type.shape[0]
    BN: gl.constexpr = b.block_type.shape[1]
    ra = gl.allocate_shared_memory(a.dtype, [RING] + a.block_type.shape, a.layout)
    rb = gl.allocate_shared_memory(b.dtype, [RING] + b.block_type.shape, b.layout)
    full = gl.allocate_shared_memory(gl.int64, [RING, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [RING, 1], mbarrier.MBarrierLayout())
    done = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    idle = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(RING):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(free.index(i), count=1)
    for i in gl.static_range(2):
        mbarrier.init(done.index(i), count=1)
        mbarrier.init(idle.index(i), count=1)
    acc = allocate_tensor_memory(gl.float32, [2, BM, BN], TensorMemoryLayout([BM, BN], col_stride=1))
    given = (a, b, c, ra, rb, full, free, acc, done, idle, RING, RELEASED)
    gl.warp_specialize([(stores, given), (loads, given), (products, given)], [1, 1], [24, 24])
"""


def descriptor(shape, block, bits=16):
    layout = f"NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth={bits}, rank=2, transposed=False, fp4_padded=False, cga_layout=[])"
    base = {"dtype": "float16", "shape": shape, "stride": [shape[1], 1], "storage": shape[0] * shape[1], "offset": 0}
    value = {"descriptor": {"base": base, "shape": shape, "strides": [shape[1], 1]}}
    return f"tensordesc<fp16{block},{layout}>", value


def lifted(tmp_path, source, target, arguments, constexprs, grid) -> str:
    """The lines of the lifted kernel behind its assertions."""
    path = tmp_path / "source.py"
    path.write_text(HEAD + dedent(source))
    signature = {name: kind for name, (kind, _) in arguments.items()} | dict.fromkeys(constexprs, "constexpr")
    launch = {
        "kernel": "kernel",
        "source": str(path),
        "target": target,
        "signature": signature,
        "constexprs": constexprs,
    }
    launch |= {
        "values": {name: value for name, (_, value) in arguments.items()},
        "grid": grid,
        "options": {"num_warps": 4},
    }
    (spec,) = parse_launches(launch)
    text = lift_kernel(load_kernel(str(path), "kernel"), spec).text
    body = text.partition("def kernel")[2].splitlines()[1:]
    return "\n".join(line[4:] for line in body if "static_assert" not in line)


def gemm(block_c=None):
    return {
        "a": descriptor([300, 448], [64, 64]),
        "b": descriptor([448, 500], [64, 128]),
        "c": descriptor([300, 500], block_c or [64, 128]),
    }


def tensor(n):
    return {"tensor": {"dtype": "float32", "shape": [n], "stride": [1], "storage": n, "offset": 0}}


@pytest.mark.parametrize("ring", [2, 3])
def test_copies_to_a_ring_become_loads(tmp_path, ring):
    arguments = {"x_ptr": ("*fp32", tensor(5000)), "y_ptr": ("*fp32", tensor(5000)), "n": ("i32", 5000)}
    text = lifted(tmp_path, ADD, "cuda:80", arguments, {"BLOCK": 128, "RING": ring}, [1])
    assert text == dedent("""\
        for i in range(tl.cdiv(n, 128)):
            here = i * 128
            here_1 = here + tl.arange(0, 128)
            mask = here_1 < n
            x = tl.load(x_ptr + here_1, mask=mask, other=0.0)
            tl.store(y_ptr + here_1, x + 1.0, mask=mask)""")


@pytest.mark.parametrize("ring", [2, 3])
def test_a_pipelined_product_is_one_loop(tmp_path, ring):
    text = lifted(tmp_path, HOPPER, "cuda:90", gemm(), {"RING": ring}, [5, 4])
    assert text == dedent("""\
        pid_0 = tl.program_id(0)
        m = pid_0 * 64
        pid_1 = tl.program_id(1)
        n = pid_1 * 128
        acc = tl.zeros((64, 128), tl.float32)
        steps = tl.cdiv(a.shape[1], 64)
        for i in range(steps):
            ra = a.load([m, i * 64])
            rb = b.load([i * 64, n])
            acc = tl.dot(ra, rb, acc)
        c.store([m, n], acc.to(tl.float16))""")


def test_partitions_become_one_program(tmp_path):
    """Three partitions, a ring, two accumulators and stores in halves; the barriers are gone."""
    arguments = gemm([128, 64]) | {"a": descriptor([300, 448], [128, 64])}
    text = lifted(tmp_path, SPECIALIZED, "cuda:100", arguments, {"RING": 3, "RELEASED": True}, [2])
    assert text == dedent("""\
        rows = tl.cdiv(c.shape[0], 128)
        programs = tl.num_programs(0)
        pid_0 = tl.program_id(0)
        for tile in range(pid_0, tl.cdiv(c.shape[1], 128) * rows, programs):
            acc = tl.zeros((128, 128), tl.float32)
            for k in range(0, a.shape[1], 64):
                ra = a.load([tile % rows * 128, k])
                rb = b.load([k, tile // rows * 128])
                acc = tl.dot(ra, rb, acc)
            part = acc.to(tl.float16)
            c.store([tile % rows * 128, tile // rows * 128], part)""")


def test_a_slot_that_is_never_given_back_waits_for_ever(tmp_path):
    arguments = gemm([128, 64]) | {"a": descriptor([300, 448], [128, 64])}
    with pytest.raises(TranslationError, match="wait for each other"):
        lifted(tmp_path, SPECIALIZED, "cuda:100", arguments, {"RING": 3, "RELEASED": False}, [2])


def test_a_spin_on_another_program_is_refused_at_its_line(tmp_path):
    source = """
    @gluon.jit
    def kernel(flag):
        while gl.atomic_add(flag, 0, sem="acquire") == 0:
            pass
        gl.store(flag, 2)
    """
    with pytest.raises(TranslationError) as refused:
        lifted(tmp_path, source, "cuda:90", {"flag": ("*i32", tensor(1))}, {}, [1])
    (found,) = refused.value.diagnostics
    assert found.code == "not-lifted" and found.line == HEAD.count("\n") + 4


def test_what_no_size_reaches_is_refused(tmp_path):
    source = """
    @gluon.jit
    def kernel(x_ptr, n, m):
        if n == 12345678:
            gl.store(x_ptr, 1.0)
        gl.store(x_ptr, 2.0)
    """
    arguments = {"x_ptr": ("*fp32", tensor(64)), "n": ("i32", 64), "m": ("i32", 3)}
    with pytest.raises(TranslationError, match="no size that was tried reaches this"):
        lifted(tmp_path, source, "cuda:90", arguments, {}, [1])


def test_a_loop_that_carries_tensors_stays_a_loop(tmp_path):
    """What an iteration makes of the values of the one before; both are carried at once."""
    source = """
    @gluon.jit
    def kernel(x_ptr, y_ptr, n, BLOCK: gl.constexpr):
        layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
        lane = gl.arange(0, BLOCK, layout)
        most = gl.full([BLOCK], 0.0, gl.float32, layout)
        total = gl.zeros([BLOCK], gl.float32, layout)
        for at in range(0, n, BLOCK):
            x = gl.load(x_ptr + at + lane, mask=at + lane < n, other=0.0)
            new = gl.maximum(most, x)
            total = total * gl.exp(most - new) + x
            most = new
        gl.store(y_ptr + lane, total + most)
    """
    arguments = {"x_ptr": ("*fp32", tensor(5000)), "y_ptr": ("*fp32", tensor(128)), "n": ("i32", 5000)}
    text = lifted(tmp_path, source, "cuda:90", arguments, {"BLOCK": 128}, [1])
    assert text.count("for ") == 1 and "in range(tl.cdiv(n, 128)):" in text
    assert text.splitlines()[-3:] == [
        "    new = next_new",
        "    total = next_total",
        "tl.store(y_ptr + tl.arange(0, 128), total + new)",
    ]


PAIRS = """
@gluon.jit
def kernel(x_ptr, y_ptr, BLOCK: gl.constexpr):
    place = gl.arange(0, BLOCK, gl.BlockedLayout([4], [32], [4], [0]))
    x = gl.load(x_ptr + place)
    gl.store(y_ptr + place, fma2(mul2(x, x), x, add2(x, 1.0)))
"""


def test_arithmetic_on_pairs_is_arithmetic_on_elements(tmp_path):
    source = "from triton.experimental.gluon.language.nvidia.blackwell import add2, fma2, mul2\n" + PAIRS
    arguments = {name: ("*fp32", tensor(512)) for name in ("x_ptr", "y_ptr")}
    text = lifted(tmp_path, source, "cuda:100", arguments, {"BLOCK": 512}, [1])
    assert "tl.fma(x_1 * x_1, x_1, x_1 + 1.0)" in text


def test_arithmetic_on_pairs_of_a_type_without_arithmetic_is_refused(tmp_path):
    source = "from triton.experimental.gluon.language.nvidia.blackwell import add2\n" + PAIRS
    source = source.replace(
        "fma2(mul2(x, x), x, add2(x, 1.0))", "add2(x.to(gl.float8e5), x.to(gl.float8e5)).to(gl.float32)"
    )
    arguments = {name: ("*fp32", tensor(512)) for name in ("x_ptr", "y_ptr")}
    with pytest.raises(TranslationError) as refused:
        lifted(tmp_path, source, "cuda:100", arguments, {"BLOCK": 512}, [1])
    assert "f8E5M2" in refused.value.diagnostics[0].why


def test_a_value_that_is_written_over_before_its_use_is_refused(tmp_path):
    """A lifted kernel reads where a value is needed: here that would be behind the store."""
    source = """
    @gluon.jit
    def kernel(x_ptr, y_ptr, BLOCK: gl.constexpr):
        place = gl.arange(0, BLOCK, gl.BlockedLayout([4], [32], [4], [0]))
        x = gl.load(x_ptr + place)
        y = gl.load(y_ptr + place)
        gl.store(x_ptr + place, y)
        gl.store(y_ptr + place, x)
    """
    arguments = {name: ("*fp32", tensor(512)) for name in ("x_ptr", "y_ptr")}
    with pytest.raises(TranslationError, match="x_ptr is written between the read of a value and its use"):
        lifted(tmp_path, source, "cuda:90", arguments, {"BLOCK": 512}, [1])
    both = source.replace("gl.store(x_ptr + place, y)", "gl.store(x_ptr + place, y + x)")
    assert lifted(tmp_path, both, "cuda:90", arguments, {"BLOCK": 512}, [1]).count("tl.load") == 2


def test_a_place_that_is_read_again_after_it_was_written_is_refused(tmp_path):
    source = """
    @gluon.jit
    def kernel(x_ptr, y_ptr, BLOCK: gl.constexpr):
        place = gl.arange(0, BLOCK, gl.BlockedLayout([4], [32], [4], [0]))
        gl.store(x_ptr + place, gl.load(x_ptr + place) + 1.0)
        gl.store(y_ptr + place, gl.load(x_ptr + place))
    """
    arguments = {name: ("*fp32", tensor(512)) for name in ("x_ptr", "y_ptr")}
    with pytest.raises(TranslationError, match="x_ptr is read again after it was written"):
        lifted(tmp_path, source, "cuda:90", arguments, {"BLOCK": 512}, [1])


def test_a_slot_whose_bytes_another_slot_has_written_is_not_read(tmp_path):
    """Two rows of 16-bit numbers are one row of 32-bit ones."""
    source = """
    @gluon.jit
    def kernel(x_ptr, y_ptr, BLOCK: gl.constexpr):
        layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
        wide: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
        place = gl.arange(0, BLOCK, layout)
        ring = gl.allocate_shared_memory(gl.float32, [2, BLOCK], wide)
        ring.index(0).store(gl.load(x_ptr + place))
        other = ring.reinterpret(gl.float16, [4, BLOCK], wide)
        other.index(1).store(gl.full([BLOCK], 2.0, gl.float16, layout))
        gl.store(y_ptr + place, ring.index(0).load(layout))
    """
    arguments = {name: ("*fp32", tensor(512)) for name in ("x_ptr", "y_ptr")}
    with pytest.raises(TranslationError, match="ring is read where nothing, or something of another type, was written"):
        lifted(tmp_path, source, "cuda:90", arguments, {"BLOCK": 512}, [1])
    apart = source.replace("other.index(1)", "other.index(2)")
    assert "tl.load(x_ptr" in lifted(tmp_path, apart, "cuda:90", arguments, {"BLOCK": 512}, [1])


@pytest.mark.parametrize("way, written", [(', fp_downcast_rounding="rtz"', ', fp_downcast_rounding="rtz"'), ("", "")])
def test_a_conversion_rounds_as_its_source_does(tmp_path, way, written):
    source = f"""
        @gluon.jit
        def kernel(x_ptr, out_ptr):
            i = gl.arange(0, 1024, layout=gl.BlockedLayout([4], [64], [4], [0]))
            gl.store(out_ptr + i, gl.load(x_ptr + i).to(gl.bfloat16{way}))
    """
    arguments = {"x_ptr": ("*fp32", tensor(1024)), "out_ptr": ("*bf16", tensor(1024))}
    text = lifted(tmp_path, source, "gfx950", arguments, {}, [1])
    assert f".to(tl.bfloat16{written})" in text
