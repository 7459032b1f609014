import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, s, B: tl.constexpr):
    o = tl.arange(0, B)
    p = x_ptr + 1024
    y = tl.load(p + ((o - s) >> 3)) - tl.load(p + ((o + s) & (o - s)))
    tl.store(y_ptr + o, y)
