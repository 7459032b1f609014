import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr):
    r = tl.arange(0, B)
    tile = r[:, None] * B + r[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptr + tile + k * B)
        b = tl.load(b_ptr + tile + k * B)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + tl.program_id(0) * B * B + tile, acc)
