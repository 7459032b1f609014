import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, n, trips, B: tl.constexpr):
    r = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    w = tl.make_tensor_descriptor(a_ptr, shape=[n, 64], strides=[64, 1], block_shape=[B, B])
    d = tl.make_tensor_descriptor(b_ptr, shape=[n, 64], strides=[64, 1], block_shape=[B, B])
    for i in range(trips):
        d = tl.make_tensor_descriptor(b_ptr + i * 512, shape=[n - i, 64], strides=[64, 1], block_shape=[B, B])
        acc = tl.dot(d.load([0, i]), w.load([i, 0]), acc)
    tl.store(c_ptr + r[:, None] * B + r[None, :], acc)
