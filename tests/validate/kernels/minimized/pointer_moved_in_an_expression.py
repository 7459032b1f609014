import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, c_ptr, n, B: tl.constexpr):
    r = tl.arange(0, B)
    o = r[:, None] * B + r[None, :]
    acc = tl.zeros((B, B), tl.float32)
    ap = a_ptr + o
    k = o
    for i in range(n):
        a = tl.load(ap := ap + B)
        b = tl.load(a_ptr + (k := k + 2 * B))
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + o, acc + tl.load(ap) + k)
