import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, n, B: tl.constexpr):
    r = tl.arange(0, B)
    o = r[:, None] * B + r[None, :]
    ps = (a_ptr + o, b_ptr + o)
    accs = (tl.zeros((B, B), tl.float32), tl.zeros((B, B), tl.float32))
    x, y = accs
    for i in range(n):
        a = tl.load(ps[0] + i * B)
        b = tl.load(ps[1] + i * B * B)
        x, y = tl.dot(a, b, y), x + i
    tl.store(c_ptr + o, x - 2 * y)
