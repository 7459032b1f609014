"""Kernels that use NVIDIA's operations, one or a few each, for the rows of `rules/nvidia.py`."""

from __future__ import annotations

from textwrap import dedent

HEAD = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy as cp
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.language.nvidia.hopper import warpgroup_mma, warpgroup_mma_wait
from triton.experimental.gluon.language.nvidia.blackwell import TensorMemoryLayout, TensorMemoryScalesLayout
from triton.experimental.gluon.language.nvidia.blackwell import allocate_tensor_memory, tcgen05_commit, tcgen05_copy, tcgen05_mma
from triton.experimental.gluon.language.nvidia.blackwell import tcgen05_mma_scaled
from triton.experimental.gluon.language.nvidia.blackwell import tma as blackwell_tma
"""


def descriptor(element: str, shape: list[int], block: list[int], swizzle: int = 128) -> tuple[str, dict]:
    """The type of a host descriptor, and what a launch gives for it."""
    bits = {"fp16": 16, "fp32": 32, "u8": 8, "fp8e4nv": 8}[element]
    dtype = {"fp16": "float16", "fp32": "float32", "u8": "uint8", "fp8e4nv": "float8_e4m3fn"}[element]
    layout = f"NVMMASharedLayout(swizzle_byte_width={swizzle}, element_bitwidth={bits}, rank={len(block)}, transposed=False, "
    layout += "fp4_padded=False, cga_layout=[])"
    base = {"dtype": dtype, "shape": shape, "stride": [shape[1], 1], "storage": shape[0] * shape[1], "offset": 0}
    return f"tensordesc<{element}{block},{layout}>", {
        "descriptor": {"base": base, "shape": shape, "strides": [shape[1], 1]}
    }


def tensor(element: str, *shape: int) -> tuple[str, dict]:
    """The type of a pointer, and what a launch gives for it."""
    dtype = {"fp32": "float32", "fp16": "float16", "i32": "int32", "u8": "uint8"}[element]
    strides = [1]
    for extent in shape[:0:-1]:
        strides.insert(0, strides[0] * extent)
    storage = strides[0] * shape[0]
    return f"*{element}", {
        "tensor": {"dtype": dtype, "shape": list(shape), "stride": strides, "storage": storage, "offset": 0}
    }


TILE = dedent("""
    @gluon.jit
    def kernel(a, b, c):
        sa = gl.allocate_shared_memory(a.dtype, a.block_type.shape, a.layout)
        sb = gl.allocate_shared_memory(b.dtype, b.block_type.shape, b.layout)
        bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
        mbarrier.init(bar, count=1)
        m = gl.program_id(0) * 64
        layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16])
        acc = gl.zeros((64, 64), gl.float32, layout)
        phase = 0
        for k in range(0, a.shape[1], 64):
            mbarrier.expect(bar, a.block_type.nbytes + b.block_type.nbytes)
            tma.async_load(a, [m, k], bar, sa)
            tma.async_load(b, [k, 0], bar, sb)
            mbarrier.wait(bar, phase)
            phase ^= 1
            acc = warpgroup_mma(sa, sb, acc, is_async=True)
            acc = warpgroup_mma_wait(0, deps=(acc,))
        mbarrier.invalidate(bar)
        out = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
        out.store(acc.to(c.dtype))
        fence_async_shared()
        tma.async_store(c, [m, 0], out)
        tma.store_wait(pendings=0)
