"""Launches that are made up: from host code run on a model, from use, judged by Triton's front end and revised."""

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.read.launches.derivation import derive_kernel, launchable_kernels
from gluonize.read.launches.derive.set_options import parse_settings, settings_for
from gluonize.read.launches.derive.proposal.verdict import Verdict
from gluonize.trace.acceptance import FrontEndJudge

HEAD = "import torch\nimport triton\nimport triton.language as tl\nopen('executed', 'w')\nraise SystemExit\n"


def derive(tmp_path, text, *settings, kernel="k", judging=None):
    (tmp_path / "m.py").write_text(HEAD + text)
    judging = judging or (lambda loaded: FrontEndJudge(loaded, "gfx950"))
    given = settings_for(parse_settings(settings), kernel)
    return derive_kernel(str(tmp_path / "m.py"), kernel, judging, settings=given)


def signature(found, number=0):
    spec = found.launches[number]
    return {n: spec.constexprs.get(n) if kind == "constexpr" else kind for n, kind in spec.signature.items()}


def row(found, name):
    return next(row for row in found.rows if row.name == name)


ROW = """
@triton.jit
def k(x_ptr, out_ptr, row_stride, n_cols, eps, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * row_stride + i, mask=i < n_cols).to(tl.float32)
    tl.store(out_ptr + tl.program_id(0) * row_stride + i, (x * eps).to(out_ptr.dtype.element_ty), mask=i < n_cols)
"""


def test_from_use_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = derive(tmp_path, ROW)
    assert signature(found) == {
        "x_ptr": "*bf16", "out_ptr": "*bf16", "row_stride": "i32", "n_cols": "i32", "eps": "fp32", "BLOCK": 1024,
    }  # fmt: skip
    assert "converted to fp32" in row(found, "x_ptr").why and "stored is converted" in row(found, "out_ptr").why
    assert not (tmp_path / "executed").exists()


def test_the_launch_in_host_code_is_computed_from_sizes_that_agree(tmp_path):
    host = """
def run(x: torch.Tensor, eps: float = 1e-5):
    M, head_dim = x.shape
    out = torch.empty(M, head_dim, dtype=torch.float32)
    k[(M,)](x, out, x.stride(0), head_dim, eps, BLOCK=triton.next_power_of_2(head_dim + 1), num_warps=8)
"""
    found = derive(tmp_path, ROW + host)
    assert signature(found)["out_ptr"] == "*fp32" and signature(found)["BLOCK"] == 128
    assert found.launches[0].options["num_warps"] == 8 and found.launches[0].attrs["row_stride"] == "D"
    assert row(found, "out_ptr").confidence == "read" and "made-up" in row(found, "BLOCK").why


def test_tensors_made_like_another_have_its_type(tmp_path):
    text = """
@triton.jit
def k(idx, copy, B: tl.constexpr, x):
    i = tl.load(idx + tl.arange(0, B))
    tl.store(copy + tl.arange(0, B), tl.load(copy + tl.arange(0, B)) + 1)
    tl.store(x + i, 1.0)

def run(idx, x):
    copy = torch.empty_like(idx)
    k[(1,)](idx, copy, 64, x)
"""
    assert signature(derive(tmp_path, text)) == {"idx": "*i64", "copy": "*i64", "B": 64, "x": "*fp32"}


def test_a_launch_in_another_file_of_the_package(tmp_path):
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "kernels.py").write_text(HEAD + ROW)
    (package / "ops.py").write_text(
        "from .kernels import k\n\ndef f(x, y):\n    k[(1,)](x, y, 1, 128, 0.5, BLOCK=256)\n"
    )
    found = derive_kernel(str(package / "kernels.py"), "k", lambda loaded: FrontEndJudge(loaded, "gfx950"))
    assert signature(found)["BLOCK"] == 256 and "ops.py:4" in row(found, "BLOCK").why


FLAGS = """
@triton.jit
def k(x, bias, out, HAS_BIAS: tl.constexpr, MODE: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    y = tl.load(x + i)
    if HAS_BIAS:
        y += tl.load(bias + i)
    if MODE == "relu":
        y = tl.maximum(y, 0)
    elif MODE == "square":
        y = y * y
    tl.store(out + i, y)
"""


