"""Small random Triton kernels with their launches: elementwise chains, masks, reductions, loops, branches, dots.

`kernels()` is a Hypothesis strategy. A kernel is text, so a failing one can be read and saved.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from translator.source.launch_spec import LaunchSpec

FLOATS = {"*fp32": "float32", "*fp16": "float16", "*bf16": "bfloat16"}
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


def _launch(signature: dict, constexprs: dict, values: dict, grid: tuple[int, ...], warps: int) -> LaunchSpec:
    attrs = {name: "DS" for name, kind in signature.items() if kind.startswith("*")}
    attrs |= {n: "D" for n, k in signature.items() if k == "i32" and values[n] % 16 == 0}
    options = {"num_warps": warps, "num_stages": 2}
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
    return st.one_of(elementwise(), rows(), products())
