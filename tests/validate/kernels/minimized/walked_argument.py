import triton
import triton.language as tl


@triton.jit
def part(m, K, acc, r, a_ptr, b_ptr, B: tl.constexpr, MARGIN: tl.constexpr):
    for kk in range(0, K, B):
        a = tl.load(a_ptr + MARGIN + r[:, None] * 256 + m[None, :])
        b = tl.load(b_ptr + MARGIN + m[:, None] * B + r[None, :])
        m += B
        acc = tl.dot(a, b, acc)
    return m, acc


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr, MARGIN: tl.constexpr):
    r = tl.arange(0, B)
    m = r
    acc = tl.zeros((B, B), tl.float32)
    m, acc = part(m, K, acc, r, a_ptr, b_ptr, B, MARGIN)
    cp = c_ptr + MARGIN + (r[:, None] * B + r[None, :])
    tl.store(cp, acc + m[None, :])
