"""C = A @ B with grouped program order: the source kernel of the example."""

# Written by hand: what a translation of matmul.py for gfx950 (CDNA4, wave64, 4 warps) should look like.
# Assumes: fp16 A, B and C below 2 GiB each; stride_ak == stride_bn == stride_cn == 1;
# pointers, M, N, K and the other strides divisible by 16; tile 128 x 128 x 64.
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna4
from triton.experimental.gluon.language.amd.cdna4 import async_copy


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
    # Matrix cores: 32x32x16 MFMA, warps 2 x 2 over the tile.
    mma: gl.constexpr = gl.amd.AMDMFMALayout(version=4, instr_shape=[32, 32, 16], transposed=True, warps_per_cta=[2, 2])
    a_operand: gl.constexpr = gl.DotOperandLayout(0, mma, 8)
    b_operand: gl.constexpr = gl.DotOperandLayout(1, mma, 8)
    # LDS: padded after each 1 KiB that one wave writes, rows permuted against bank conflicts.
    a_shared: gl.constexpr = gl.PaddedSharedLayout(
        [[512, 8]],
        [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [64, 0], [32, 0], [16, 0], [1, 0], [2, 0], [4, 0], [8, 0]],
        [],
        [128, 64],
    )
    b_shared: gl.constexpr = gl.PaddedSharedLayout(
        [[512, 32]],
        [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [16, 0], [32, 0], [1, 0], [2, 0], [4, 0], [8, 0]],
        [],
        [64, 128],
    )
    # Global reads: 16 bytes per lane, in the order in which a wave fills LDS.
    a_load: gl.constexpr = gl.DistributedLinearLayout(
        [[0, 1], [0, 2], [0, 4], [4, 0], [8, 0]],
        [[0, 8], [0, 16], [0, 32], [64, 0], [32, 0], [16, 0]],
        [[1, 0], [2, 0]],
        [],
        [128, 64],
    )
    b_load: gl.constexpr = gl.DistributedLinearLayout(
        [[0, 1], [0, 2], [0, 4], [4, 0], [8, 0]],
        [[0, 8], [0, 16], [0, 32], [0, 64], [16, 0], [32, 0]],
        [[1, 0], [2, 0]],
        [],
        [64, 128],
    )
    # Global writes: 16 bytes per lane.
    c_store: gl.constexpr = gl.DistributedLinearLayout(
        [[0, 1], [0, 2], [0, 4], [0, 16], [0, 64], [64, 0]],
        [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]],
        [[0, 32], [32, 0]],
        [],
        [128, 128],
    )

    # Programs walk C in groups of GROUP_M rows so that B tiles stay in L2.
    pid = gl.program_id(axis=0)
    num_pid_m = gl.cdiv(M, BLOCK_M)
    num_pid_n = gl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    pid_m = first_pid_m + (pid % num_pid_in_group) % group_size_m
    pid_n = (pid % num_pid_in_group) // group_size_m

    offs_am = (pid_m * BLOCK_M + gl.arange(0, BLOCK_M, gl.SliceLayout(1, a_load))) % M
    offs_bn = (pid_n * BLOCK_N + gl.arange(0, BLOCK_N, gl.SliceLayout(0, b_load))) % N
    offs_k_a = gl.arange(0, BLOCK_K, gl.SliceLayout(0, a_load))
    offs_k_b = gl.arange(0, BLOCK_K, gl.SliceLayout(1, b_load))
    a_offs = offs_am[:, None] * stride_am + offs_k_a[None, :] * stride_ak
    b_offs = offs_k_b[:, None] * stride_bk + offs_bn[None, :] * stride_bn

    a_smem = gl.allocate_shared_memory(a_ptr.dtype.element_ty, [NUM_BUFFERS, BLOCK_M, BLOCK_K], a_shared)
    b_smem = gl.allocate_shared_memory(b_ptr.dtype.element_ty, [NUM_BUFFERS, BLOCK_K, BLOCK_N], b_shared)

    # Prologue: one commit group per K tile. Tiles past K are masked out and still counted.
    for t in gl.static_range(NUM_BUFFERS - 1):
        async_copy.buffer_load_to_shared(a_smem.index(t), a_ptr, a_offs, mask=offs_k_a[None, :] < K - t * BLOCK_K)
        async_copy.buffer_load_to_shared(b_smem.index(t), b_ptr, b_offs, mask=offs_k_b[:, None] < K - t * BLOCK_K)
        async_copy.commit_group()
        a_ptr += BLOCK_K * stride_ak
        b_ptr += BLOCK_K * stride_bk

    acc = gl.zeros((BLOCK_M, BLOCK_N), dtype=gl.float32, layout=mma)
    for k in range(0, gl.cdiv(K, BLOCK_K)):
        # Tile k has landed, and every warp is done with the slot that the next copy fills.
        async_copy.wait_group(NUM_BUFFERS - 2)
        ahead = k + NUM_BUFFERS - 1
        # The last tile may be partial.
        async_copy.buffer_load_to_shared(
            a_smem.index(ahead % NUM_BUFFERS), a_ptr, a_offs, mask=offs_k_a[None, :] < K - ahead * BLOCK_K
        )
        async_copy.buffer_load_to_shared(
            b_smem.index(ahead % NUM_BUFFERS), b_ptr, b_offs, mask=offs_k_b[:, None] < K - ahead * BLOCK_K
        )
        async_copy.commit_group()
        a = async_copy.load_shared_relaxed(a_smem.index(k % NUM_BUFFERS), a_operand)
        b = async_copy.load_shared_relaxed(b_smem.index(k % NUM_BUFFERS), b_operand)
        acc = cdna4.mfma(a, b, acc)
        a_ptr += BLOCK_K * stride_ak
        b_ptr += BLOCK_K * stride_bk
    # The copies past the last tile must not land in LDS that the conversion below may use.
    async_copy.wait_group(0)
    c = gl.convert_layout(acc.to(gl.float16), c_store)

    offs_cm = pid_m * BLOCK_M + gl.arange(0, BLOCK_M, gl.SliceLayout(1, c_store))
    offs_cn = pid_n * BLOCK_N + gl.arange(0, BLOCK_N, gl.SliceLayout(0, c_store))
    c_offs = stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    cdna4.buffer_store(c, c_ptr, c_offs, mask=c_mask)