""")
TENSOR_MEMORY = dedent("""
    @gluon.jit
    def kernel(a, b, c, d):
        sa = gl.allocate_shared_memory(a.dtype, a.block_type.shape, a.layout)
        sb = gl.allocate_shared_memory(b.dtype, b.block_type.shape, b.layout)
        sc = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
        bars = gl.allocate_shared_memory(gl.int64, [3, 1], mbarrier.MBarrierLayout())
        for i in gl.static_range(3):
            mbarrier.init(bars.index(i), count=1)
        mbarrier.expect(bars.index(0), a.block_type.nbytes + b.block_type.nbytes + c.block_type.nbytes)
        tma.async_load(a, [0, 0], bars.index(0), sa)
        tma.async_load(b, [0, 0], bars.index(0), sb)
        tma.async_load(c, [0, 0], bars.index(0), sc)
        mbarrier.wait(bars.index(0), 0)
        layout: gl.constexpr = TensorMemoryLayout([128, 128], col_stride=1)
        acc = allocate_tensor_memory(gl.float32, [128, 128], layout)
        held: gl.constexpr = TensorMemoryLayout([128, 64], col_stride=1)
        lhs = allocate_tensor_memory(a.dtype, [128, 64], held)
        lhs.store(sa.load(lhs.get_reg_layout()))
        tcgen05_copy(sc, acc)
        tcgen05_mma(lhs, sb, acc)
        tcgen05_commit(bars.index(1))
        mbarrier.wait(bars.index(1), 0)
        mbarrier.arrive(bars.index(2), count=1)
        mbarrier.wait(bars.index(2), 0)
        out = gl.allocate_shared_memory(d.dtype, d.block_type.shape, d.layout)
        for half in gl.static_range(2):
            out.store(acc.slice(half * 64, 64).load().to(d.dtype))
            fence_async_shared()
            tma.async_store(d, [0, half * 64], out)
            tma.store_wait(pendings=0)
""")
ROWS = dedent("""
    @gluon.jit
    def kernel(x, y, rows):
        lane: gl.constexpr = gl.SliceLayout(0, gl.BlockedLayout([1, 4], [32, 1], [1, 4], [1, 0]))
        at = gl.load(rows + gl.arange(0, 32, lane))
        slot = gl.allocate_shared_memory(x.dtype, [32, 64], x.layout)
        bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
        mbarrier.init(bar, count=1)
        mbarrier.expect(bar, 32 * x.block_type.nbytes)
        blackwell_tma.async_gather(x, at, 0, bar, slot)
        mbarrier.wait(bar, 0)
        blackwell_tma.async_scatter(y, at, 64, slot)
        tma.store_wait(pendings=0)
""")
REDUCE = dedent("""
    @gluon.jit
    def kernel(x, y):
        slot = gl.allocate_shared_memory(x.dtype, x.block_type.shape, x.layout)
        bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
        mbarrier.init(bar, count=1)
        mbarrier.expect(bar, x.block_type.nbytes)
        tma.async_load(x, [gl.program_id(0) * 64, 0], bar, slot)
        mbarrier.wait(bar, 0)
        tma.async_atomic_add(y, [0, 0], slot)
        tma.store_wait(pendings=0)
""")
SCALED = dedent("""
    @gluon.jit
    def kernel(a, b, c, a_scale, b_scale):
        sa = gl.allocate_shared_memory(a.dtype, a.block_type.shape, a.layout)
        sb = gl.allocate_shared_memory(b.dtype, b.block_type.shape, b.layout)
        bars = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
        mbarrier.init(bars.index(0), count=1)
        mbarrier.init(bars.index(1), count=1)
        mbarrier.expect(bars.index(0), a.block_type.nbytes + b.block_type.nbytes)
        tma.async_load(a, [0, 0], bars.index(0), sa)
        tma.async_load(b, [0, 0], bars.index(0), sb)
        mbarrier.wait(bars.index(0), 0)
        scales: gl.constexpr = TensorMemoryScalesLayout()
        ta = allocate_tensor_memory(gl.uint8, [128, 4], scales)
        tb = allocate_tensor_memory(gl.uint8, [128, 4], scales)
        wide: gl.constexpr = gl.BlockedLayout([1, 1], [8, 4], [4, 1], [1, 0])
        at = gl.arange(0, 128, gl.SliceLayout(1, wide))[:, None] * 4 + gl.arange(0, 4, gl.SliceLayout(0, wide))[None, :]
        ta.store(gl.convert_layout(gl.load(a_scale + at), ta.get_reg_layout()))
        tb.store(gl.convert_layout(gl.load(b_scale + at), tb.get_reg_layout()))
        acc = allocate_tensor_memory(gl.float32, [128, 128], TensorMemoryLayout([128, 128], col_stride=1))
        tcgen05_mma_scaled(sa, sb.permute((1, 0)), acc, ta, tb, "e4m3", "e4m3", use_acc=False)
        tcgen05_commit(bars.index(1))
        mbarrier.wait(bars.index(1), 0)
        out = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
        out.store(acc.load())
        fence_async_shared()
        tma.async_store(c, [0, 0], out)
        tma.store_wait(pendings=0)