def test_every_branch_has_a_launch_and_no_more_are_made_than_needed(tmp_path):
    found = derive(tmp_path, FLAGS)
    values = [(signature(found, n)["HAS_BIAS"], signature(found, n)["MODE"]) for n in range(len(found.launches))]
    assert {flag for flag, _ in values} == {False, True} and {"relu", "square"} <= {mode for _, mode in values}
    assert len(values) <= 3


def test_an_optional_argument_and_its_flag_never_contradict_each_other(tmp_path):
    host = """
def run(x, bias=None, mode: str = "relu"):
    k[(1,)](x, bias, torch.empty_like(x), HAS_BIAS=bias is not None, MODE=mode, B=64)
"""
    found = derive(tmp_path, FLAGS + host)
    pairs = {(signature(found, n)["bias"], signature(found, n)["HAS_BIAS"]) for n in range(len(found.launches))}
    assert pairs == {(None, False), ("*bf16", True)}


def test_heuristics_are_evaluated_on_the_arguments_of_the_launch(tmp_path):
    text = """
@triton.heuristics({"EVEN": lambda args: args["n"] % args["B"] == 0, "HAS": lambda args: args["q"] is not None})
@triton.jit
def k(p, q, n, B: tl.constexpr, EVEN: tl.constexpr, HAS: tl.constexpr):
    i = tl.arange(0, B)
    y = tl.load(p + i) if EVEN else tl.load(p + i, mask=i < n)
    if HAS:
        y += tl.load(q + i)
    tl.store(p + i, y)

def run(x, q=None):
    k[(1,)](x, q, 96, B=64)
"""
    found = derive(tmp_path, text)
    assert signature(found)["EVEN"] is False
    for number in range(len(found.launches)):
        assert signature(found, number)["HAS"] == (signature(found, number)["q"] is not None)
    assert {signature(found, n)["HAS"] for n in range(len(found.launches))} == {False, True}


def test_types_are_revised_from_what_the_front_end_says(tmp_path):
    text = """
@triton.jit
def k(count, out, N: tl.constexpr):
    total = 0
    for i in range(N):
        total += tl.load(count + i)
    tl.store(out, total)
"""
    found = derive(tmp_path, text)
    assert signature(found)["count"] == "*i32" and "front end" in row(found, "count").why


def test_a_number_that_decides_on_a_text_which_the_target_lacks_is_another(tmp_path):
    text = """
@triton.jit
def k(a, b, c, d, out, LEVEL: tl.constexpr, B: tl.constexpr):
    precision: tl.constexpr = "ieee" if LEVEL == 2 else "tf32"
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    if LEVEL >= 1:
        at += 1
    x, y = tl.load(a + at) * tl.load(b + at), tl.load(c + at) * tl.load(d + at)
    tl.store(out + at, tl.dot(x.to(tl.float32), y.to(tl.float32), input_precision=precision))

def run(x, level: int = 0):
    k[(1,)](x, x, x, x, x, LEVEL=level, B=64)
"""
    assert signature(derive(tmp_path, text))["LEVEL"] == 2


def test_tile_sizes_that_meet_are_made_equal(tmp_path):
    text = """
@triton.jit
def k(a, b, out, BLOCK_ROWS: tl.constexpr, HEAD_DIM: tl.constexpr, WIDTH: tl.constexpr):
    x = tl.load(a + tl.arange(0, BLOCK_ROWS)[:, None] * 64 + tl.arange(0, HEAD_DIM)[None, :])
    y = tl.load(b + tl.arange(0, WIDTH))
    tl.store(out + tl.arange(0, HEAD_DIM), tl.sum(x, 0) + y)
"""
    found = signature(derive(tmp_path, text))
    assert found["HEAD_DIM"] == found["WIDTH"]


def test_autotune_gives_one_launch_per_distinct_config(tmp_path):
    text = "@triton.autotune(configs=[triton.Config({'B': b}, num_warps=w) for b in (64, 48, 128) for w in (4, 8)], key=[])\n"
    text += "@triton.jit\ndef k(p, B: tl.constexpr):\n    tl.store(p + tl.arange(0, B), 1.0)\n"
    found = derive(tmp_path, text)
    assert [(spec.constexprs["B"], spec.options["num_warps"]) for spec in found.launches] == [
        (64, 4), (64, 8), (128, 4), (128, 8),
    ]  # fmt: skip
    assert [note.partition(" is")[0] for note in found.notes] == ["config 3", "config 4"]


