"""Matrix products in loops of several shapes, and attention."""

from __future__ import annotations

from kernelgen.draw import Draw, RandomKernel, kernel_text, tensor
from kernelgen.tiles import BINARY, INTEGER, UNARY, chains, smaller, specified


def products(draw: Draw) -> RandomKernel:
    """A matmul loop with a K tail and an epilogue."""
    kind = draw.pick("*fp16", "*bf16")
    bm, bn, bk = (draw.pick(*sizes) for sizes in ([32, 64], [32, 64, 128], [32, 64]))
    m, n = (bm * draw.number(1, 2) - draw.pick(0, 8), bn + draw.pick(0, 8))
    k = bk * draw.number(0, 3) + draw.pick(0, 8, 16)
    k = max(k, 8)
    epilogue, last = chains(draw, ["acc"], (UNARY, BINARY), draw.number(0, 2))
    mask = draw.chance(0.5) or k % bk
    left = "mask=kk[None, :] < K - t * BK, other=0.0" if mask else ""
    right = "mask=kk[:, None] < K - t * BK, other=0.0" if mask else ""
    body = [
        "i = (tl.program_id(0) * BM + tl.arange(0, BM)) % M",
        "j = (tl.program_id(1) * BN + tl.arange(0, BN)) % N",
        "kk = tl.arange(0, BK)",
    ]
    body += ["a_ptrs = a_ptr + i[:, None] * K + kk[None, :]", "b_ptrs = b_ptr + kk[:, None] * N + j[None, :]"]
    body += [
        "acc = tl.zeros((BM, BN), dtype=tl.float32)",
        "for t in range(0, tl.cdiv(K, BK)):",
        f"    a = tl.load(a_ptrs, {left})",
    ]
    body += [
        f"    b = tl.load(b_ptrs, {right})",
        "    acc = tl.dot(a, b, acc)",
        "    a_ptrs += BK",
        "    b_ptrs += BK * N",
    ]
    body += epilogue + [
        "oi = tl.program_id(0) * BM + tl.arange(0, BM)",
        "oj = tl.program_id(1) * BN + tl.arange(0, BN)",
    ]
    body += [f"tl.store(c_ptr + oi[:, None] * N + oj[None, :], {last}, mask=(oi[:, None] < M) & (oj[None, :] < N))"]
    signature = {
        "a_ptr": kind,
        "b_ptr": kind,
        "c_ptr": kind,
        "M": "i32",
        "N": "i32",
        "K": "i32",
        "BM": "constexpr",
        "BN": "constexpr",
        "BK": "constexpr",
    }
    values = {
        "a_ptr": tensor(kind, m, k),
        "b_ptr": tensor(kind, k, n),
        "c_ptr": tensor(kind, m, n),
    }
    values |= {"M": m, "N": n, "K": k}
    grid = (-(-m // bm), -(-n // bn))
    return smaller(
        draw, kernel_text(signature, body), specified(signature, {"BM": bm, "BN": bn, "BK": bk}, values, grid, 4)
    )


def loops_with_dots(draw: Draw) -> RandomKernel:
    """A dot in a loop of some shape: counted in tiles or in elements, deeper, under a branch, inside a persistent loop, B transposed or found by an index."""
    kind, out = draw.pick(
        ("*fp16", "*fp16"), ("*bf16", "*bf16"), ("*fp32", "*fp32"), ("*i8", "*i32"), ("*fp8e5", "*fp32")
    )
    bm, bn, bk = (draw.pick(32, 64), draw.pick(32, 64), 64 if kind in ("*i8", "*fp8e5") else 32)
    m, n = (bm - draw.pick(0, 8), bn + draw.pick(0, 16))
    k = bk * draw.number(1, 4) + draw.pick(0, 16)
    transposed, gathered = (draw.chance(0.5), draw.chance(0.5))
    shape = draw.pick("tiles", "elements", "while", "nested", "guarded", "staged")
    total = "tl.int32" if kind == "*i8" else "tl.float32"
    body = [
        "i = tl.program_id(0) * BM + tl.arange(0, BM)",
        "j = tl.program_id(1) * BN + tl.arange(0, BN)",
        "kk = tl.arange(0, BK)",
    ]
    body += [f"acc = tl.zeros((BM, BN), dtype={total})"]
    rows = "tl.load(r_ptr + (k0 + kk), mask=k0 + kk < K, other=0)" if gathered else "(k0 + kk)"
    b = "rr[:, None] + j[None, :] * K" if transposed else "rr[:, None] * N + j[None, :]"
    zero = "0" if kind == "*i8" else "0.0"
    step = [
        f"a = tl.load(a_ptr + i[:, None] * K + (k0 + kk)[None, :], mask=(i[:, None] < M) & ((k0 + kk)[None, :] < K), other={zero})",
        f"rr = {rows}",
        f"b = tl.load(b_ptr + {b}, mask=((k0 + kk)[:, None] < K) & (j[None, :] < N), other={zero})",
        f"acc = tl.dot(a, b, acc, out_dtype={total})",
    ]
    indented = [f"    {line}" for line in step]
    if shape == "tiles":
        body += ["for t in range(0, tl.cdiv(K, BK)):", "    k0 = t * BK", *indented]
    elif shape == "elements":
        body += ["for k0 in range(0, K, BK):", *indented]
    elif shape == "staged":
        body += [f"for k0 in tl.range(0, K, BK, num_stages={draw.number(1, 4)}):", *indented]
    elif shape == "while":
        body += ["k0 = 0", "while k0 < K:", *indented, "    k0 += BK"]
    elif shape == "nested":
        body += [
            "for half in range(0, 2):",
            "    for k0 in range(half * BK, K, 2 * BK):",
            *(f"    {line}" for line in indented),
        ]
    else:
        body += [
            "if K > BK:",
            "    for k0 in range(0, K, BK):",
            *(f"    {line}" for line in indented),
            "else:",
            "    k0 = 0",
            *indented,
        ]
    epilogue, last = chains(draw, ["acc"], (INTEGER if kind == "*i8" else UNARY,), draw.number(0, 2))
    body += [
        *epilogue,
        f"tl.store(c_ptr + i[:, None] * N + j[None, :], {last}, mask=(i[:, None] < M) & (j[None, :] < N))",
    ]
    signature = {"a_ptr": kind, "b_ptr": kind, "c_ptr": out, "r_ptr": "*i32", "M": "i32", "N": "i32", "K": "i32"}
    signature |= {"BM": "constexpr", "BN": "constexpr", "BK": "constexpr"}
    span = {"low": -8, "high": 8} if kind == "*i8" else {}
    values = {
        "a_ptr": tensor(kind, m, k, **span),
        "b_ptr": tensor(kind, k, n, **span),
        "c_ptr": tensor(out, m, n, **{"low": 0, "high": 0} if kind == "*i8" else {}),
    }
    values |= {"r_ptr": tensor("*i32", k, low=0, high=k - 1), "M": m, "N": n, "K": k}
    grid = (-(-m // bm), -(-n // bn))
    stages = draw.number(1, 3)
    return smaller(
        draw,
        kernel_text(signature, body),
        specified(signature, {"BM": bm, "BN": bn, "BK": bk}, values, grid, 4, stages),
    )


def attention(draw: Draw) -> RandomKernel:
    """Two dots in a loop, the second on what the first gives, with a running maximum and masks."""
    kind = draw.pick("*fp16", "*bf16")
    bm, bn, d = (draw.pick(32, 64), draw.pick(32, 64), draw.pick(32, 64))
    n = draw.number(1, 3) * bn - draw.pick(0, 5, 16)
    causal, bias = (draw.chance(0.5), draw.chance(0.5))
    end = "tl.minimum(N, (tl.program_id(0) + 1) * BM)" if causal else "N"
    body = ["i = tl.program_id(0) * BM + tl.arange(0, BM)", "c = tl.arange(0, BN)", "d = tl.arange(0, D)"]
    body += ["q = tl.load(q_ptr + i[:, None] * D + d[None, :], mask=i[:, None] < N, other=0.0)"]
    body += [
        'm = tl.full([BM], -float("inf"), tl.float32)',
        "l = tl.zeros([BM], tl.float32)",
        "acc = tl.zeros((BM, D), tl.float32)",
    ]
    body += [f"for n0 in range(0, {end}, BN):", "    n = n0 + c"]
    body += [
        "    k = tl.load(k_ptr + n[None, :] * D + d[:, None], mask=n[None, :] < N, other=0.0)",
        "    s = tl.dot(q, k) * 0.125",
    ]
    body += ["    s += tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :]"] if bias else []
    keep = "(n[None, :] < N) & (i[:, None] >= n[None, :])" if causal else "n[None, :] < N"
    body += [
        f"    s = tl.where({keep}, s, -1.0e6)",
        "    new = tl.maximum(m, tl.max(s, 1))",
        "    p = tl.exp(s - new[:, None])",
    ]
    body += ["    scale = tl.exp(m - new)", "    l = l * scale + tl.sum(p, 1)", "    acc = acc * scale[:, None]"]
    body += ["    v = tl.load(v_ptr + n[:, None] * D + d[None, :], mask=n[:, None] < N, other=0.0)"]
    body += ["    acc = tl.dot(p.to(v.dtype), v, acc)", "    m = new"]
    body += ["tl.store(o_ptr + i[:, None] * D + d[None, :], acc / l[:, None], mask=i[:, None] < N)"]
    signature = {"q_ptr": kind, "k_ptr": kind, "v_ptr": kind, "b_ptr": "*fp32", "o_ptr": kind, "N": "i32"}
    signature |= {"BM": "constexpr", "BN": "constexpr", "D": "constexpr"}
    values = {name: tensor(kind, n, d) for name in ("q_ptr", "k_ptr", "v_ptr", "o_ptr")}
    values |= {"b_ptr": tensor("*fp32", n), "N": n}
    spec = specified(signature, {"BM": bm, "BN": bn, "D": d}, values, (-(-n // bm),), 4, draw.number(1, 3))
    return smaller(draw, kernel_text(signature, body), spec)
