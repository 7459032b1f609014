"""Small random Triton kernels with their launches: elementwise chains, masks, reductions, scans, loops, branches, dots.

`kernels()` is a Hypothesis strategy. A kernel is text, so a failing one can be read and saved.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from translator.source.launch_spec import LaunchSpec

FLOATS = {"*fp32": "float32", "*fp16": "float16", "*bf16": "bfloat16"}
NAMES = FLOATS | {
    "*i8": "int8",
    "*u8": "uint8",
    "*i16": "int16",
    "*i32": "int32",
    "*i64": "int64",
    "*fp8e5": "float8_e5m2",
}
HEAD = "import triton\nimport triton.language as tl\n\n\n"
UNARY = (
    "tl.exp(-tl.abs({0}))",
    "tl.abs({0})",
    "-{0}",
    "tl.sqrt(tl.abs({0}))",
    "{0} * 0.5",
    "tl.sigmoid({0})",
    "tl.maximum({0}, 0.0)",
)
BINARY = (
    "{0} + {1}",
    "{0} - {1}",
    "{0} * {1}",
    "tl.where({0} > {1}, {0}, {1} * 2.0)",
    "tl.minimum({0}, {1})",
    "{0} / (tl.abs({1}) + 1.0)",
)
REDUCE = ("tl.sum({0}, {axis})", "tl.max({0}, {axis})", "tl.min({0}, {axis})")
INTEGER = (
    "{0} + {1}",
    "{0} * {1}",
    "{0} ^ {1}",
    "{0} & {1}",
    "{0} >> 2",
    "tl.where({0} < {1}, {0}, {1})",
    "{0} % 7",
    "({0} + 3) // 2",
)


@dataclass(frozen=True)
class RandomKernel:
    text: str
    spec: LaunchSpec


def _launch(
    signature: dict, constexprs: dict, values: dict, grid: tuple[int, ...], warps: int, stages: int = 2
) -> LaunchSpec:
    attrs = {name: "DS" for name, kind in signature.items() if kind.startswith("*")}
    attrs |= {n: "D" for n, k in signature.items() if k == "i32" and values[n] % 16 == 0}
    options = {"num_warps": warps, "num_stages": stages}
    return LaunchSpec("random", "kernel", "", signature, constexprs, attrs, options, grid, {}, values)


def _tensor(dtype: str, *shape: int, low=None, high=None) -> dict:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    out = {"dtype": dtype, "shape": list(shape), "stride": strides, "storage": step, "offset": 0}
    return {"tensor": out | ({} if low is None else {"range": [low, high]})}


@st.composite
def chains(
    draw, names: list[str], ops: tuple[tuple[str, ...], ...], length: int, prefix: str = "v"
) -> tuple[list[str], str]:
    """Assignments `v0 = ...` on earlier values; -> lines and the last name."""
    lines, known = [], list(names)
    for i in range(length):
        form = draw(st.sampled_from(draw(st.sampled_from(ops))))
        # The last value is always used, so that nothing of the chain is dead.
        lines.append(f"{prefix}{i} = {form.format(known[-1], draw(st.sampled_from(known)))}")
        known.append(f"{prefix}{i}")
    return lines, known[-1]


@st.composite
def elementwise(draw) -> RandomKernel:
    """One dimension, a tail, optionally an integer input, a loop and a branch on a scalar."""
    kind, block, warps = (
        draw(st.sampled_from(sorted(FLOATS))),
        draw(st.sampled_from([64, 256, 1024])),
        draw(st.sampled_from([1, 4])),
    )
    n = draw(st.integers(1, 3)) * block + draw(st.sampled_from([0, 2, 16, block // 2 + 3]))
    body = [
        "i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
        "mask = i < n",
        f"x = tl.load(x_ptr + i, mask=mask, other={draw(st.sampled_from(['0.0', '1.0']))}).to(tl.float32)",
    ]
    body += [
        "y = tl.load(y_ptr + i, mask=mask, other=0.0).to(tl.float32)",
        "k = tl.load(k_ptr + i, mask=mask, other=0)",
    ]
    lines, last = draw(chains(["x", "y"], (UNARY, BINARY), draw(st.integers(1, 6))))
    if draw(st.booleans()):
        trips = draw(st.sampled_from(["3", "n % 5", "trips"]))
        body += [f"for j in range({trips}):", "    x = x * 0.5 + y * j"]
    if draw(st.booleans()):
        body += ["if trips > 2:", "    y = y + 1.0", "else:", "    x = x - y"]
    body += lines
    integers, whole = draw(chains(["k", "i"], (INTEGER,), draw(st.integers(1, 4)), "w"))
    body += integers
    body += [f"tl.store(out_ptr + i, {last}, mask=mask)", f"tl.store(int_ptr + i, {whole}, mask=mask)"]
    signature = {
        "x_ptr": kind,
        "y_ptr": kind,
        "k_ptr": "*i32",
        "out_ptr": kind,
        "int_ptr": "*i32",
        "n": "i32",
        "trips": "i32",
        "BLOCK": "constexpr",
    }
    floats = {name: _tensor(FLOATS[kind], n) for name in ("x_ptr", "y_ptr", "out_ptr")}
    values = floats | {"k_ptr": _tensor("int32", n, low=-100, high=100), "int_ptr": _tensor("int32", n, low=0, high=0)}
    values |= {"n": n, "trips": draw(st.sampled_from([0, 2, 4]))}
    return RandomKernel(_text(signature, body), _launch(signature, {"BLOCK": block}, values, (-(-n // block),), warps))


@st.composite
def rows(draw) -> RandomKernel:
    """A tile of rows and columns, reduced along one axis and broadcast back, columns masked."""
    kind, warps = draw(st.sampled_from(sorted(FLOATS))), draw(st.sampled_from([1, 4, 8]))
    r, c = draw(st.sampled_from([1, 4, 16])), draw(st.sampled_from([32, 128, 512]))
    m, n = draw(st.integers(1, 2)) * r + draw(st.sampled_from([0, 3])), c - draw(st.sampled_from([0, 1, 16]))
    axis = draw(st.sampled_from([0, 1]))
    expand = "[None, :]" if axis == 0 else "[:, None]"
    body = [
        "r = tl.program_id(0) * R + tl.arange(0, R)",
        "c = tl.arange(0, C)",
        "mask = (r[:, None] < m) & (c[None, :] < n)",
    ]
    body += ["x = tl.load(x_ptr + r[:, None] * n + c[None, :], mask=mask, other=0.0).to(tl.float32)"]
    before, last = draw(chains(["x"], (UNARY, BINARY), draw(st.integers(0, 3))))
    reduced = draw(st.sampled_from(REDUCE)).format(last, axis=axis)
    body += before + [f"s = {reduced}", f"b = s{expand}"]
    after, out = draw(chains([last, "b"], (UNARY, BINARY), draw(st.integers(1, 3)), "u"))
    body += after
    if draw(st.booleans()):
        body += [f"out = tl.cumsum(tl.broadcast_to({out}, (R, C)), 1)"]
        out = "out"
    body += [f"tl.store(out_ptr + r[:, None] * n + c[None, :], {out}, mask=mask)"]
    signature = {"x_ptr": kind, "out_ptr": kind, "m": "i32", "n": "i32", "R": "constexpr", "C": "constexpr"}
    values = {"x_ptr": _tensor(FLOATS[kind], m, n), "out_ptr": _tensor(FLOATS[kind], m, n), "m": m, "n": n}
    spec = _launch(signature, {"R": r, "C": c}, values, (-(-m // r),), warps)
    return RandomKernel(_text(signature, body), _with_one(spec))


@st.composite
def products(draw) -> RandomKernel:
    """A matmul loop with a K tail and an epilogue."""
    kind = draw(st.sampled_from(["*fp16", "*bf16"]))
    bm, bn, bk = (draw(st.sampled_from(sizes)) for sizes in ([32, 64], [32, 64, 128], [32, 64]))
    m, n = bm * draw(st.integers(1, 2)) - draw(st.sampled_from([0, 8])), bn + draw(st.sampled_from([0, 8]))
    k = bk * draw(st.integers(0, 3)) + draw(st.sampled_from([0, 8, 16]))
    k = max(k, 8)
    epilogue, last = draw(chains(["acc"], (UNARY, BINARY), draw(st.integers(0, 2))))
    mask = draw(st.booleans()) or k % bk
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
        "a_ptr": _tensor(FLOATS[kind], m, k),
        "b_ptr": _tensor(FLOATS[kind], k, n),
        "c_ptr": _tensor(FLOATS[kind], m, n),
    }
    values |= {"M": m, "N": n, "K": k}
    grid = (-(-m // bm), -(-n // bn))
    return RandomKernel(_text(signature, body), _launch(signature, {"BM": bm, "BN": bn, "BK": bk}, values, grid, 4))


@st.composite
def loops_with_dots(draw) -> RandomKernel:
    """A dot in a loop of some shape: counted in tiles or in elements, deeper, under a branch, inside a persistent loop, B transposed or found by an index."""
    kind, out = draw(
        st.sampled_from(
            [("*fp16", "*fp16"), ("*bf16", "*bf16"), ("*fp32", "*fp32"), ("*i8", "*i32"), ("*fp8e5", "*fp32")]
        )
    )
    bm, bn, bk = (
        draw(st.sampled_from([32, 64])),
        draw(st.sampled_from([32, 64])),
        64 if kind in ("*i8", "*fp8e5") else 32,
    )
    m, n = bm - draw(st.sampled_from([0, 8])), bn + draw(st.sampled_from([0, 16]))
    k = bk * draw(st.integers(1, 4)) + draw(st.sampled_from([0, 16]))
    transposed, gathered = draw(st.booleans()), draw(st.booleans())
    shape = draw(st.sampled_from(["tiles", "elements", "while", "nested", "guarded", "staged"]))
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
        body += [f"for k0 in tl.range(0, K, BK, num_stages={draw(st.integers(1, 4))}):", *indented]
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
    epilogue, last = draw(chains(["acc"], (INTEGER if kind == "*i8" else UNARY,), draw(st.integers(0, 2))))
    body += [
        *epilogue,
        f"tl.store(c_ptr + i[:, None] * N + j[None, :], {last}, mask=(i[:, None] < M) & (j[None, :] < N))",
    ]
    signature = {"a_ptr": kind, "b_ptr": kind, "c_ptr": out, "r_ptr": "*i32", "M": "i32", "N": "i32", "K": "i32"}
    signature |= {"BM": "constexpr", "BN": "constexpr", "BK": "constexpr"}
    span = {"low": -8, "high": 8} if kind == "*i8" else {}
    values = {
        "a_ptr": _tensor(NAMES[kind], m, k, **span),
        "b_ptr": _tensor(NAMES[kind], k, n, **span),
        "c_ptr": _tensor(NAMES[out], m, n, **({"low": 0, "high": 0} if kind == "*i8" else {})),
    }
    values |= {"r_ptr": _tensor("int32", k, low=0, high=k - 1), "M": m, "N": n, "K": k}
    grid = (-(-m // bm), -(-n // bn))
    stages = draw(st.integers(1, 3))
    return RandomKernel(
        _text(signature, body), _launch(signature, {"BM": bm, "BN": bn, "BK": bk}, values, grid, 4, stages)
    )


@st.composite
def attention(draw) -> RandomKernel:
    """Two dots in a loop, the second on what the first gives, with a running maximum and masks."""
    kind = draw(st.sampled_from(["*fp16", "*bf16"]))
    bm, bn, d = draw(st.sampled_from([32, 64])), draw(st.sampled_from([32, 64])), draw(st.sampled_from([32, 64]))
    n = draw(st.integers(1, 3)) * bn - draw(st.sampled_from([0, 5, 16]))
    causal, bias = draw(st.booleans()), draw(st.booleans())
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
    values = {name: _tensor(NAMES[kind], n, d) for name in ("q_ptr", "k_ptr", "v_ptr", "o_ptr")}
    values |= {"b_ptr": _tensor("float32", n), "N": n}
    spec = _launch(signature, {"BM": bm, "BN": bn, "D": d}, values, (-(-n // bm),), 4, draw(st.integers(1, 3)))
    return RandomKernel(_text(signature, body), spec)


@st.composite
def scans(draw) -> RandomKernel:
    """Rows scanned, reduced with an index, sorted or flipped, over several types."""
    kind = draw(st.sampled_from(["*fp32", "*fp16", "*i32", "*i16"]))
    whole = kind.startswith("*i")
    r, c = draw(st.sampled_from([1, 2, 8])), draw(st.sampled_from([16, 64, 256]))
    m, n = r + draw(st.sampled_from([0, 1])), c - draw(st.sampled_from([0, 3]))
    wide = "tl.int32" if whole else "tl.float32"
    body = [
        "r = tl.program_id(0) * R + tl.arange(0, R)",
        "c = tl.arange(0, C)",
        "mask = (r[:, None] < m) & (c[None, :] < n)",
    ]
    body += [f"x = tl.load(x_ptr + r[:, None] * n + c[None, :], mask=mask, other=0).to({wide})"]
    forms = [
        "tl.cumsum(x, 1)",
        "tl.cumsum(x, 1, reverse=True)",
        "x - tl.max(x, 1)[:, None]",
        "x + tl.argmax(x, 1)[:, None]",
        "x * tl.argmin(x, 1, tie_break_left=True)[:, None]",
        "tl.sort(x, 1)",
        "tl.flip(x, 1)",
        "tl.associative_scan(x, 1, _larger)",
        "x + tl.reduce(x, 1, _larger)[:, None]",
    ]
    for step in range(draw(st.integers(1, 2))):
        body += [f"x = {draw(st.sampled_from(forms))}"]
    if draw(st.booleans()):
        body += ["s = tl.sum(x, 0)", "x = x + s[None, :]"]
    body += ["tl.store(out_ptr + r[:, None] * n + c[None, :], x, mask=mask)"]
    out = "*i32" if whole else "*fp32"
    signature = {"x_ptr": kind, "out_ptr": out, "m": "i32", "n": "i32", "R": "constexpr", "C": "constexpr"}
    span = {"low": -50, "high": 50} if whole else {}
    values = {
        "x_ptr": _tensor(NAMES[kind], m, n, **span),
        "out_ptr": _tensor(NAMES[out], m, n, **({"low": 0, "high": 0} if whole else {})),
        "m": m,
        "n": n,
    }
    spec = _launch(signature, {"R": r, "C": c}, values, (-(-m // r),), draw(st.sampled_from([1, 4])))
    helper = "@triton.jit\ndef _larger(a, b):\n    return tl.maximum(a, b)\n\n\n"
    return RandomKernel(_text(signature, body).replace(HEAD, HEAD + helper), _with_one(spec))


@st.composite
def control(draw) -> RandomKernel:
    """Loads that feed loads, loops in branches in loops, `while` on a loaded value, early return, narrow integers and fp8."""
    kind = draw(st.sampled_from(["*fp32", "*fp16", "*fp8e5", "*i8", "*u8", "*i64"]))
    block, warps = draw(st.sampled_from([64, 128])), draw(st.sampled_from([1, 2, 4]))
    n = draw(st.integers(1, 3)) * block - draw(st.sampled_from([0, 1, 7]))
    whole = kind[1] in "iu"
    wide = "tl.int64" if kind == "*i64" else "tl.int32" if whole else "tl.float32"
    zero = "0" if whole else "0.0"
    body = ["pid = tl.program_id(0)", "i = pid * BLOCK + tl.arange(0, BLOCK)", "mask = i < n"]
    if draw(st.booleans()):
        body += ["if pid * BLOCK >= limit:", "    return"]
    body += [
        "k = tl.load(k_ptr + i, mask=mask, other=0)",
        f"x = tl.load(x_ptr + k, mask=mask, other={zero}).to({wide})",
        f"acc = tl.zeros((BLOCK,), {wide})",
    ]
    ops = (INTEGER,) if whole else (UNARY, BINARY)
    inner, last = draw(chains(["acc", "x"], ops, draw(st.integers(1, 2)), "t"))
    update = [*inner, f"acc = ({last}).to({wide})"]
    form = draw(st.sampled_from(["for-if", "if-for", "while", "for-for", "chase"]))
    if form == "for-if":
        body += [
            "for t in range(0, trips):",
            "    if t % 2 == 0:",
            *(f"        {line}" for line in update),
            "    else:",
            "        acc = acc + x",
        ]
    elif form == "if-for":
        body += [
            "if trips > 1:",
            "    for t in range(0, trips):",
            *(f"        {line}" for line in update),
            "else:",
            "    acc = acc - x",
        ]
    elif form == "while":
        body += ["left = tl.load(k_ptr) % 4", "while left > 0:", *(f"    {line}" for line in update), "    left -= 1"]
    elif form == "for-for":
        body += ["for t in range(0, trips):", "    for u in range(t, 3):", *(f"        {line}" for line in update)]
    else:
        body += [
            "at = k",
            "for t in range(0, trips):",
            f"    acc += tl.load(x_ptr + at, mask=mask & (at < n), other={zero}).to({wide})",
            "    at = tl.load(k_ptr + at, mask=mask & (at < n), other=0)",
        ]
    body += ["tl.store(out_ptr + i, acc, mask=mask)"]
    out = "*i64" if kind == "*i64" else "*i32" if whole else "*fp32"
    signature = {
        "x_ptr": kind,
        "k_ptr": "*i32",
        "out_ptr": out,
        "n": "i32",
        "trips": "i32",
        "limit": "i32",
        "BLOCK": "constexpr",
    }
    span = {"low": 0 if kind == "*u8" else -20, "high": 20} if whole else {}
    values = {"x_ptr": _tensor(NAMES[kind], n, **span), "k_ptr": _tensor("int32", n, low=0, high=n - 1)}
    values |= {"out_ptr": _tensor(NAMES[out], n, **({"low": 0, "high": 0} if whole else {})), "n": n}
    values |= {"trips": draw(st.sampled_from([0, 2, 3])), "limit": draw(st.sampled_from([2, 64, 1024]))}
    return RandomKernel(_text(signature, body), _launch(signature, {"BLOCK": block}, values, (-(-n // block),), warps))


def _with_one(spec: LaunchSpec) -> LaunchSpec:
    """Triton makes an argument that is 1 a constexpr."""
    ones = [name for name, kind in spec.signature.items() if kind == "i32" and spec.values[name] == 1]
    signature = {name: "constexpr" if name in ones else kind for name, kind in spec.signature.items()}
    constexprs = spec.constexprs | {name: 1 for name in ones}
    attrs = {name: flags for name, flags in spec.attrs.items() if name not in ones}
    return LaunchSpec(spec.id, spec.kernel, "", signature, constexprs, attrs, spec.options, spec.grid, {}, spec.values)


def _text(signature: dict, body: list[str]) -> str:
    parameters = ", ".join(f"{name}: tl.constexpr" if kind == "constexpr" else name for name, kind in signature.items())
    return HEAD + f"@triton.jit\ndef kernel({parameters}):\n" + "".join(f"    {line}\n" for line in body)


def kernels() -> st.SearchStrategy[RandomKernel]:
    return st.one_of(elementwise(), rows(), products(), loops_with_dots(), attention(), scans(), control())
