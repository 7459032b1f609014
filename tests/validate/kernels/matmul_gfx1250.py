"""C = A @ B for gfx1250: tiles come through tensor descriptors into a ring of LDS slots."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna5
from triton.experimental.gluon.language.amd.cdna5 import tdm


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
    mma: gl.constexpr = gl.amd.AMDWMMALayout(3, True, [[0, 1], [1, 0]], [], [16, 16, 32])
    a_operand: gl.constexpr = gl.DotOperandLayout(0, mma, 8)
    b_operand: gl.constexpr = gl.DotOperandLayout(1, mma, 8)
    a_shared: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[BLOCK_K, 8]], [BLOCK_M, BLOCK_K], [1, 0])
    b_shared: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[BLOCK_N, 16]], [BLOCK_K, BLOCK_N], [1, 0])

    pid = gl.program_id(axis=0)
    num_pid_n = gl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    first_pid_m = pid // num_pid_in_group * GROUP_M
    group_size_m = min(gl.cdiv(M, BLOCK_M) - first_pid_m, GROUP_M)
    pid_m = first_pid_m + (pid % num_pid_in_group) % group_size_m
    pid_n = (pid % num_pid_in_group) // group_size_m

    a_desc = tdm.make_tensor_descriptor(a_ptr, [M, K], [stride_am, 1], [BLOCK_M, BLOCK_K], a_shared)
    b_desc = tdm.make_tensor_descriptor(b_ptr, [K, N], [stride_bk, 1], [BLOCK_K, BLOCK_N], b_shared)
    a_smem = gl.allocate_shared_memory(a_ptr.dtype.element_ty, [NUM_BUFFERS, BLOCK_M, BLOCK_K], a_shared)
    b_smem = gl.allocate_shared_memory(b_ptr.dtype.element_ty, [NUM_BUFFERS, BLOCK_K, BLOCK_N], b_shared)

    for t in gl.static_range(NUM_BUFFERS - 1):
        tdm.async_load(a_desc, [pid_m * BLOCK_M, t * BLOCK_K], a_smem.index(t))
        tdm.async_load(b_desc, [t * BLOCK_K, pid_n * BLOCK_N], b_smem.index(t))
    acc = gl.zeros((BLOCK_M, BLOCK_N), dtype=gl.float32, layout=mma)
    for k in range(0, gl.cdiv(K, BLOCK_K)):
        ahead = k + NUM_BUFFERS - 1
        tdm.async_load(a_desc, [pid_m * BLOCK_M, ahead * BLOCK_K], a_smem.index(ahead % NUM_BUFFERS))
        tdm.async_load(b_desc, [ahead * BLOCK_K, pid_n * BLOCK_N], b_smem.index(ahead % NUM_BUFFERS))
        tdm.async_wait((NUM_BUFFERS - 1) * 2)
        a = a_smem.index(k % NUM_BUFFERS).load(a_operand)
        b = b_smem.index(k % NUM_BUFFERS).load(b_operand)
        acc = cdna5.wmma(a, b, acc)
    tdm.async_wait(0)
    c = acc.to(gl.float16)

    offs_cm = pid_m * BLOCK_M + gl.arange(0, BLOCK_M, gl.SliceLayout(1, mma))
    offs_cn = pid_n * BLOCK_N + gl.arange(0, BLOCK_N, gl.SliceLayout(0, mma))
    c_offs = stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    cdna5.buffer_store(c, c_ptr, c_offs, mask=c_mask)
