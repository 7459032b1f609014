"""Kernels of many kinds whose programs are launched as clusters, each with a launch whose sizes are small enough for the reference machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from translation_of import dedent, launch, tensor

from gluonize.read.spec.launch import LaunchSpec

HEAD = "import triton\nimport triton.language as tl\n\n\n"


@dataclass(frozen=True)
class Source:
    """text: of the kernel `k`; tensors: type and shape by the name of the pointer; numbers: values of the other arguments."""

    text: str
    tensors: dict[str, tuple]
    constexprs: dict[str, int]
    numbers: dict[str, int] = field(default_factory=dict)

    @property
    def file(self) -> str:
        return HEAD + dedent(self.text)

    def launch(self, count: int) -> LaunchSpec:
        """The launch with `count` workgroups for each program."""
        signature = {name: f"*{kind}" for name, (kind, *_) in self.tensors.items()} | dict.fromkeys(self.numbers, "i32")
        values = {name: tensor(*shape) for name, (_, *shape) in self.tensors.items()} | self.numbers
        attrs = dict.fromkeys(self.tensors, "DS") | {
            name: "D" for name, value in self.numbers.items() if value % 16 == 0
        }
        spec = launch("k", signature, self.constexprs, attrs=attrs, values=values)
        spec.options["num_ctas"] = count
        return spec


def rows(body: str, *more: str, **tensors: tuple) -> Source:
    """A kernel on a tile of 64 rows and 128 columns of x: `x`, `at` (offsets), `r`, `c`; its statements are `body`."""
    names = {"x_ptr": ("fp32", 64, 128), "y_ptr": ("fp32", 64, 128)} | tensors
    text = f"""
@triton.jit
def k({", ".join(names)}, R: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, B)
    at = r[:, None] * B + c[None, :]
    x = tl.load(x_ptr + at)
""" + "".join(f"    {line}\n" for line in body.splitlines())
    return Source(text, names, {"R": 64, "B": 128})


def vector(body: str, **tensors: tuple) -> Source:
    """A kernel on 1024 elements of x: `x`, `o` (offsets); its statements are `body`."""
    names = {"x_ptr": ("fp32", 1024), "y_ptr": ("fp32", 1024)} | tensors
    text = f"""
@triton.jit
def k({", ".join(names)}, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + o)
""" + "".join(f"    {line}\n" for line in body.splitlines())
    return Source(text, names, {"B": 1024})


_PRODUCT = {"a_ptr": ("fp16", 128, 256), "b_ptr": ("fp16", 256, 128), "c_ptr": ("fp16", 128, 128)}
_SIZES = {"M": 128, "N": 128, "K": 256}
_TILES = {"BM": 128, "BN": 128, "BK": 64}
_ARGUMENTS = "a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr"
_WALK = f"""
@triton.jit
def k({_ARGUMENTS}):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    o = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
"""
_STEP = """    for i in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (i + o)[None, :]{mask_a})
        b = tl.load(b_ptr + (i + o)[:, None] * N + n[None, :]{mask_b})
        acc = tl.dot(a, b, acc)
"""
_TO_C = "    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16))\n"
_MASKS = {"mask_a": ", mask=(i + o)[None, :] < K, other=0.0", "mask_b": ", mask=(i + o)[:, None] < K, other=0.0"}
_ATTENTION = """
@triton.jit
def k(q_ptr, k_ptr, v_ptr, o_ptr, N, s, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + m[:, None] * s + d[None, :])
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for i in range(0, {end}, BN):
        key = tl.load(k_ptr + (i + n)[None, :] * s + d[:, None])
        value = tl.load(v_ptr + (i + n)[:, None] * s + d[None, :])
        scores = tl.dot(q, key){hidden}
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(weights, 1)
        acc = tl.dot(weights.to(tl.float16), value, acc * shrink[:, None])
        top = higher
    tl.store(o_ptr + m[:, None] * s + d[None, :], (acc / total[:, None]).to(tl.float16))
