"""What is written beats what is guessed: derived launches beside those that the host code really makes."""

import pytest

from host_torch import differences, launched
from slow_rows import in_turn
from gluonize.diagnostics import TranslationError
from gluonize.planned_launches import derived_unseen
from gluonize.read.launches.bound.completed import bound_launches

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"


def derived(path, kernel="k", target="gfx950"):
    return derived_unseen(str(path), kernel, (), target)[0]


def written(tmp_path, text):
    path = tmp_path / "m.py"
    path.write_text(HEAD + text)
    return path


def assert_served(path, run=None, kernel="k"):
    """Each launch that the host code makes of the kernel is one of those that are derived."""
    found = derived(path, kernel)
    real = [spec for spec in launched(path, run) if spec.kernel == kernel]
    assert real
    for spec in real:
        least = min((differences(own, spec) for own in found.launches), key=len)
        assert not least, (least, found.rows)
    return found


ADD = """
@triton.jit(OPTIONS)
def k(x, y, s_a: A, s_b: B, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * s_a + tl.program_id(1) * s_b + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def run(x):
    y = torch.empty_like(x)
    k[(x.shape[0], x.shape[1])](x, y, x.stride(0), x.stride(1), x.numel(), BLOCK=128)


if __name__ == "__main__":
    run(torch.randn(SHAPE, dtype=torch.float16))
"""


@pytest.mark.one_of(3)
@pytest.mark.parametrize("shape", ["4, 8, 128", "4, 8, 1", "4, 8, 24"])
@pytest.mark.parametrize(
    "a, b, options",
    [("tl.int64", "tl.uint32", ""), ('"i64"', "tl.int32", ""), ("tl.int64", "int", "do_not_specialize=['s_a', 'x']"),
     ("int", "int", "do_not_specialize=['s_b', 'n']"), ("int", "int", "do_not_specialize_on_alignment=['y', 's_a']")],
)  # fmt: skip
def test_annotations_and_what_triton_is_told_not_to_specialize(tmp_path, shape, a, b, options):
    text = ADD.replace("@triton.jit(OPTIONS)", f"@triton.jit({options})" if options else "@triton.jit")
    text = text.replace("SHAPE", shape).replace(": A", f": {a}").replace(": B", f": {b}")
    assert_served(written(tmp_path, text))


HEADS = """
@triton.jit
def k(q, o, STRIDES, H: tl.constexpr, D: tl.constexpr):
    h, d = tl.arange(0, H)[:, None], tl.arange(0, D)[None, :]
    at = tl.program_id(0) * s_qb + h * s_qh
    tl.store(o + tl.program_id(0) * s_ob + h * s_oh + LAST, tl.load(q + at + LAST) + 1)


def run(q, o):
    k[(q.shape[0],)](q, o, PASSED, H=16, D=128)
"""
FOUR, SIX = "s_qb, s_qh, s_ob, s_oh", "s_qb, s_qh, s_qd, s_ob, s_oh, s_od"
ASKED = "q.stride(0), q.stride(1), {}o.stride(0), o.stride(1){}"


@pytest.mark.one_of(3)
@pytest.mark.parametrize("main", [True, False])
@pytest.mark.parametrize(
    "strides, passed, last",
    [(FOUR, ASKED.format("", ""), "d"), (SIX, ASKED.format("q.stride(2), ", ", o.stride(2)"), "d * s_qd"),
     (SIX, "*q.stride(), *o.stride()", "d * s_qd"), (SIX, "*q.stride(), o.stride(0), o.stride(1), o.stride(2)", "d * s_qd")],
)  # fmt: skip
def test_ranks_and_strides(tmp_path, strides, passed, last, main):
    text = HEADS.replace("STRIDES", strides).replace("PASSED", passed).replace("LAST", last)
    if main:
        text += (
            '\n\nif __name__ == "__main__":\n    q = torch.randn(8, 16, 128, dtype=torch.bfloat16)\n'
            "    run(q, torch.empty_like(q))\n"
        )
    bf16 = lambda torch: torch.randn(8, 16, 128, dtype=torch.bfloat16)  # noqa: E731
    assert_served(written(tmp_path, text), None if main else lambda m: m.run(bf16(m.torch), bf16(m.torch)))


