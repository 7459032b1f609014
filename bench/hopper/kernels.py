"""Gluon kernels for NVIDIA's Hopper GPUs: what `bench/device_fixtures.py` runs as they are beside their translations.

Copies with commit groups, the tensor memory accelerator with mbarriers, warp-group products in a ring of slots, partitions that talk
through barriers.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit
def add_one(x_ptr, y_ptr, n, BLOCK: gl.constexpr, RING: gl.constexpr):
    """y = x + 1, through a ring of slots that copies fill ahead."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    lane = gl.arange(0, BLOCK, layout)
    ring = gl.allocate_shared_memory(x_ptr.dtype.element_ty, [RING, BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    for i in gl.static_range(RING - 1):
        at = i * BLOCK + lane
        async_copy.async_load(ring.index(i), x_ptr + at, mask=at < n)
        async_copy.commit_group()
    for i in range(gl.cdiv(n, BLOCK)):
        at = (i + RING - 1) * BLOCK + lane
        async_copy.async_load(ring.index((i + RING - 1) % RING), x_ptr + at, mask=at < n)
        async_copy.commit_group()
        async_copy.wait_group(RING - 1)
        here = i * BLOCK + lane
        gl.store(y_ptr + here, ring.index(i % RING).load(layout) + 1.0, mask=here < n)


@gluon.jit
def transpose(x, y):
    """y is the transpose of x: a tile in, its transpose out."""
    BM: gl.constexpr = x.block_type.shape[0]
    BN: gl.constexpr = x.block_type.shape[1]
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    tile = gl.allocate_shared_memory(x.dtype, [BM, BN], x.layout)
    turned = gl.allocate_shared_memory(y.dtype, [BN, BM], y.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    m = gl.program_id(0) * BM
    n = gl.program_id(1) * BN
    mbarrier.expect(full, x.block_type.nbytes)
    tma.async_load(x, [m, n], full, tile)
    mbarrier.wait(full, 0)
    mbarrier.invalidate(full)
    turned.store(gl.permute(tile.load(layout), [1, 0]))
    fence_async_shared()
    tma.async_store(y, [n, m], turned)
    tma.store_wait(pendings=0)


@gluon.jit
def fill(a, b, m, n, k, slot, full, ra, rb):
    mbarrier.expect(full.index(slot), a.block_type.nbytes + b.block_type.nbytes)
    tma.async_load(a, [m, k], full.index(slot), ra.index(slot))
    tma.async_load(b, [k, n], full.index(slot), rb.index(slot))


@gluon.jit
def store_tile(c, m, n, acc):
    out = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
    out.store(acc.to(c.dtype))
    fence_async_shared()
    tma.async_store(c, [m, n], out)
    tma.store_wait(pendings=0)


@gluon.jit
def matmul(a, b, c, RING: gl.constexpr):
    """c = a @ b: a ring of slots that the tensor memory accelerator fills while warp groups multiply."""
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
    acc = gl.zeros((BM, BN), gl.float32, layout)
    for i in gl.static_range(RING - 1):
        fill(a, b, m, n, i * BK, i, full, ra, rb)
    steps = gl.cdiv(a.shape[1], BK)
    for i in range(steps):
        mbarrier.wait(full.index(i % RING), i // RING & 1)
        acc = warpgroup_mma(ra.index(i % RING), rb.index(i % RING), acc, is_async=True)
        acc = warpgroup_mma_wait(0, deps=(acc,))
        ahead = i + RING - 1
        if ahead < steps:
            fill(a, b, m, n, ahead * BK, ahead % RING, full, ra, rb)
    for i in gl.static_range(RING):
        mbarrier.invalidate(full.index(i))
    store_tile(c, m, n, acc)


@gluon.jit
def loads(a, b, c, ra, rb, full, free, RING: gl.constexpr):
    BM: gl.constexpr = a.block_type.shape[0]
    BK: gl.constexpr = a.block_type.shape[1]
    BN: gl.constexpr = b.block_type.shape[1]
    m = gl.program_id(0) * BM
    n = gl.program_id(1) * BN
    for i in range(gl.cdiv(a.shape[1], BK)):
        mbarrier.wait(free.index(i % RING), i // RING & 1 ^ 1)
        fill(a, b, m, n, i * BK, i % RING, full, ra, rb)


@gluon.jit
def products(a, b, c, ra, rb, full, free, RING: gl.constexpr):
    BM: gl.constexpr = a.block_type.shape[0]
    BK: gl.constexpr = a.block_type.shape[1]
    BN: gl.constexpr = b.block_type.shape[1]
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BN, 16])
    acc = gl.zeros((BM, BN), gl.float32, layout)
    for i in range(gl.cdiv(a.shape[1], BK)):
        mbarrier.wait(full.index(i % RING), i // RING & 1)
        acc = warpgroup_mma(ra.index(i % RING), rb.index(i % RING), acc, is_async=True)
        acc = warpgroup_mma_wait(0, deps=(acc,))
        mbarrier.arrive(free.index(i % RING), count=1)
    store_tile(c, gl.program_id(0) * BM, gl.program_id(1) * BN, acc)


@gluon.jit
def specialized_matmul(a, b, c, RING: gl.constexpr):
    """c = a @ b: one warp copies, four multiply."""
    ra = gl.allocate_shared_memory(a.dtype, [RING] + a.block_type.shape, a.layout)
    rb = gl.allocate_shared_memory(b.dtype, [RING] + b.block_type.shape, b.layout)
    full = gl.allocate_shared_memory(gl.int64, [RING, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [RING, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(RING):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(free.index(i), count=1)
    given = (a, b, c, ra, rb, full, free, RING)
    gl.warp_specialize([(products, given), (loads, given)], [1], [24])