"""
_HIDDEN = "\n        scores = tl.where(m[:, None] >= (i + n)[None, :], scores, -1.0e6)"
_HEADS = {f"{name}_ptr": ("fp16", 256, 64) for name in "qkvo"}
_DESCRIPTORS = f"""
@triton.jit
def k({_ARGUMENTS}):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, K, BK):
        acc = tl.dot(a_desc.load([m, i]), b_desc.load([i, n]), acc)
    c_desc.store([m, n], acc.to(tl.float16))
"""
_COPY = """
@triton.jit
def k(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BM, BN])
    y_desc = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    y_desc.store([m, n], {value})
"""
_TILE = {"x_ptr": ("fp16", 128, 128), "y_ptr": ("fp16", 128, 128)}
_WEIGHTS = {"w_ptr": ("fp32", 128), "b_ptr": ("fp32", 128)}
_NORM = """mean = tl.sum(x, 1) / B
d = x - mean[:, None]
var = tl.sum(d * d, 1) / B
w = tl.load(w_ptr + c)
b = tl.load(b_ptr + c)
tl.store(y_ptr + at, d / tl.sqrt(var + 1e-5)[:, None] * w[None, :] + b[None, :])"""
_SUM = dedent("""
    @triton.jit
    def add(p, q):
        return p + q


""")

_RESIDUAL = "w_ptr + m[:, None] * N + n[None, :]"

SOURCES = {
    "elementwise": vector("tl.store(y_ptr + o, x * 2 + 1)"),
    "elementwise of a tile": rows("tl.store(y_ptr + at, tl.exp(x) * 2)"),
    "masked": Source(
        """
