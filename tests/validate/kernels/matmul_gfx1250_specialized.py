"""C = A @ B for gfx1250: one group of warps copies tiles, another multiplies; mbarriers between them."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna5
from triton.experimental.gluon.language.amd.cdna5 import mbarrier, tdm


@gluon.jit
def copy_tiles(
    a_desc, b_desc, a_smem, b_smem, ready, empty, row, column, K, BLOCK_K: gl.constexpr, NUM_BUFFERS: gl.constexpr
):
    for k in range(0, gl.cdiv(K, BLOCK_K)):
        slot = k % NUM_BUFFERS
        # A slot is free from the start and after each time that the multiplier has read it.
        mbarrier.wait(empty.index(slot), ((k // NUM_BUFFERS) & 1) ^ 1)
        tdm.async_load(a_desc, [row, k * BLOCK_K], a_smem.index(slot), mbarrier=ready.index(slot))
        tdm.async_load(b_desc, [k * BLOCK_K, column], b_smem.index(slot), mbarrier=ready.index(slot))


@gluon.jit
def multiply_tiles(
    a_smem,
    b_smem,
    ready,
    empty,
    c_ptr,
    row,
    column,
    M,
    N,
    K,
    stride_cm,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    NUM_BUFFERS: gl.constexpr,
):
    mma: gl.constexpr = gl.amd.AMDWMMALayout(3, True, [[0, 1], [1, 0]], [], [16, 16, 32])
    a_operand: gl.constexpr = gl.DotOperandLayout(0, mma, 8)
    b_operand: gl.constexpr = gl.DotOperandLayout(1, mma, 8)
    acc = gl.zeros((BLOCK_M, BLOCK_N), dtype=gl.float32, layout=mma)
    for k in range(0, gl.cdiv(K, BLOCK_K)):
        slot = k % NUM_BUFFERS
        mbarrier.wait(ready.index(slot), (k // NUM_BUFFERS) & 1)
        a = a_smem.index(slot).load(a_operand)
        b = b_smem.index(slot).load(b_operand)
        acc = cdna5.wmma(a, b, acc)
        mbarrier.arrive(empty.index(slot))
    c = acc.to(gl.float16)
    offs_cm = row + gl.arange(0, BLOCK_M, gl.SliceLayout(1, mma))
    offs_cn = column + gl.arange(0, BLOCK_N, gl.SliceLayout(0, mma))
    c_offs = stride_cm * offs_cm[:, None] + offs_cn[None, :]
    cdna5.buffer_store(c, c_ptr, c_offs, mask=(offs_cm[:, None] < M) & (offs_cn[None, :] < N))


@gluon.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    GROUP_M: gl.constexpr,
    NUM_BUFFERS: gl.constexpr = 2,
):
    a_shared: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[BLOCK_K, 8]], [BLOCK_M, BLOCK_K], [1, 0])
    b_shared: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[BLOCK_N, 16]], [BLOCK_K, BLOCK_N], [1, 0])
    pid = gl.program_id(axis=0)
    num_pid_n = gl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    first_pid_m = pid // num_pid_in_group * GROUP_M
    group_size_m = min(gl.cdiv(M, BLOCK_M) - first_pid_m, GROUP_M)
    row = (first_pid_m + (pid % num_pid_in_group) % group_size_m) * BLOCK_M
    column = (pid % num_pid_in_group) // group_size_m * BLOCK_N

    a_desc = tdm.make_tensor_descriptor(a_ptr, [M, K], [stride_am, 1], [BLOCK_M, BLOCK_K], a_shared)
    b_desc = tdm.make_tensor_descriptor(b_ptr, [K, N], [stride_bk, 1], [BLOCK_K, BLOCK_N], b_shared)
    a_smem = gl.allocate_shared_memory(a_ptr.dtype.element_ty, [NUM_BUFFERS, BLOCK_M, BLOCK_K], a_shared)
    b_smem = gl.allocate_shared_memory(b_ptr.dtype.element_ty, [NUM_BUFFERS, BLOCK_K, BLOCK_N], b_shared)
    ready = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(NUM_BUFFERS):
        mbarrier.init(ready.index(i), 2 * 4)
        mbarrier.init(empty.index(i), 4 * 32)
    gl.barrier()
    gl.warp_specialize(
        [
            (
                multiply_tiles,
                (
                    a_smem,
                    b_smem,
                    ready,
                    empty,
                    c_ptr,
                    row,
                    column,
                    M,
                    N,
                    K,
                    stride_cm,
                    BLOCK_M,
                    BLOCK_N,
                    BLOCK_K,
                    NUM_BUFFERS,
                ),
            ),
            (copy_tiles, (a_desc, b_desc, a_smem, b_smem, ready, empty, row, column, K, BLOCK_K, NUM_BUFFERS)),
        ],
        [4],
        [64],
    )
