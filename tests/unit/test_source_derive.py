"""Launch specs derived from files: what is read, what is assumed and said, and what is asked for."""

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.read.kernels.load import load_kernel
from gluonize.read.launches.derive.set_options import parse_settings
from gluonize.read.launches.derive.strict import derive_launches
from gluonize.read.spec.compile_arguments import compile_arguments

HEAD = "import torch\nimport triton\nimport triton.language as tl\nopen('executed', 'w')\nraise SystemExit\n"
KERNEL = (
    HEAD
    + "@triton.jit\ndef k(x_ptr, out, n, eps, B: tl.constexpr):\n    i = tl.arange(0, B)\n    tl.store(out + i, tl.load(x_ptr + i, mask=i < n) + eps)\n"
)


def derive(tmp_path, text, *settings, kernels=None):
    (tmp_path / "m.py").write_text(text)
    return derive_launches(str(tmp_path / "m.py"), kernels, settings=parse_settings(settings))


def one(tmp_path, text, *settings):
    (found,) = derive(tmp_path, text, *settings)
    loaded = load_kernel(str(tmp_path / "m.py"), found.spec.kernel)
    compile_arguments(found.spec, loaded.fn)  # what was derived is complete
    return found


def said(found, *words):
    return any(all(word in text for word in words) for text in found.assumptions)


def refused(tmp_path, text, *settings):
    with pytest.raises(TranslationError) as caught:
        derive(tmp_path, text, *settings)
    return caught.value.diagnostics


def test_from_names_and_use_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = one(tmp_path, KERNEL, "B=128")
    assert found.spec.signature == {"x_ptr": "*fp32", "out": "*fp32", "n": "i32", "eps": "fp32", "B": "constexpr"}
    assert found.spec.constexprs == {"B": 128} and found.spec.attrs == {"x_ptr": "DS", "out": "DS", "n": "D"}
    assert found.spec.options == {"num_warps": 4, "num_stages": 2} and found.is_default and found.spec.id == "m/k"
    assert said(found, "out is *fp32", "fp32 is assumed") and said(found, "n is i32, divisible by 16")
    assert not (tmp_path / "executed").exists()


def test_a_constexpr_without_a_value_is_asked_for_by_name(tmp_path):
    (found,) = refused(tmp_path, KERNEL)
    assert (found.code, found.line) == ("spec-missing", 7)
    assert "the value of B is not known" in found.message and "--set B=VALUE" in found.help and "-l" in found.help
    site = KERNEL + "def run(x, out):\n    k[(1,)](x, out, x.numel(), 1e-5, B=triton.next_power_of_2(x.shape[1]))\n"
    (found,) = refused(tmp_path, site)
    assert "`triton.next_power_of_2(x.shape[1])` at line 11" in found.why


def test_every_missing_value_is_asked_for_at_once(tmp_path):
    text = HEAD + "@triton.jit\ndef k(p, A: tl.constexpr, B: tl.constexpr):\n    tl.store(p, A + B)\n"
    assert ["A" in d.message and "A is" in d.message or "B is" in d.message for d in refused(tmp_path, text)] == [
        True,
        True,
    ]


def test_from_the_launch_site(tmp_path):
    text = KERNEL + (
        "BLOCK = 256\n"
        "def run(x: torch.Tensor, eps: float = 1e-6):\n"
        "    x = x.to(torch.bfloat16)\n"
        "    out = torch.empty_like(x, dtype=torch.float16)\n"
        "    k[(triton.cdiv(4096, BLOCK), 2)](x, out, 4096, eps, BLOCK, num_warps=8)\n"
    )
    found = one(tmp_path, text)
    assert found.spec.signature["x_ptr"] == "*bf16" and found.spec.signature["out"] == "*fp16"
    assert found.spec.attrs["n"] == "D" and found.spec.signature["eps"] == "fp32"
    assert found.spec.constexprs == {"B": 256} and found.spec.grid == (16, 2) and found.spec.options["num_warps"] == 8
    assert said(found, "x_ptr is *bf16", "line 14")


def test_the_first_of_several_launches_is_taken_and_said(tmp_path):
    text = KERNEL + "def run(x, out):\n    k[(1,)](x, out, 30, 0.5, B=32)\n    k[(1,)](x, out, 32, 0.5, B=64)\n"
    found = one(tmp_path, text)
    assert (
        found.spec.constexprs == {"B": 32}
        and "n" not in found.spec.attrs
        and said(found, "line 11", "not those at lines 12")
    )


def test_none_and_one_are_specialized(tmp_path):
    text = (
        HEAD
        + "@triton.jit\ndef k(p, bias, s, W: tl.constexpr):\n    tl.store(p, tl.load(p + s) if bias is None else tl.load(bias))\n"
    )
    found = one(tmp_path, text + "def run(x):\n    k[(1,)](x, None, 1, W=True)\n")
    assert found.spec.constexprs == {"bias": None, "s": 1, "W": True}


STRIDES = (
    HEAD + "@triton.jit\ndef k(p, M, N, stride_m, stride_n):\n    tl.store(p + M * stride_m + N * stride_n, 1.0)\n"
)


