import triton
import triton.language as tl


@triton.jit
def part(acc, p, K, step, B: tl.constexpr):
    for kk in range(K, 0, -B):
        x = tl.load(p)
        p += step * B
        acc = tl.dot(x, tl.trans(x), acc)
    return acc, p


@triton.jit
def kernel(a_ptr, c_ptr, mode, K, B: tl.constexpr):
    r = tl.arange(0, B)
    o = r[:, None] * B + r[None, :]
    acc = tl.zeros((B, B), tl.float32)
    p = a_ptr + o
    if mode != 2:
        acc, p = part(acc, p, K, B, B)
    tl.store(c_ptr + tl.program_id(0) * 2048 + o, acc + tl.load(p))
