import triton
import triton.language as tl


@triton.jit
def up(x, by):
    return x + by


@triton.jit
def down(x, by):
    return x - by


@triton.jit
def walk(ap, n, B: tl.constexpr, move: tl.constexpr, times: tl.constexpr = 2):
    acc = tl.zeros((B, B), tl.float32)
    for i in range(n):
        a = tl.load(ap)
        acc = tl.dot(a, a, acc)
        for j in tl.static_range(times):
            ap = move(ap, 16)
    return acc, ap


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, n, B: tl.constexpr):
    r = tl.arange(0, B)
    o = r[:, None] * B + r[None, :]
    acc, p = walk(a_ptr + o + 1024, n, B, up)
    acc2, p = walk(p, n, B, down, 1)
    tl.store(c_ptr + o, acc - acc2 + tl.load(p))
