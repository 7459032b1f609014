import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, trips, c_ptr, B: tl.constexpr, MARGIN: tl.constexpr, ROW: tl.constexpr):
    pid = tl.program_id(0)
    r = tl.arange(0, B)
    ap = a_ptr + MARGIN + pid * 8
    bp = b_ptr + MARGIN + pid * 8 + (r[:, None] * ROW + r[None, :])
    acc = tl.zeros((B, B), dtype=tl.int32)
    for t in range(0, trips):
        ap = a_ptr + MARGIN + pid * 8
        ap += t * B
        a = tl.load(ap + (r[:, None] * ROW + r[None, :]))
        b = tl.load(bp)
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
    ap -= B
    acc += tl.load(ap + (r[:, None] * ROW + r[None, :])).to(tl.int32)
    tl.store(c_ptr + MARGIN + pid * 4096 + (r[:, None] * B + r[None, :]), acc)
