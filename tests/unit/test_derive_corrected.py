"""Correcting a guess as the table says: what is set is in the launches, the first time, and nothing else is lost."""

import json

import pytest
from translation_of import TWICE_AND_THRICE

from gluonize.read.launches.derivation import derive_kernel
from gluonize.read.launches.derive.set_options import parse_settings, settings_for
from gluonize.trace.acceptance import FrontEndJudge

HEAD = """
import torch
import triton
import triton.language as tl


"""
TEXT = HEAD + TWICE_AND_THRICE + """@triton.jit
def rows(x_ptr, at_ptr, bias_ptr, out_ptr, stride_x, n_cols, eps, FN: tl.constexpr, KIND: tl.constexpr, OUT: tl.constexpr,
         SQUARE: tl.constexpr, HAS_BIAS: tl.constexpr, PARTS: tl.constexpr, HOW: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(at_ptr + tl.program_id(0)) * stride_x
    x = tl.load(x_ptr + row + i, mask=i < n_cols, eviction_policy=HOW).to(tl.float32)
    if HAS_BIAS:
        x += tl.load(bias_ptr + i, mask=i < n_cols)
    if SQUARE:
        x = x * x
    if KIND == "mean":
        x = x / n_cols
    elif KIND == "sum":
        x = x + eps
    for _ in tl.static_range(PARTS):
        x = FN(x)
    tl.store(out_ptr + row + i, x.to(OUT), mask=i < n_cols)


@triton.autotune([triton.Config({"BLOCK_K": 32}), triton.Config({"BLOCK_K": 64})], key=["K"])
@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BLOCK_K"] == 0})
@triton.jit
def product(a_ptr, b_ptr, c_ptr, bias_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, ACTIVATION: tl.constexpr,
            BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, EVEN_K: tl.constexpr):
    m, n, k = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + m[:, None] * stride_am + (start + k)[None, :] * stride_ak)
        b = tl.load(b_ptr + (start + k)[:, None] * stride_bk + n[None, :] * stride_bn)
        total = tl.dot(a, b, total)
    if bias_ptr is not None:
        total += tl.load(bias_ptr + n)[None, :]
    if ACTIVATION == "relu":
        total = tl.maximum(total, 0.0)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total.to(c_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def multiply(a: torch.Tensor, b: torch.Tensor, bias=None, activation: str = ""):
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), dtype=a.dtype)
    product[(1,)](a, b, c, bias, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), activation, BLOCK_M=64, BLOCK_N=64)
"""

# What is given to --set, the argument, and what it is in the launches: a type, or a value.
CORRECTIONS = [
    ("rows.x_ptr=*fp16", "x_ptr", "*fp16"),
    ("rows.x_ptr=*torch.float32", "x_ptr", "*fp32"),
    ("rows.x_ptr=tl.float16", "x_ptr", "*fp16"),
    ("rows.at_ptr=*i32", "at_ptr", "*i32"),
    ("rows.out_ptr=*fp8e4nv", "out_ptr", "*fp8e4nv"),
    ("rows.n_cols=i64", "n_cols", "i64"),
    ("rows.n_cols=200", "n_cols", 200),
    ("rows.stride_x=1", "stride_x", 1),
    ("rows.eps=fp64", "eps", "fp64"),
    ("rows.eps=1e-5", "eps", 1e-5),
    ("rows.BLOCK=256", "BLOCK", 256),
    ("rows.PARTS=2", "PARTS", 2),
    ("rows.SQUARE=True", "SQUARE", True),
    ("rows.SQUARE=true", "SQUARE", True),
    ("rows.HAS_BIAS=True", "HAS_BIAS", True),
    ("rows.KIND=sum", "KIND", "sum"),
    ("rows.KIND='none'", "KIND", "none"),
    ('rows.KIND="sum"', "KIND", "sum"),
    ("rows.HOW=evict_first", "HOW", "evict_first"),
    ("rows.OUT=fp16", "OUT", {"$dtype": "fp16"}),
    ("rows.OUT=torch.bfloat16", "OUT", {"$dtype": "bf16"}),
    ("rows.FN=thrice", "FN", "thrice"),
    ("BLOCK=128", "BLOCK", 128),
    ("product.a_ptr=*fp16", "a_ptr", "*fp16"),
    ("product.K=96", "K", 96),
    ("product.bias_ptr=*fp16", "bias_ptr", "*fp16"),
    ("product.bias_ptr=None", "bias_ptr", None),
    ("product.ACTIVATION=relu", "ACTIVATION", "relu"),
    ("product.BLOCK_M=128", "BLOCK_M", 128),
    ("product.BLOCK_K=16", "BLOCK_K", 16),
    ("product.EVEN_K=False", "EVEN_K", False),
    ("product.stride_ak=i32", "stride_ak", "i32"),
]


def derive(folder, kernel, *settings):
    path = folder / "m.py"
    path.write_text(TEXT)
    given = settings_for(parse_settings(settings), kernel)
    return derive_kernel(str(path), kernel, lambda loaded: FrontEndJudge(loaded, "gfx950"), settings=given)


def value_of(spec, name):
    found = spec.constexprs[name] if spec.signature[name] == "constexpr" else spec.signature[name]
    return found["$jit"].rpartition(":")[2] if isinstance(found, dict) and "$jit" in found else found


@pytest.mark.one_of(4)
@pytest.mark.parametrize("setting, name, expected", CORRECTIONS, ids=[setting for setting, _, _ in CORRECTIONS])
def test_a_correction_is_taken_the_first_time(tmp_path, setting, name, expected):
    kernel = setting.partition(".")[0] if "." in setting.partition("=")[0] else "rows"
    found = derive(tmp_path, kernel, setting)
    assert [value_of(spec, name) for spec in found.launches] == [expected] * len(found.launches)
    assert next(row for row in found.rows if row.name == name).confidence == "given" and not found.notes
    keys = [json.dumps([s.signature, s.constexprs, s.options], sort_keys=True) for s in found.launches]
    assert len(set(keys)) == len(keys)  # no launch twice


def test_the_line_that_is_printed_changes_nothing(tmp_path):
    for kernel in ("rows", "product"):
        plain = derive(tmp_path, kernel)
        again = derive(tmp_path, kernel, *plain.set_words())
        assert again.launches[0].signature == plain.launches[0].signature
        assert again.launches[0].constexprs == plain.launches[0].constexprs