@pytest.mark.parametrize(
    "host,expected",
    [
        ("def run(x):\n    M, N = x.shape\n    assert x.is_contiguous()\n    CALL", 1),
        ("def run(x):\n    assert x.is_cuda and x.is_contiguous(), 'no'\n    M, N = x.shape\n    CALL", 1),
        ("def run(M, N):\n    x = torch.empty((M, N))\n    CALL", 1),
        ("def run(y):\n    x = y.contiguous()\n    M, N = x.shape\n    CALL", 1),
        ("def run(x):\n    M, N = x.shape\n    CALL", None),
        ("def run(x):\n    M, N, K = x.shape\n    assert x.is_contiguous()\n    CALL", None),
        ("def run(x):\n    M, N = x.shape\n    assert x.is_contiguous() or True\n    CALL", None),
        ("def run(x):\n    x = x.contiguous()\n    x = x.t()\n    M, N = x.shape\n    CALL", None),
    ],
    ids=[
        "asserted",
        "asserted with more",
        "made here",
        "made contiguous",
        "not shown",
        "not the last",
        "not certain",
        "changed since",
    ],
)
def test_a_stride_is_one_only_when_the_launch_shows_it(tmp_path, host, expected):
    call = "k[(1,)](x, M, N, x.stride(0), x.stride(1))\n"
    found = one(tmp_path, STRIDES + host.replace("CALL", call))
    assert found.spec.constexprs.get("stride_n") == expected
    assert found.spec.signature["stride_m"] == "i32" and found.spec.attrs["stride_m"] == "D"


def test_autotune_gives_one_launch_per_distinct_config(tmp_path):
    text = HEAD + (
        "def configs():\n    return [triton.Config({'B': b, 'waves_per_eu': 2}, num_warps=w) for b in (64, 128, 64) for w in (4, 8)]\n"
        "@triton.autotune(configs=configs(), key=['n'])\n@triton.jit\ndef k(p, n, B: tl.constexpr):\n    tl.store(p + tl.arange(0, B), n)\n"
    )
    found = derive(tmp_path, text)
    assert [(f.spec.constexprs["B"], f.spec.options["num_warps"]) for f in found] == [
        (64, 4),
        (64, 8),
        (128, 4),
        (128, 8),
    ]
    assert [f.is_default for f in found] == [True, False, False, False] and found[1].spec.id == "m/k#2"
    assert found[0].spec.options["waves_per_eu"] == 2
    own = text.replace("triton.autotune", "lib.tune")
    assert len(derive(tmp_path, own)) == 4
    unknown = text.replace("configs()", "lib.configs()", 2).replace("def lib.configs", "def configs")
    assert said(one(tmp_path, unknown, "B=32"), "configs at line 8 cannot be read")


def test_heuristics(tmp_path):
    text = HEAD + (
        "@triton.heuristics({'EVEN': lambda args: args['n'] % args['B'] == 0, 'HAS': lambda args: args['q'] is not None,\n"
        "                    'W': lambda args: max(1, args['B'] // 32)})\n"
        "@triton.jit\ndef k(p, q, n, B: tl.constexpr, EVEN: tl.constexpr, HAS: tl.constexpr, W: tl.constexpr):\n"
        "    tl.store(p + tl.arange(0, B), tl.load(q))\n"
    )
    found = one(tmp_path, text, "B=128")
    assert found.spec.constexprs == {"B": 128, "EVEN": False, "HAS": True, "W": 4}
    assert said(found, "EVEN = false, the general case")
    assert one(tmp_path, text + "def r(x):\n    k[(1,)](x, None, 256, 128)\n").spec.constexprs == {
        "q": None,
        "B": 128,
        "EVEN": True,
        "HAS": False,
        "W": 4,
    }


def test_hints_and_defaults(tmp_path):
    text = (
        HEAD
        + "@triton.jit\ndef k(p: tl.pointer_type(tl.int8), a: tl.int64, b=None, c=2.0, D: tl.constexpr = tl.float16):\n    tl.store(p, a)\n"
    )
    found = one(tmp_path, text)
    assert found.spec.signature == {"p": "*i8", "a": "i64", "b": "constexpr", "c": "fp32", "D": "constexpr"}
    assert found.spec.constexprs == {"b": None, "D": {"$dtype": "fp16"}} and said(found, "D = ", "its default")


def test_indices_are_integers(tmp_path):
    text = (
        HEAD + "@triton.jit\ndef k(table, which, out):\n    i = tl.load(which)\n    tl.store(out, tl.load(table + i))\n"
    )
    assert one(tmp_path, text).spec.signature == {"table": "*fp32", "which": "*i64", "out": "*fp32"}


def test_settings(tmp_path):
    found = one(tmp_path, KERNEL, "B=64", "x_ptr=*fp16", "n=i64", "num_warps=8")
    assert (
        found.spec.signature["x_ptr"] == "*fp16"
        and found.spec.signature["n"] == "i64"
        and found.spec.options["num_warps"] == 8
    )
    assert one(tmp_path, KERNEL, "B=64", "n=1").spec.constexprs == {"n": 1, "B": 64}
    assert parse_settings(["A=None", "B=True", "C=abc", "D=[1]"]) == {"A": None, "B": True, "C": "abc", "D": [1]}
    (found,) = refused(tmp_path, KERNEL, "B=64", "BB=1")
    assert found.code == "spec-unknown-argument" and "--set BB" in found.message
    for text in ("B", "=3", "a b=3"):
        with pytest.raises(TranslationError, match="NAME=VALUE"):
            parse_settings([text])


def test_helpers_are_not_launched(tmp_path):
    text = KERNEL + "@triton.jit\ndef add(x):\n    return x + 1\n"
    assert [f.spec.kernel for f in derive(tmp_path, text, "B=64")] == ["k"]
    only = HEAD + "@triton.jit\ndef add(x):\n    return x + 1\n"
    assert refused(tmp_path, only)[0].code == "source-no-kernels"


def test_options_that_only_the_host_knows_are_said(tmp_path):
    text = KERNEL + "def run(x, out, w):\n    k[(1,)](x, out, 32, 0.5, B=32, num_warps=w, some_other_backend=w)\n"
    found = one(tmp_path, text)
    assert found.spec.options == {"num_warps": 4, "num_stages": 2} and said(found, "num_warps = 4", "`w`")