""")
COPIES = dedent("""
    @gluon.jit
    def kernel(x, y):
        layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
        lane = gl.arange(0, 128, layout)
        slot = gl.allocate_shared_memory(x.dtype.element_ty, [128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
        bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
        mbarrier.init(bar, count=128)
        cp.async_load(slot, x + lane)
        cp.mbarrier_arrive(bar, increment_count=False)
        mbarrier.wait(bar, 0)
        gl.store(y + lane, slot.load(layout))
""")
MADE = dedent("""
    @gluon.jit
    def kernel(x, y, n, stride):
        layout: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=32, rank=2)
        dx = tma.make_tensor_descriptor(x, [n, 64], [stride, 1], [64, 32], layout)
        dy = tma.make_tensor_descriptor(y, [n, 64], [stride, 1], [64, 32], layout)
        slot = gl.allocate_shared_memory(gl.float32, [64, 32], layout)
        bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
        mbarrier.init(bar, count=1)
        mbarrier.expect(bar, dx.block_type.nbytes)
        tma.async_load(dx, [gl.program_id(0) * 64, 0], bar, slot)
        mbarrier.wait(bar, 0)
        tma.async_store(dy, [gl.program_id(0) * 64, 32], slot)
        tma.store_wait(pendings=0)
""")

# name -> (source, target, arguments, programs)
EXAMPLES: dict[str, tuple[str, str, dict, list[int]]] = {
    "tile": (
        TILE, "cuda:90",
        {"a": descriptor("fp16", [256, 320], [64, 64]), "b": descriptor("fp16", [320, 64], [64, 64]),
         "c": descriptor("fp16", [256, 64], [64, 64])}, [4],
    ),
    "tensor memory": (
        TENSOR_MEMORY, "cuda:100",
        {"a": descriptor("fp16", [128, 64], [128, 64]), "b": descriptor("fp16", [64, 128], [64, 128]),
         "c": descriptor("fp32", [128, 128], [128, 128]), "d": descriptor("fp16", [128, 128], [128, 64])}, [1],
    ),
    "rows": (
        ROWS, "cuda:100",
        {"x": descriptor("fp16", [256, 128], [1, 64]), "y": descriptor("fp16", [256, 128], [1, 64]),
         "rows": tensor("i32", 32)}, [1],
    ),
    "reduce": (
        REDUCE, "cuda:90", {"x": descriptor("fp32", [256, 32], [64, 32]), "y": descriptor("fp32", [64, 32], [64, 32])}, [4],
    ),
    "scaled": (
        SCALED, "cuda:100",
        {"a": descriptor("fp8e4nv", [128, 128], [128, 128]), "b": descriptor("fp8e4nv", [128, 128], [128, 128]),
         "c": descriptor("fp32", [128, 128], [128, 128]), "a_scale": tensor("u8", 128, 4), "b_scale": tensor("u8", 128, 4)}, [1],
    ),
    "copies": (COPIES, "cuda:90", {"x": tensor("fp32", 128), "y": tensor("fp32", 128)}, [1]),
    "made": (
        MADE, "cuda:90",
        {"x": tensor("fp32", 256, 64), "y": tensor("fp32", 256, 64), "n": ("i32", 256), "stride": ("i32", 64)}, [4],
    ),
}  # fmt: skip