NUMBERS = """
@triton.jit
def k(x, w, y, n, WIDTH: tl.constexpr, MODE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for j in tl.static_range(WIDTH):
        acc += tl.load(x + i + j, mask=i + j < n, other=0.0) * tl.load(w + j)
    if WIDTH == 5:
        acc += 1
    elif WIDTH == 3:
        acc += 2
    if MODE == "sum":
        acc += 1.0
    elif MODE == "max":
        acc = tl.maximum(acc, 0.0)
    tl.store(y + i, acc, mask=i < n)


def conv(x, weight, mode="sum"):
    y = torch.empty_like(x)
    _, width = weight.shape
    k[(triton.cdiv(x.numel(), 256),)](x, weight, y, x.numel(), WIDTH=width, MODE=mode, BLOCK=256, num_warps=2)
    return y
"""
CALLERS = {
    "__main__": 'if __name__ == "__main__":\n    conv(torch.randn(1000), torch.randn(1, 5), mode="max")\n',
    "a function": 'def main():\n    w = torch.randn((1, 5))\n    conv(torch.randn(1000), w, "max")\n',
    "a test": '@pytest.mark.parametrize("mode", ["max", "sum"])\n@pytest.mark.parametrize("n, width", [(1000, 5), (512, 5)])\n'
    "def main(n, width, mode):\n    conv(torch.randn(n), torch.randn(1, width), mode)\n",
}


@pytest.mark.parametrize("caller", CALLERS)
def test_shapes_and_constants_that_callers_pass(tmp_path, caller):
    path = written(tmp_path, "import pytest\n" * ("test" in caller) + NUMBERS + "\n\n" + CALLERS[caller])
    run = None if caller == "__main__" else lambda m: m.main(*((1000, 5, "max") if caller == "a test" else ()))
    found = assert_served(path, run)
    if caller == "a test":
        assert {spec.constexprs["MODE"] for spec in found.launches} == {"max", "sum"}


def test_comparisons_in_the_kernel_beat_the_name_of_a_constant(tmp_path):
    spec = derived(written(tmp_path, NUMBERS)).launches[0]
    assert spec.constexprs["WIDTH"] == 5 and spec.constexprs["MODE"] == "sum"


def test_a_size_that_is_made_up_is_not_called_computed(tmp_path):
    text = """
@triton.jit
def k(x, y, n, B: tl.constexpr, C: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n) * C)


def run(x):
    k[(1,)](x, torch.empty_like(x), x.numel(), B=triton.next_power_of_2(x.shape[0]), C=2 * 3)
"""
    rows = {row.name: row for row in derived(written(tmp_path, text)).rows}
    assert "made-up" in rows["B"].why and rows["B"].confidence == "name"
    assert rows["C"].confidence == "read" and rows["n"].confidence == "computed"


def test_torch_that_is_imported_inside_of_a_function(tmp_path):
    text = """
@triton.jit
def k(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def run(x):
    import torch as t
    from torch import float32

    y = t.empty(x.shape, dtype=float32)
    k[(1,)](x, y, 100, BLOCK=128)
"""
    path = written(tmp_path, text.replace("import torch\n", ""))
    assert_served(path, lambda m: m.run(m.torch.empty(100, dtype=m.torch.bfloat16)))


FORMS = """
@triton.jit
def k(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@triton.jit
def other(x, y, n, BLOCK: tl.constexpr):
    tl.store(y + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK)) + n)


class Group:
    doubled, moved = k, other


KERNELS = {"twice": k, "other": other}
MORE = {}
MORE["k"] = k


def run(x, fast=True):
    y = torch.empty(x.shape, dtype=torch.float16)
    n = x.numel()
    grid = (triton.cdiv(n, 512),)
    LAUNCH
    return y


def main():
    run(torch.empty(1000, dtype=torch.float16))
"""


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "launch",
    ["torch.library.wrap_triton(k)[grid](x, y, n, BLOCK=512, num_warps=8)",
     "launch = k[grid]; launch(x, y, n, BLOCK=512, num_warps=8)",
     "functools.partial(k[grid], x, y, num_warps=8)(n, BLOCK=512)",
     "launch = functools.partial(k[grid], x, BLOCK=64, num_warps=8); launch(y, n, BLOCK=512)",
     "functools.partial(k[grid], x)(*(y, n), **{'BLOCK': 512, 'num_warps': 8})",
     "KERNELS['twice'][grid](x, y, n, BLOCK=512, num_warps=8)", "kernel = MORE['k']; kernel[grid](x, y, n, 512, num_warps=8)",
     "kernel = KERNELS.get('twice'); kernel[grid](x, y, n, 512, num_warps=8)", "getattr(Group, 'doubled')[grid](x, y, n, 512, num_warps=8)",
     "(k if fast else other)[grid](x, y, n, 512, num_warps=8)", "k.run(x, y, n, 512, grid=grid, warmup=False, num_warps=8)",
     "alias = k\n    alias[grid](x, y, n, 512, num_warps=8)", "typing.cast(object, k)[grid](x, y, n, 512, num_warps=8)"],
)  # fmt: skip
def test_forms_of_launches(tmp_path, launch):
    text = "import functools\nimport typing\n" + FORMS.replace("LAUNCH", launch)
    assert_served(written(tmp_path, text), lambda m: m.main())


