import triton
import triton.language as tl


@triton.jit
def add(a, b): return a + b


@triton.jit
def step(ap, bp, acc, B: tl.constexpr): a = tl.load(ap); acc = tl.dot(a, tl.load(bp), acc); return ap + B, bp + 1, acc


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, n, B: tl.constexpr):
    "doc"; r = tl.arange(0, B)
    o = r[:, None] * B + r[None, :];
    acc = tl.zeros((B, B), tl.float32); ap = a_ptr + o
    bp = b_ptr + o
    for i in range(n):
        ap, bp, acc = step(ap, bp, acc, B); acc = add(acc, i)
        if i > 1: acc = add(acc, 1)  # odd
        elif i == 1: acc = add(acc, 2); ap = add(ap, 16)
        else: acc *= 2
    while n > 0: n -= 1; acc += n
    tl.store(c_ptr + o, acc); tl.store(c_ptr + 1024 + o, tl.load(ap))
