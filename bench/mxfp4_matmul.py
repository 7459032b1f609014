"""A product of fp4 matrices with a scale for every 32 elements along K (OCP MX), as one writes it in Triton: no tile is arranged beforehand."""

import triton
import triton.language as tl


@triton.jit
def mxfp4_matmul_kernel(
    a_ptr, b_ptr, c_ptr, a_scale_ptr, b_scale_ptr,
    M, N, K,
    stride_am, stride_bn, stride_sa, stride_sb, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """C = A @ B.T. Two elements in a byte, along K; K is a multiple of BLOCK_K, M and N of BLOCK_M and BLOCK_N."""
    pid = tl.program_id(0)
    columns = tl.cdiv(N, BLOCK_N)
    rows_m = (pid // columns) * BLOCK_M + tl.arange(0, BLOCK_M)
    rows_n = (pid % columns) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K // 2)
    groups = tl.arange(0, BLOCK_K // 32)
    a_ptrs = a_ptr + rows_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + rows_n[None, :] * stride_bn + offs_k[:, None]
    a_scale_ptrs = a_scale_ptr + rows_m[:, None] * stride_sa + groups[None, :]
    b_scale_ptrs = b_scale_ptr + rows_n[:, None] * stride_sb + groups[None, :]
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        a_scale = tl.load(a_scale_ptrs)
        b_scale = tl.load(b_scale_ptrs)
        acc = tl.dot_scaled(a, a_scale, "e2m1", b, b_scale, "e2m1", acc)
        a_ptrs += BLOCK_K // 2
        b_ptrs += BLOCK_K // 2
        a_scale_ptrs += BLOCK_K // 32
        b_scale_ptrs += BLOCK_K // 32
    tl.store(c_ptr + rows_m[:, None] * stride_cm + rows_n[None, :], acc.to(tl.bfloat16))