@pytest.mark.parametrize(
    "launch", ["KERNELS['other'][grid](x, y, n, 64)", "print(k, grid)", "alias = other; alias[grid](x, y, n, 64)"]
)
def test_what_launches_another_kernel_is_no_launch(tmp_path, launch):
    found = derived(written(tmp_path, FORMS.replace("LAUNCH", launch)))
    assert found.launches[0].constexprs["BLOCK"] == 1024 and not any("line" in row.why for row in found.rows)


@pytest.mark.parametrize(
    "flag, passed, expected",
    [('a["eps"] > 0.0', "eps", {True, False}), ('a["eps"] != 0', "eps", {True, False}), ('a["eps"] > 0.0', "0.0", {False}),
     ('a["n"] % a["BLOCK"] == 0', "eps", {True, False}), ('a["n"] > 0 and a["eps"] < 0', "eps", {True, False})],
)  # fmt: skip
def test_both_values_of_a_flag_that_a_heuristic_gives(tmp_path, flag, passed, expected):
    text = f"""
@triton.heuristics({{"FLAG": lambda a: {flag}}})
@triton.jit
def k(x, y, n, eps, BLOCK: tl.constexpr, FLAG: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    if FLAG:
        v = v * (1 - eps) + eps
    tl.store(y + i, v, mask=i < n)


def run(x: torch.Tensor, eps: float = 0.0):
    y = torch.empty_like(x)
    k[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), {passed}, BLOCK=256)
    return y
"""
    assert {spec.constexprs["FLAG"] for spec in derived(written(tmp_path, text)).launches} == expected


STORED = """
@triton.jit
def k(q, s, w, N: tl.constexpr):
    i = tl.arange(0, N)
    v = (tl.load(q + i // 4) >> ((i % 4) * 8)) & 0xFF
    f = tl.load(s + i // 32)
    tl.store(w + i, VALUE)
"""


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "value, kind",
    [("(v - 8) * f.to(tl.float32)", "*fp32"), ("v - 8", "*i32"), ("f.to(tl.float16)", "*fp16"), ("f > 0", "*u1"),
     ("(v * f).to(tl.bfloat16)", "*bf16"), ("v.to(tl.int8)", "*i8"), ("f * f", "*bf16")],
)  # fmt: skip
def test_results_have_the_type_that_is_stored_and_the_table_says_so(tmp_path, value, kind):
    found = derived(written(tmp_path, STORED.replace("VALUE", value)))
    assert found.launches[0].signature["w"] == kind
    (row,) = (row for row in found.rows if row.name == "w")
    assert "q is stored" not in row.why and ("fp32 values" not in row.why or kind == "*fp32")


@pytest.mark.parametrize(
    "target, kind", [("gfx942", "*fp8e4b8"), ("gfx950", "*fp8e4nv"), ("gfx1200", "*fp8e4nv"), ("gfx1100", "*fp8e4nv")]
)
def test_fp8_is_the_format_of_the_target(tmp_path, target, kind):
    text = """
@triton.jit
def fp8_product(a, b, c, B: tl.constexpr):
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))
"""
    found = derived(written(tmp_path, text), "fp8_product", target).launches[0].signature
    assert (found["a"], found["b"], found["c"]) == (kind, kind, "*fp32")


