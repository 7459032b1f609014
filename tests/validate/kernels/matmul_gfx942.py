"""C = A @ B for gfx942: tiles go through registers into two LDS slots."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna3


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
):
    mma: gl.constexpr = gl.amd.AMDMFMALayout(version=3, instr_shape=[32, 32, 8], transposed=True, warps_per_cta=[2, 2])
    a_operand: gl.constexpr = gl.DotOperandLayout(0, mma, 4)
    b_operand: gl.constexpr = gl.DotOperandLayout(1, mma, 4)
    a_load: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    b_load: gl.constexpr = gl.BlockedLayout([1, 8], [4, 16], [4, 1], [1, 0])
    a_shared: gl.constexpr = gl.SwizzledSharedLayout(4, 1, 16, [1, 0])
    b_shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])

    pid = gl.program_id(axis=0)
    num_pid_n = gl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    first_pid_m = pid // num_pid_in_group * GROUP_M
    group_size_m = min(gl.cdiv(M, BLOCK_M) - first_pid_m, GROUP_M)
    pid_m = first_pid_m + (pid % num_pid_in_group) % group_size_m
    pid_n = (pid % num_pid_in_group) // group_size_m

    offs_am = (pid_m * BLOCK_M + gl.arange(0, BLOCK_M, gl.SliceLayout(1, a_load))) % M
    offs_bn = (pid_n * BLOCK_N + gl.arange(0, BLOCK_N, gl.SliceLayout(0, b_load))) % N
    offs_k_a = gl.arange(0, BLOCK_K, gl.SliceLayout(0, a_load))
    offs_k_b = gl.arange(0, BLOCK_K, gl.SliceLayout(1, b_load))
    a_offs = offs_am[:, None] * stride_am + offs_k_a[None, :] * stride_ak
    b_offs = offs_k_b[:, None] * stride_bk + offs_bn[None, :] * stride_bn
    a_smem = gl.allocate_shared_memory(a_ptr.dtype.element_ty, [2, BLOCK_M, BLOCK_K], a_shared)
    b_smem = gl.allocate_shared_memory(b_ptr.dtype.element_ty, [2, BLOCK_K, BLOCK_N], b_shared)

    a_smem.index(0).store(cdna3.buffer_load(a_ptr, a_offs, mask=offs_k_a[None, :] < K))
    b_smem.index(0).store(cdna3.buffer_load(b_ptr, b_offs, mask=offs_k_b[:, None] < K))
    acc = gl.zeros((BLOCK_M, BLOCK_N), dtype=gl.float32, layout=mma)
    for k in range(0, gl.cdiv(K, BLOCK_K)):
        a_ptr += BLOCK_K * stride_ak
        b_ptr += BLOCK_K * stride_bk
        left = K - (k + 1) * BLOCK_K
        a_next = cdna3.buffer_load(a_ptr, a_offs, mask=offs_k_a[None, :] < left)
        b_next = cdna3.buffer_load(b_ptr, b_offs, mask=offs_k_b[:, None] < left)
        a = a_smem.index(k % 2).load(a_operand)
        b = b_smem.index(k % 2).load(b_operand)
        acc = cdna3.mfma(a, b, acc)
        a_smem.index((k + 1) % 2).store(a_next)
        b_smem.index((k + 1) % 2).store(b_next)
    c = acc.to(gl.float16)

    offs_cm = pid_m * BLOCK_M + gl.arange(0, BLOCK_M, gl.SliceLayout(1, mma))
    offs_cn = pid_n * BLOCK_N + gl.arange(0, BLOCK_N, gl.SliceLayout(0, mma))
    c_offs = stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    cdna3.buffer_store(c, c_ptr, c_offs, mask=c_mask)
