import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, n, B: tl.constexpr):
    r = tl.arange(0, B)
    o = r[:, None] * B + r[None, :]
    dt = a_ptr.dtype.element_ty
    acc = tl.full([B, B], value=0, dtype=tl.float32)
    for i in range(n):
        a = tl.load(a_ptr + i * B + o)
        if a.dtype == tl.float16:
            a = (a * 2).to(dt)
        acc = tl.dot(a, tl.load(b_ptr + o + i * a.shape[0]), acc=acc, input_precision="ieee")
    tl.store(c_ptr + o, acc)