SIZES = """
@triton.jit
def k(x, z, H, W, scale, B: tl.constexpr):
    b = tl.program_id(0) * B + tl.arange(0, B)
    for j in range(0, H):
        for l in range(0, W):
            tl.store(z + b * H * W + j * W + l, tl.load(x + b * H * W + j * W + l) * scale)


def run(x, scale=0.25):
    z = torch.empty_like(x)
    k[(x.shape[0] // 4,)](x, z, SIZES, scale, B=4)
"""


@pytest.mark.parametrize("sizes", ["8, 6", "x.shape[1], x.size(2)"])
def test_launches_hold_the_sizes_and_the_grid_of_the_file(tmp_path, sizes):
    text = SIZES.replace("SIZES", sizes) + "\n\ndef main():\n    run(torch.randn(12, 8, 6))\n"
    path = written(tmp_path, text)
    (real,) = launched(path, lambda m: m.main())
    (spec,) = derived(path).launches
    assert spec.grid == real.grid and (spec.values["H"], spec.values["W"], spec.values["scale"]) == (8, 6, 0.25)
    assert spec.values["x"]["tensor"]["shape"] == real.values["x"]["tensor"]["shape"]
    assert spec.values["z"]["tensor"]["stride"] == real.values["z"]["tensor"]["stride"]
    (unknown,) = derived(written(tmp_path, SIZES.replace("SIZES", sizes))).launches
    assert unknown.grid == () and unknown.values == ({"H": 8, "W": 6} if "8" in sizes else {}) | {"scale": 0.25}


HOSTS = ["K", "a.shape[1]", "a.size(-1)", ""]
BOUNDS = ["0, K // BK", "0, tl.cdiv(K, BK)", "0, K, BK", "0, tiles"]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("bounds, host", in_turn(BOUNDS, HOSTS) + in_turn(BOUNDS, HOSTS[2:] + HOSTS[:2]))
def test_sizes_that_are_made_up_are_several_tiles(tmp_path, host, bounds):
    text = f"""
@triton.jit
def k(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm, rn, rk = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :], tl.arange(0, BK)
    tiles = tl.cdiv(K, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range({bounds}):
        acc += tl.dot(tl.load(a + rm * K + rk[None, :]), tl.load(b + rk[:, None] * N + rn))
    tl.store(c + rm * N + rn, acc)
"""
    if host:
        text += f"""

def run(a, b):
    M, N = a.shape[0], b.shape[1]
    {'K = a.shape[1]' if host == 'K' else ''}
    k[(M // 128, N // 128)](a, b, torch.empty((M, N), dtype=torch.float32), M, N, {host}, BM=128, BN=128, BK=128)
"""
    constants = derived(written(tmp_path, text)).launches[0].constexprs
    assert constants["K"] >= 3 * constants["BK"] and constants["K"] % constants["BK"] == 0
    assert not host or constants["BK"] == 128


def test_a_launch_of_the_file_that_is_refused_is_not_replaced_without_a_word(tmp_path):
    text = """
@triton.jit
def k(x, y, n, BLOCK: tl.constexpr, LOG: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    if LOG:
        v = missing.log(v)
    tl.store(y + i, v, mask=i < n)


def run(x):
    k[(1,)](x, x, 100, BLOCK=128, LOG=FLAG)
"""
    found = derived(written(tmp_path, text.replace("FLAG", "True")))
    assert any("line 17 is refused" in n and "missing is not defined (line 12)" in n for n in found.notes), found.notes
    assert not derived(written(tmp_path, text.replace("FLAG", "False"))).notes


SHARED = """
@triton.jit
def k(x, g, part, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(part + i, tl.load(x + i).to(tl.float32) * tl.load(g + i).to(tl.float32), mask=i < n)


@triton.jit
def total(part, out, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for j in range(0, n, BLOCK):
        i = j + tl.arange(0, BLOCK)
        acc += tl.load(part + i, mask=i < n, other=0.0)
    tl.store(out + tl.arange(0, BLOCK), acc)


@triton.jit
def scaled(y, levels, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(y + i) * tl.load(levels + i), mask=i < n)


def forward(x, g, levels):
    part = torch.empty(x.numel(), dtype=torch.float32)
    out = torch.empty_like(g)
    k[(x.numel() // 128,)](x, g, part, x.numel(), BLOCK=128)
    total[(1,)](part, out, x.numel(), BLOCK=128)
    return out


def later(y, part):
    scaled[(y.numel() // 128,)](y, part, y.numel(), BLOCK=128)
"""