@triton.jit
def k(x_ptr, y_ptr, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y_ptr + o, tl.load(x_ptr + o, o < n) * 2, o < n)
""",
        {"x_ptr": ("fp32", 1024), "y_ptr": ("fp32", 1024)},
        {"B": 1024},
        {"n": 1000},
    ),
    "sum of rows": rows("tl.store(y_ptr + r, tl.sum(x, 1))"),
    "sum of columns": rows("tl.store(y_ptr + c, tl.sum(x, 0))"),
    "sum of all": vector("tl.store(y_ptr, tl.sum(x, 0))"),
    "greatest of rows": rows("tl.store(y_ptr + r, tl.argmax(x, 1))", y_ptr=("i32", 64)),
    "softmax": rows("e = tl.exp(x - tl.max(x, 1)[:, None])\ntl.store(y_ptr + at, e / tl.sum(e, 1)[:, None])"),
    "softmax of a row": vector("e = tl.exp(x - tl.max(x, 0))\ntl.store(y_ptr + o, e / tl.sum(e, 0))"),
    "layer norm": rows(_NORM, **_WEIGHTS),
    "layer norm of a row": vector(
        "d = x - tl.sum(x, 0) / B\ntl.store(y_ptr + o, d / tl.sqrt(tl.sum(d * d, 0) / B + 1e-5) * tl.load(w_ptr + o))",
        w_ptr=("fp32", 1024),
    ),
    "scan": vector("tl.store(y_ptr + o, tl.cumsum(x, 0))"),
    "scan of rows": rows("tl.store(y_ptr + at, tl.cumsum(x, 1))"),
    "scan of columns": rows("tl.store(y_ptr + at, tl.cumsum(x, 0))"),
    "sort": vector("tl.store(y_ptr + o, tl.sort(x))"),
    "sort of rows": rows("tl.store(y_ptr + at, tl.sort(x, 1))"),
    "greatest eight of rows": rows(
        "tl.store(y_ptr + r[:, None] * 8 + tl.arange(0, 8)[None, :], tl.topk(x, 8))", y_ptr=("fp32", 64, 8)
    ),
    "transpose": rows("tl.store(y_ptr + c[:, None] * R + r[None, :], tl.trans(x))"),
    "gather": vector("tl.store(y_ptr + o, tl.gather(x, B - 1 - tl.arange(0, B), 0))"),
    "gather in rows": rows(
        "back = tl.broadcast_to((B - 1 - c)[None, :], (R, B))\ntl.store(y_ptr + at, tl.gather(x, back, 1))"
    ),
    "histogram": vector("tl.store(y_ptr + tl.arange(0, 16), tl.histogram(o % 16, 16))", y_ptr=("i32", 16)),
    "atomics": vector("tl.atomic_add(y_ptr + o % 8, x)", y_ptr=("fp32", 8)),
    "atomics of a sum": vector("tl.atomic_add(y_ptr, tl.sum(x, 0))", y_ptr=("fp32", 1)),
    "concatenation": vector(
        "w = tl.load(w_ptr + o)\ntl.store(y_ptr + tl.arange(0, 2 * B), tl.cat(x, w, can_reorder=True))",
        w_ptr=("fp32", 1024), y_ptr=("fp32", 2048),
    ),
    "pairs": vector("y = tl.reshape(x, (B // 2, 2))\np, q = tl.split(y)\ntl.store(y_ptr + tl.arange(0, B // 2), p + q)"),
    "gathered rows": rows("tl.store(y_ptr + at, tl.load(w_ptr + tl.load(i_ptr + r)[:, None] * B + c[None, :]))",
                          w_ptr=("fp32", 64, 128), i_ptr=("i32", 64)),
    "matmul": Source(_WALK + _STEP.format(mask_a="", mask_b="") + _TO_C, _PRODUCT, _TILES, _SIZES),
    "matmul with masks": Source(_WALK + _STEP.format(**_MASKS) + _TO_C, _PRODUCT, _TILES, _SIZES),
    "matmul with descriptors": Source(_DESCRIPTORS, _PRODUCT, _TILES, _SIZES),
    "matmul with a bias": Source(
        _WALK + _STEP.format(mask_a="", mask_b="") + "    acc += tl.load(w_ptr + n)[None, :]\n" + _TO_C,
        _PRODUCT | {"w_ptr": ("fp32", 128)}, _TILES, _SIZES,
    ),
    "matmul with a residual": Source(
        _WALK + _STEP.format(mask_a="", mask_b="") + f"    acc += tl.load({_RESIDUAL})\n" + _TO_C,
        _PRODUCT | {"w_ptr": ("fp16", 128, 128)}, _TILES, _SIZES,
    ),
    "matmul with a masked residual": Source(
        _WALK + _STEP.format(mask_a="", mask_b="") + f"    acc += tl.load({_RESIDUAL}, (n < N - 8)[None, :], other=1.0)\n" + _TO_C,
        _PRODUCT | {"w_ptr": ("fp16", 128, 128)}, _TILES, _SIZES,
    ),
    "split-K": Source(
        _WALK
        + _STEP.format(mask_a="", mask_b="").replace("range(0, K, BK)", "range(tl.program_id(2) * BK, K, 2 * BK)")
        + "    tl.atomic_add(c_ptr + m[:, None] * N + n[None, :], acc, sem=\"relaxed\")\n",
        _PRODUCT | {"c_ptr": ("fp32", 128, 128)}, _TILES, _SIZES,
    ),
    "attention": Source(_ATTENTION.format(end="N", hidden=""), _HEADS, {"BM": 128, "BN": 64, "D": 64}, {"N": 256, "s": 64}),
    "causal attention": Source(
        _ATTENTION.format(end="(tl.program_id(0) + 1) * BM", hidden=_HIDDEN), _HEADS, {"BM": 128, "BN": 64, "D": 64}, {"N": 256, "s": 64},
    ),
    "descriptor copy": Source(_COPY.format(value="x_desc.load([m, n])"), _TILE, {"BM": 128, "BN": 64}, {"M": 128, "N": 128}),
    "descriptor elementwise": Source(
        _COPY.format(value="x_desc.load([m, n]) * 2"), _TILE, {"BM": 128, "BN": 64}, {"M": 128, "N": 128}
    ),
}  # fmt: skip
for name, source in SOURCES.items():
    if "w_ptr" in source.tensors and name.startswith("matmul"):
        SOURCES[name] = Source(
            source.text.replace("c_ptr, M", "c_ptr, w_ptr, M"), source.tensors, source.constexprs, source.numbers
        )
