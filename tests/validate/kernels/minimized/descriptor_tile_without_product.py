import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, c_ptr, K, sh, B: tl.constexpr):
    r = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[40, 96], strides=[96, 1], block_shape=[B, B])
    for k0 in range(0, K, B):
        a = a_desc.load([-sh, k0])
        acc = acc * 0.5 + a.to(tl.float32)
    tl.store(c_ptr + tl.program_id(0) * 2048 + r[:, None] * B + r[None, :], acc)