def test_a_tensor_has_one_type_in_all_kernels_that_are_given_it(tmp_path):
    path = written(tmp_path, SHARED)
    types = {kernel: derived(path, kernel).launches[0].signature for kernel in ("k", "total", "scaled")}
    assert types["k"]["g"] == "*bf16" and types["total"]["out"] == "*bf16"  # made like g, which k converts to fp32
    assert types["scaled"]["levels"] == "*fp32"  # `part` is allocated so elsewhere in the file


def test_a_function_knows_the_rank_of_what_it_is_called_with(tmp_path):
    text = HEADS.replace("STRIDES", SIX).replace("PASSED", ASKED.format("q.stride(2), ", ", o.stride(2)"))
    text = (
        text.replace("LAST", "d * s_qd") + "\n\ndef outer(q, o):\n    n = q.shape[-1]\n    o.zero_()\n    run(q, o)\n"
    )
    (binding,) = derived(written(tmp_path, text)).bindings
    assert binding.arguments["s_qh"].kind == "i32" and binding.caller  # and not 1, as of a matrix


def test_a_tensor_that_another_branch_makes_has_the_dimensions_that_the_launch_asks_of_it(tmp_path):
    text = HEADS.replace("STRIDES", SIX).replace("PASSED", ASKED.format("q.stride(2), ", ", o.stride(2)"))
    other = "    if q.sum() > 0:\n        o = torch.empty((4, 16, 128), dtype=q.dtype)\n    else:\n        o = torch.empty(1, dtype=q.dtype)\n"
    text = text.replace("LAST", "d * s_qd").replace("def run(q, o):\n", "def run(q):\n" + other)
    spec = derived(written(tmp_path, text)).launches[0]
    assert [spec.signature[name] for name in ("s_ob", "s_oh", "s_od")] == ["i32", "i32", "constexpr"]


ONE = """
@triton.jit
def k(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), n)
"""
LAUNCHES = "def run(x):\n    k[(1,)](x, 5, BLOCK=64)\n"


def test_a_kernel_of_the_same_name_in_another_file_is_another(tmp_path):
    files = {"__init__.py": "", "one.py": HEAD + ONE, "two.py": HEAD + ONE + LAUNCHES}
    files |= {"three.py": "from .two import k\n" + LAUNCHES, "four.py": "from .one import k\n" + LAUNCHES}
    for name, text in files.items():
        (tmp_path / "pkg").mkdir(exist_ok=True)
        (tmp_path / "pkg" / name).write_text(text)
    assert {b.path.rpartition("/")[2] for b in derived(tmp_path / "pkg" / "one.py").bindings} == {"four.py"}


def test_a_launch_around_autotuning_has_its_own_configuration(tmp_path):
    text = """
@triton.autotune([triton.Config({"BLOCK": b}, num_warps=2) for b in (128, 256)], key=["n"])
@triton.jit
def k(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, mask=i < n)


def run(x):
    k.fn[(4,)](x, x.numel(), BLOCK=512, num_warps=8)
    k[(4,)](x, x.numel())
"""
    around, through = sorted(derived(written(tmp_path, text)).bindings, key=lambda b: b.line)
    assert not around.problem and around.arguments["BLOCK"].value == 512
    assert len(around.configs) == 1 and not around.configs[0].constexprs and around.options["num_warps"] == 8
    assert [c.constexprs["BLOCK"] for c in through.configs] == [128, 256]
    launches = {
        (spec.constexprs["BLOCK"], spec.options["num_warps"]) for spec in derived(written(tmp_path, text)).launches
    }
    assert launches == {(128, 2), (256, 2), (512, 8)}