def test_the_innermost_stride_is_one(tmp_path):
    text = """
@triton.jit
def k(p, stride_m, stride_n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(p + i[:, None] * stride_m + i[None, :] * stride_n, 1.0)
"""
    assert signature(derive(tmp_path, text)) == {"p": "*fp32", "stride_m": "i32", "stride_n": 1, "B": 1024 // 32}


def test_a_kernel_that_triton_never_accepts_is_not_launched(tmp_path):
    with pytest.raises(TranslationError) as caught:
        derive(tmp_path, "@triton.jit\ndef k(p):\n    tl.store(p, undefined_name)\n")
    (found,) = caught.value.diagnostics
    assert found.code == "spec-not-found" and "undefined_name is not defined" in found.why
    assert found.line == 8 and "no value of an argument helps" in found.help and "capture" not in found.help


@pytest.mark.parametrize(
    "statement, why, help",
    [("v = tl.no_such(v)", "no_such", "this version of Triton"),
     ("v = inner(v)", "missing", "define the name"), ("v = tl.dot(v, n)", "", "--set (it comes from"), ("v = v + LATER", "not evaluated statically", "globals")],
)  # fmt: skip
def test_a_refusal_says_its_cause_its_line_in_the_file_and_what_helps(tmp_path, statement, why, help):
    text = f"""
import os

LATER = tl.constexpr(os.getpid())


@triton.jit
def inner(v):

    return v + missing


@triton.jit
def k(x, n, B: tl.constexpr):
    v = tl.load(x + tl.arange(0, B))
    {statement}
    tl.store(x + tl.arange(0, B), v)
"""
    with pytest.raises(TranslationError) as caught:
        derive(tmp_path, text)
    (found,) = caught.value.diagnostics
    lines = (tmp_path / "m.py").read_text().splitlines()
    assert ("missing" if "inner" in statement else statement) in lines[found.line - 1]
    assert why in found.why and help in found.help


class Accepting:
    """A judge that says yes, and remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __call__(self, spec):
        self.asked.append(spec)
        return Verdict(True)


def test_what_is_set_is_taken_and_nothing_else_changes(tmp_path):
    plain = signature(derive(tmp_path, ROW))
    judge = Accepting()
    found = derive(tmp_path, ROW, "k.x_ptr=torch.float16", "BLOCK=64", "other.BLOCK=7", judging=lambda loaded: judge)
    assert signature(found) == {**plain, "x_ptr": "*fp16", "BLOCK": 64} and row(found, "BLOCK").confidence == "given"


@pytest.mark.parametrize("text", ["fp32", "tl.float32", "torch.float32", "float32"])
def test_types_have_many_spellings(text):
    assert parse_settings([f"k.D={text}"]) == {"k.D": "fp32"}


def test_a_dtype_can_be_set_by_any_spelling(tmp_path):
    text = "@triton.jit\ndef k(p, D: tl.constexpr):\n    tl.store(p, tl.load(p).to(D))\n"
    assert signature(derive(tmp_path, text, "D=torch.float16"))["D"] == {"$dtype": "fp16"}


def test_a_front_end_that_dies_costs_one_question(tmp_path):
    found = derive(tmp_path, ROW)
    from gluonize.read.kernels.load import load_kernel

    loaded = load_kernel(str(tmp_path / "m.py"), "k", globals={}, search_path=[])
    with FrontEndJudge(loaded, "gfx950") as judge:
        assert judge(found.launches[0]).accepted
        judge._connection.send(None)  # no launch at all: the child dies of it
        assert not judge._connection.poll(20) or _closed(judge._connection)
        judge._end()
        assert judge(found.launches[0]).accepted


def _closed(connection):
    try:
        connection.recv()
    except EOFError:
        return True
    return False


def test_helpers_are_not_launched(tmp_path):
    (tmp_path / "m.py").write_text(HEAD + "@triton.jit\ndef add(x):\n    return x + 1\n")
    with pytest.raises(TranslationError) as caught:
        launchable_kernels(str(tmp_path / "m.py"))
    assert caught.value.diagnostics[0].code == "source-no-kernels"


def test_a_first_stride_alone_is_not_taken_for_that_of_a_vector(tmp_path):
    host = (
        "\ndef run(ctx):\n    x, out = ctx.saved_tensors\n    k[(1,)](x, out, x.stride(0), x.shape[1], 0.5, BLOCK=64)\n"
    )
    assert signature(derive(tmp_path, ROW + host))["row_stride"] == "i32"


def test_of_many_configs_those_are_taken_that_have_every_value(tmp_path):
    text = "@triton.autotune(configs=[triton.Config({'B': b}, num_warps=w, num_stages=s) for b in (64, 128) for w in (1, 2, 4) for s in (1, 2)], key=[])\n"
    text += "@triton.jit\ndef k(p, B: tl.constexpr):\n    tl.store(p + tl.arange(0, B), 1.0)\n"
    found = derive(tmp_path, text)
    taken = [(x.constexprs["B"], x.options["num_warps"], x.options["num_stages"]) for x in found.launches]
    assert taken == [(64, 1, 1), (64, 1, 2), (64, 2, 1), (64, 4, 1), (128, 1, 1)]
    assert "7 of 12 autotune configs are left out" in found.notes[0]


SIZED = """
def run(x: torch.Tensor, eps: float = 1e-5):
    M, head_dim = x.shape
    out = torch.empty_like(x)
    k[(M,)](x, out, x.stride(0), head_dim, eps, BLOCK=triton.next_power_of_2(head_dim))
"""


def test_what_is_set_for_one_tensor_holds_for_those_made_like_it(tmp_path):
    assert signature(derive(tmp_path, ROW + SIZED, "k.x_ptr=*fp16"))["out_ptr"] == "*fp16"


def test_what_host_code_computes_follows_what_is_set(tmp_path):
    found = derive(tmp_path, ROW + SIZED, "n_cols=200")
    assert signature(found)["n_cols"] == 200 and signature(found)["BLOCK"] == 256


STRIDES = """
@triton.jit
def k(x, out, n, stride_x, stride_out, B: tl.constexpr):
    r, c = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    v = tl.load(x + tl.program_id(0) * stride_x[0] + r * stride_x[1] + c * stride_x[2], mask=c < n)
    tl.store(out + tl.program_id(0) * stride_out[0] + r * stride_out[1] + c * stride_out[2], v, mask=c < n)
"""


def test_an_argument_whose_items_are_used_is_a_tuple(tmp_path):
    found = derive(tmp_path, STRIDES)
    (spec,) = found.launches
    assert spec.signature["stride_x"] == spec.signature["stride_out"] == ["i32", "i32", "constexpr"]
    assert spec.constexprs["stride_x"] == [None, None, 1] and spec.attrs["stride_x"] == ["D", "D", ""]


def test_a_tuple_of_strides_is_what_host_code_passes(tmp_path):
    host = """
def run(x: torch.Tensor):
    b, m, n = x.shape
    out = torch.empty(b, n, m, dtype=x.dtype)
    k[(b,)](x, out, n, x.stride(), (out.stride(0), 1, out.stride(1)), B=32)
"""
    (spec,) = derive(tmp_path, STRIDES + host).launches
    assert spec.signature["stride_x"] == ["i32", "i32", "constexpr"]
    assert spec.signature["stride_out"] == ["i32", "constexpr", "i32"] and spec.constexprs["stride_out"][1] == 1


def test_a_tuple_is_set_as_it_is_shown(tmp_path):
    shown = row(derive(tmp_path, STRIDES), "stride_x").value
    assert shown == '["i32", "i32", 1]'
    found = derive(tmp_path, STRIDES, f"stride_x={shown}", 'stride_out=["i64", 1, "i32"]')
    assert row(found, "stride_x").value == shown and row(found, "stride_x").confidence == "given"
    (spec,) = found.launches
    assert spec.signature["stride_out"] == ["i64", "constexpr", "i32"]


def test_a_type_that_host_code_does_not_say_is_found_by_the_front_end(tmp_path):
    text = """
@triton.jit
def k(x, out, D: tl.constexpr, B: tl.constexpr):
    y = tl.load(x + tl.arange(0, B)).to(D)
    tl.store(out + tl.arange(0, B), y << 2)

def run(x, dtype):
    k[(1,)](x, torch.empty(4, dtype=dtype), dtype, 64)
"""
    found = derive(tmp_path, text)
    assert signature(found)["D"] == {"$dtype": "int32"} and row(found, "out").confidence != "read"


def test_an_argument_that_is_a_tensor_or_a_number(tmp_path):
    text = """
@triton.heuristics({"IS_TENSOR": lambda args: isinstance(args["n"], torch.Tensor)})
@triton.jit
def k(x, n, IS_TENSOR: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    if IS_TENSOR:
        count = tl.load(n)
    else:
        count = n
    tl.store(x + i, 1.0, mask=i < count)
"""
    assert signature(derive(tmp_path, text))["IS_TENSOR"] is True


def test_two_refusals_at_one_place_are_mended_one_after_the_other(tmp_path):
    text = """
@triton.jit
def k(x, low, high, N: tl.constexpr):
    b_low = tl.load(low)
    b_high = tl.load(high)
    for i in range(N):
        y = tl.load(x + i).to(tl.float32)
        b_low = b_low + y
        b_high = b_high - y
    tl.store(low, b_low.to(low.dtype.element_ty))
    tl.store(high, b_high.to(high.dtype.element_ty))
"""
    found = signature(derive(tmp_path, text))
    assert (found["low"], found["high"]) == ("*fp32", "*fp32")


COPY = """
@triton.jit
def k(
    x_ptr,{comment}
    out_ptr, n,
    BLOCK: tl.constexpr,
):
    '''{docstring}'''
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
"""


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "comment, docstring, expected",
    [
        ("  # (n,), bfloat16", "", "*bf16"),
        ("  # *fp16 [n]", "", "*fp16"),
        ("  # indices, torch.int32 or torch.int64", "", "*i32"),
        ("", "Copies.\n\n    x_ptr: pointer to the values,\n        float16, contiguous\n    n: int32\n    ", "*fp16"),
        ("", "Args:\n        x_ptr (tl.pointer_type, int8): quantized\n        out_ptr: fp32\n    ", "*i8"),
        ("", ":param x_ptr: ``float8_e4m3fn`` of shape (n,)", "*fp8e4nv"),
        (
            "  # the input, converted to fp32",
            "x_ptr: summed in float32",
            None,
        ),  # nothing is said: as where nothing is known
        ("  # of int values", "n: fp16", None),
    ],
)
def test_what_comments_and_docstrings_say(tmp_path, comment, docstring, expected):
    found = derive(tmp_path, COPY.format(comment=comment, docstring=docstring))
    assert signature(found)["x_ptr"] == (expected or "*bf16")
    said = "what the source says of x_ptr" == row(found, "x_ptr").why
    assert said == (expected is not None)


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "condition, expected",
    [
        ("x.dtype == torch.float16", "*fp16"),
        ("x.is_contiguous() and x.dtype in (torch.int32, torch.int64)", "*i64"),  # torch's own
        ("x.dtype in (torch.float16, torch.bfloat16)", "*bf16"),  # as without the condition
        ("torch.bfloat16 == x.dtype", "*bf16"),
        ("out.dtype == torch.float16 and x.dtype == out.dtype", "*fp16"),
        ("x.dtype != torch.float16", "*bf16"),  # says nothing: what models run in
    ],
)
def test_what_host_code_asserts_of_types(tmp_path, condition, expected):
    host = f"""
def run(x, out):
    assert {condition}, "types"
    k[(1,)](x, out, x.numel(), BLOCK=128)
"""
    found = derive(tmp_path, COPY.format(comment="", docstring="") + host)
    assert signature(found)["x_ptr"] == expected


SPREAD = """
@triton.jit
def k(a, b, c, N, sam, sak, sbk, sbn, scm, scn, FLAG: tl.constexpr, B: tl.constexpr):
    i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    x = tl.load(a + i * sam + j * sak) + tl.load(b + i * sbk + j * sbn)
    if FLAG:
        x += 1
    tl.store(c + i * scm + j * scn, x, mask=j < N)


def run(x: torch.Tensor, w: torch.Tensor):
    M, K = x.shape
    N = w.shape[0]
    out = torch.empty(M, N, dtype=x.dtype)
    k[(1,)](x, w.VIEW, out, N, *x.stride(), *w.VIEW.stride(), *out.stride(), FLAG=True, B=16)
"""


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "view, of_w",
    [("t()", {"sbk": 1, "sbn": "i32"}), ("T", {"sbk": 1, "sbn": "i32"}), ("contiguous()", {"sbk": "i32", "sbn": 1}),
     ("transpose(0, 1)", {"sbk": 1, "sbn": "i32"}), ("permute(1, 0)", {"sbk": 1, "sbn": "i32"}),
     ("t().t()", {"sbk": "i32", "sbn": 1})],
)  # fmt: skip
def test_strides_are_spread_over_the_arguments_also_those_of_views(tmp_path, view, of_w):
    strides = {"sam": "i32", "sak": 1, **of_w, "scm": "i32", "scn": 1}
    found = signature(derive(tmp_path, SPREAD.replace("VIEW", view)))
    assert {name: found[name] for name in strides} == strides and found["FLAG"] is True


def test_what_is_spread_and_does_not_fit_what_has_names_is_not_taken(tmp_path):
    text = SPREAD.replace("VIEW", "t()").replace("*out.stride(), FLAG", "*out.stride(), scn=3, FLAG")
    assert signature(derive(tmp_path, text))["sbk"] == "i32"


DESCRIBED = """
from triton.tools.tensor_descriptor import TensorDescriptor


class Tiles:
    m = 32


def set_tiles(nargs):
    if isinstance(nargs["a"], TensorDescriptor):
        nargs["a"].block_shape = [nargs["BM"], 16]


DECORATED@triton.jit
def k(a, b, out, BM: tl.constexpr):
    x = a.load([tl.program_id(0) * BM, 0])
    tl.store(out + tl.arange(0, BM)[:, None] * 16 + tl.arange(0, 16)[None, :], x.to(tl.float32) + b.load([0, 0]))


def run(x: torch.Tensor, w: torch.Tensor, out, tiles=None):
    tiles = tiles or Tiles()
    a = TensorDescriptor.from_tensor(x.to(torch.float16), [TILE, 16])
    b = TensorDescriptor(w.to(torch.int8), w.shape, w.stride(), block_shape=[TILE, 16])
    k[(1,)](a, b, out, PASSED)
"""


def test_descriptors_have_the_type_of_their_tensor_and_their_tile(tmp_path):
    text = DESCRIBED.replace("DECORATED", "").replace("TILE", "64").replace("PASSED", "BM=64")
    found = signature(derive(tmp_path, text))
    assert (found["a"], found["b"]) == ("tensordesc<fp16[64, 16]>", "tensordesc<i8[64, 16]>")


def test_a_tile_that_is_not_known_is_that_of_the_argument_that_is_passed_too(tmp_path):
    text = DESCRIBED.replace("DECORATED", "").replace("TILE", "tiles.m").replace("PASSED", "BM=tiles.m")
    found = signature(derive(tmp_path, text))
    assert found["a"] == f"tensordesc<fp16[{found['BM']}, 16]>"


def test_hooks_of_configs_set_tiles(tmp_path):
    configs = 'configs=[triton.Config({"BM": m}, num_warps=m // 16, pre_hook=set_tiles) for m in (32, 64)]'
    text = DESCRIBED.replace("DECORATED", f"@triton.autotune({configs}, key=[])\n").replace(", PASSED", "")
    text = text.replace("[TILE, 16])\n    b", "[1, 1])\n    b").replace("b.load([0, 0])", "1.0").replace("TILE", "32")
    found = derive(tmp_path, text)
    assert [signature(found, i)["a"] for i in (0, 1)] == ["tensordesc<fp16[32, 16]>", "tensordesc<fp16[64, 16]>"]


MODES = """
@triton.jit
def k(x, out, n, MODE: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    if MODE == {0!r}:
        v = tl.maximum(v, 0.0)
    elif MODE == {1!r}:
        v = v * tl.sigmoid(v)
    else:
        v = v + 1.0
    tl.store(out + i, v, mask=i < n)


def run(x, mode={0!r}):
    out = torch.empty_like(x)
    k[(1,)](x, out, x.numel(), MODE=mode, B=64)
    return out
"""


@pytest.mark.parametrize("modes, expected", [(("relu", "silu"), ["relu", "silu", None]), ((0, 1), [0, 1])])
def test_a_mode_that_host_code_passes_on_has_each_value_that_it_is_compared_with(tmp_path, modes, expected):
    found = derive(tmp_path, MODES.format(*modes))
    assert [spec.constexprs["MODE"] for spec in found.launches] == expected
    assert row(found, "MODE").why == "`mode` at line 22"


def test_products_that_are_added_to_integers_have_operands_of_8_bits(tmp_path):
    found = derive(
        tmp_path,
        """
@triton.jit
def k(a_ptr, b_ptr, s_ptr, out_ptr, K, B: tl.constexpr, ACC: tl.constexpr = tl.int32):
    i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    acc = tl.zeros((B, B), dtype=ACC)
    for k in range(0, K, B):
        acc += tl.dot(tl.load(a_ptr + i * K + j + k), tl.load(b_ptr + (i + k) * B + j))
    tl.store(out_ptr + i * B + j, acc * tl.load(s_ptr + i))
""",
    )
    assert [signature(found)[name] for name in ("a_ptr", "b_ptr", "s_ptr")] == ["*i8", "*i8", "*bf16"]


def test_an_attribute_of_a_computed_name_that_is_none_is_not_known(tmp_path):
    call = "    k[(1,)](x, out, getattr(x, which), B=64)\n"
    text = (
        MODES.format(0, 1)
        .replace("    k[(1,)](x, out, x.numel(), MODE=mode, B=64)\n", call)
        .replace("mode=0", "which=3")
    )
    found = derive(tmp_path, text)
    assert found.launches and row(found, "n").why != "`getattr(x, which)` at line 22"


SCALED = """
@triton.jit
def k(x_ptr, xs_ptr, w_ptr, ws_ptr, out_ptr, K, B: tl.constexpr, FORMAT: tl.constexpr):
    i, j, s = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :], tl.arange(0, B // 32)[None, :]
    acc = tl.zeros((B, B), dtype=tl.float32)
    for k in range(0, K, B):
        x, w = tl.load(x_ptr + i * K + j + k), tl.load(w_ptr + j * K + i + k)
        xs, ws = tl.load(xs_ptr + i * K + s), tl.load(ws_ptr + i * K + s)
        acc += tl.dot_scaled(x, xs, WRITTEN, w, ws, WRITTEN)
    tl.store(out_ptr + i * B + j, acc.to(out_ptr.dtype.element_ty))


def run(x, xs, w, ws, out):
    k[(1,)](x, xs, w, ws, out, x.shape[1], B=128, FORMAT="e5m2")
"""


@pytest.mark.parametrize("written, kind", [('"e4m3"', "fp8e4nv"), ("FORMAT", "fp8e5")])
def test_operands_of_scaled_products_are_in_their_format(tmp_path, written, kind):
    found = signature(derive(tmp_path, SCALED.replace("WRITTEN", written)))
    assert [found[n] for n in ("x_ptr", "w_ptr")] == [f"*{kind}"] * 2
    assert [found[n] for n in ("xs_ptr", "ws_ptr")] == ["*u8"] * 2


def test_the_result_of_a_product_is_not_in_8_bits(tmp_path):
    named = SCALED.replace("def k(", "def mxfp8_k(").replace("    k[", "    mxfp8_k[").replace("WRITTEN", '"e4m3"')
    assert signature(derive(tmp_path, named, kernel="mxfp8_k"))["out_ptr"] == "*bf16"


@pytest.mark.parametrize("passed", ["many // few", "group"])
def test_a_quotient_of_sizes_that_were_made_up_is_not_zero(tmp_path, passed):
    """Of heads for each head of keys and values, of which names say nothing; one of numbers that are written stays what it is."""
    text = """
@triton.jit
def k(q_ptr, kv_ptr, GROUP: tl.constexpr, PART: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    q = tl.load(q_ptr + i, mask=i < GROUP)
    tl.store(kv_ptr + i, q + PART)


def run(q, kv):
    _, _, few = q.shape[0], q.shape[1], kv.shape[0]
    many = q.shape[2]
    group = many // few
    half = 16
    k[(1,)](q, kv, GROUP=PASSED, PART=half // 32, B=64)
""".replace("PASSED", passed)
    found = signature(derive(tmp_path, text))
    assert (found["GROUP"], found["PART"]) == (1, 0)
