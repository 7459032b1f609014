import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, c_ptr, n, mode, B: tl.constexpr):
    r = tl.arange(0, B)
    o = r[:, None] * B + r[None, :]
    acc = tl.zeros((B, B), tl.float32)
    m = n
    for i in range(m):
        a = tl.load(a_ptr + i * B + o)
        acc = tl.dot(a, a, acc)
        if mode == 2:
            m -= 1
    tl.store(c_ptr + o, acc + m)