def test_kernels_that_a_module_makes_of_one_have_their_own_configurations(tmp_path):
    text = """
@triton.jit
def k(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, mask=i < n)


def configs():
    out = []
    for block in (128, 256):
        out.append(triton.Config({"BLOCK": block}, num_warps=2))
    return out


tuned = triton.autotune(configs=configs(), key=["n"])(k)
wide = triton.autotune([triton.Config({"BLOCK": 1024}, num_warps=8)], key=["n"])(k)


def run(x, large=False):
    k[(4,)](x, x.numel(), BLOCK=512)
    tuned[(4,)](x, x.numel())
    (wide if large else tuned)[(4,)](x, x.numel())
    arguments = [x, x.numel()]
    inner = triton.autotune([triton.Config({"BLOCK": 64}, num_warps=1)], key=["n"])(k)
    inner[(4,)](*arguments)
"""
    found = derived(written(tmp_path, text))
    by_line = sorted(found.bindings, key=lambda b: b.line)
    assert not any(b.problem for b in by_line)
    blocks = [[config.constexprs.get("BLOCK") for config in b.configs] for b in by_line]
    assert blocks == [[None], [128, 256], [128, 256, 1024], [64]]
    launches = {(spec.constexprs["BLOCK"], spec.options["num_warps"]) for spec in found.launches}
    assert launches == {(128, 2), (256, 2), (1024, 8), (512, 4), (64, 1)}


@pytest.mark.parametrize(
    "configs, expected",
    [
        ("list(filter(kept, every))", [128, 256]),
        ("sorted(every, key=lambda c: -c.kwargs['BLOCK'])[:2]", [512, 256]),
        ("[max(every, key=lambda c: c.kwargs['BLOCK'])]", [512]),
        ("every[:1] if Settings.is_narrow() else every[1:]", [128]),
        ("every[:1] if Settings.is_tuned() else every[2:]", [128, 512]),  # either, as a method changes what is asked
    ],
)
def test_configurations_that_host_code_chooses(tmp_path, configs, expected):
    text = f"""
class Settings:
    narrow, tuned = True, False

    @classmethod
    def is_narrow(cls):
        return cls.narrow

    @classmethod
    def is_tuned(cls):
        return cls.tuned

    @classmethod
    def tune(cls):
        cls.tuned = True


every = [triton.Config({{"BLOCK": block}}) for block in (128, 256, 512)]


def kept(config):
    return config.kwargs["BLOCK"] < 512


@triton.autotune(configs={configs}, key=["n"])
@triton.jit
def k(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, mask=i < n)


def run(x):
    k[(4,)](x, x.numel())
"""
    found = derived(written(tmp_path, text))
    assert [spec.constexprs["BLOCK"] for spec in found.launches] == expected


def test_pointers_in_the_place_of_descriptors_are_another_launch(tmp_path):
    text = """
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def k(x, n, B: tl.constexpr):
    if isinstance(x, tl.tensor_descriptor):
        described = x
    else:
        described = tl.make_tensor_descriptor(x, [n, n], [n, 1], [B, B])
    described.store([0, 0], tl.zeros((B, B), tl.float32))


def run(x: torch.Tensor, described: bool):
    if described:
        k[(1,)](TensorDescriptor(x, x.shape, x.stride(), [64, 64]), x.shape[0], B=64)
    else:
        k[(1,)](x, x.shape[0], B=64)
"""
    found = derived(written(tmp_path, text))
    assert len({spec.signature["x"].startswith("*") for spec in found.launches}) == 1
    assert "pointers and descriptors" in found.notes[0]
    differ = [way.differs for way in bound_launches(found.bindings, found.launches)]
    assert sorted(differ) in ([(), (("x", "x is a tensor there"),)], [(), (("x", "x is a descriptor there"),)])


def test_a_default_of_none_is_no_argument_that_the_kernel_needs(tmp_path):
    text = """
@triton.jit
def k(x, at, bias, n, BLOCK: tl.constexpr):
    i = tl.load(at + tl.program_id(0)) * BLOCK + tl.arange(0, BLOCK)
    value = 1.0
    if bias is not None:
        value = tl.load(bias)
    tl.store(x + i, value, mask=i < n)


def inner(x, at, bias):
    k[(4,)](x, at, bias, x.numel(), BLOCK=64)


class Layer:
    def run(self, x, at: torch.Tensor | None = None, bias: torch.Tensor | None = None):
        inner(x, at, bias)
"""
    (launch,) = derived(written(tmp_path, text)).bindings
    assert launch.arguments["at"].kind == "*" and launch.arguments["bias"].value is None


def test_a_launch_whose_configurations_cannot_be_read_says_so(tmp_path):
    text = """
@triton.autotune([triton.Config({"BLOCK": 64 * torch.cuda.get_device_capability()[0]})], key=["n"])
@triton.jit
def k(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, mask=i < n)


def run(x):
    k[(4,)](x, *x.shape)
"""
    (launch,) = derived(written(tmp_path, text)).bindings
    assert launch.problem.startswith("the autotune configs at line") and "get_device_capability" in launch.problem


def test_an_option_that_the_target_does_not_have_is_the_reason_that_is_given(tmp_path):
    text = """
@triton.jit
def k(a, b, c, B: tl.constexpr, PRECISION: tl.constexpr):
    i = tl.arange(0, B)
    at = i[:, None] * B + i[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision=PRECISION))


def run(a, b, c):
    k[(1,)](a, b, c, B=64, PRECISION="tf32")
"""
    (note,) = derived(written(tmp_path, text)).notes
    assert "line 15 is refused" in note and "input_precision must be one of" in note and "Got tf32 (line 11)" in note
    assert not derived(written(tmp_path, text), target="gfx942").notes
    with pytest.raises(TranslationError) as refused:
        derived(written(tmp_path, text.replace("input_precision=PRECISION", 'input_precision="tf32"')))
    assert "Triton does not have it on this target" in refused.value.diagnostics[0].help


def test_tensors_of_a_kernel_for_fp16_are_all_of_that_type(tmp_path):
    text = """
@triton.jit
def k(q, key, v, out, B: tl.constexpr):
    i = tl.arange(0, B)
    at = i[:, None] * B + i[None, :]
    p = tl.dot(tl.load(q + at), tl.trans(tl.load(key + at)))
    tl.store(out + at, tl.dot(p.to(tl.float16), tl.load(v + at)) + tl.dot(p.to(tl.float16), tl.load(key + at)))
"""
    (spec,) = derived(written(tmp_path, text)).launches
    assert [spec.signature[name] for name in ("q", "key", "v")] == ["*fp16"] * 3


def test_a_launch_behind_a_way_that_is_tried_first(tmp_path):
    text = """
@triton.jit
def k(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def faster(x):
    raise NotImplementedError


def run(x):
    if x.dtype == torch.float16:
        try:
            return faster(x)
        except Exception:
            pass
    y = torch.empty_like(x)
    k[(1,)](x, y, x.numel(), BLOCK=256)
    return y


if __name__ == "__main__":
    run(torch.randn(200, dtype=torch.float16))
"""
    found = assert_served(written(tmp_path, text))
    assert [launch.problem for launch in found.bindings] == [""]


def test_configurations_of_a_function_that_cannot_be_read_say_so(tmp_path):
    text = """
@triton.jit
def k(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, mask=i < n)


def run(x, block):
    arguments = {"x": x, "n": x.numel()}
    tuned = triton.autotune(configs=[triton.Config({"BLOCK": block})], key=["n"])(k)
    tuned[(4,)](**arguments)
"""
    (launch,) = derived(written(tmp_path, text)).bindings
    assert launch.problem.startswith("the autotune configs at line 15 cannot be read")


def test_how_often_a_loop_is_unrolled_is_no_size_that_host_code_makes_up(tmp_path):
    text = """
@triton.jit
def k(x, y, n, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = i
    for _ in tl.static_range(LEVELS):
        at = tl.load(x + at, mask=i < n, other=0)
    tl.store(y + i, at, mask=i < n)


def run(x, levels: int, block: int):
    k[(1,)](x, torch.empty_like(x), x.numel(), LEVELS=levels, BLOCK=block)
"""
    found = derived(written(tmp_path, text))
    # Nobody calls it: a size is made up for the tile, a few turns for the loop.
    assert [spec.constexprs["LEVELS"] for spec in found.launches] == [4]
    told = text + "\nif __name__ == '__main__':\n    run(torch.ones(64, dtype=torch.int32), 7, 64)\n"
    assert {spec.constexprs["LEVELS"] for spec in derived(written(tmp_path, told)).launches} == {7}


def test_a_number_of_bits_that_nobody_knows_is_a_small_one(tmp_path):
    path = written(
        tmp_path,
        """
@triton.jit
def k(x, y, n, BITS: tl.constexpr, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) % LEVELS >> BITS, mask=i < n)


def run(x, bits: int):
    y = torch.empty_like(x)
    k[(4,)](x, y, x.numel(), bits, 1 << bits, BLOCK=256)
""",
    )
    (launch,) = derived(path).launches
    assert launch.constexprs["LEVELS"] == 1 << launch.constexprs["BITS"] < 2**31
