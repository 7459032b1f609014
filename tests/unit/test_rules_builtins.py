"""The rows of `rules/builtins.py` against the Triton that is installed, and a translation for each row."""

import json

import pytest
import triton.language as tl
from triton.experimental.gluon import language as gl
from triton.runtime.jit import JITCallable

from rules.builtins import BY_NAME, ROWS
from translator.lowering.worker import WorkerPool
from translator.request import TranslateRequest
from translator.source.launch_spec import parse_launches


def is_callable_in_kernels(value) -> bool:
    return getattr(value, "__triton_builtin__", False) or isinstance(value, JITCallable)


EXPORTED = sorted(name for name in tl.__all__ if is_callable_in_kernels(getattr(tl, name)))
METHODS = sorted(
    name for name, value in vars(tl.tensor).items() if not name.startswith("_") and is_callable_in_kernels(value)
)
# Rows for names that are neither in triton.language nor methods of tensors.
ELSEWHERE = {
    "mulhi": "libdevice",
    "tanh": "libdevice",
    "pow": "libdevice",
    "ravel_index": "called by Triton's own library",
    "advance": "gone since 3.9, refused by name",
    "make_block_ptr": "gone since 3.9, refused by name",
}


@pytest.mark.parametrize("name", EXPORTED)
def test_every_builtin_of_triton_has_a_row(name):
    assert name in BY_NAME, f"Triton exports tl.{name}, and rules/builtins.py has no row for it"


@pytest.mark.parametrize("name", METHODS)
def test_every_method_of_a_tensor_has_a_row(name):
    assert name in BY_NAME, f"tensors have a method {name}, and rules/builtins.py has no row for it"


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_every_row_is_about_something_that_exists(name):
    known = name in tl.__all__ or name in ELSEWHERE or hasattr(tl.tensor, name)
    assert known, f"the row {name} is about nothing that this Triton has"


@pytest.mark.parametrize("row", [row for row in ROWS if row.gluon], ids=lambda row: row.name)
def test_spellings_in_gluon_exist(row):
    module, _, name = row.gluon.partition(".")
    assert hasattr({"gl": gl, "tl": tl}[module], name), f"{row.name}: there is no {row.gluon}"


def test_refusals_say_what_to_do():
    assert [row.name for row in ROWS if row.kind == "refuse" and not row.note] == []


# What a row is tried with: `x` is a block of 64 floats, `i` of 64 integers, `m` a block of 16 x 16 floats, `k` a block of
# 64 conditions; the result is a tensor. Rows without an expression of their own take the one of their kind.
UNARY = "abs exp exp2 log log2 sin cos sqrt sqrt_rn rsqrt floor ceil erf sigmoid"
BINARY = "add sub mul maximum minimum fdiv div_rn"
EXPRESSIONS = {
    **{name: f"tl.{name}(x)" for name in UNARY.split()},
    **{name: f"tl.{name}(x, x)" for name in BINARY.split()},
    **{name: f"tl.{name}(x, 0) + x" for name in "sum max min".split()},
    **{name: f"tl.{name}(i, 0) + x" for name in "xor_sum reduce_or argmax argmin".split()},
    **{name: f"tl.{name}(x, 0)" for name in "cumsum cumprod".split()},
    **{name: f"tl.{name}(7, i)" for name in "rand randn randint".split()},
    **{name: f"tl.{name}(7, i)[0]" for name in "randint4x rand4x randn4x".split()},
    "softmax": "tl.softmax(m, 0).reshape([256])[None, :].sum(0).sum(0) + x",
    "where": "tl.where(k, x, 0.0)",
    "clamp": "tl.clamp(x, 0.0, 1.0)",
    "fma": "tl.fma(x, x, x)",
    "cast": "tl.cast(i, tl.float32)",
    "to": "i.to(tl.float32)",
    "umulhi": "tl.umulhi(i, i)",
    "cdiv": "tl.cdiv(i, 3)",
    "logical_and": "k.logical_and(k)",
    "logical_or": "k.logical_or(k)",
    "multiple_of": "tl.multiple_of(i, 1)",
    "max_contiguous": "tl.max_contiguous(i, 1)",
    "max_constancy": "tl.max_constancy(i, 1)",
    "arange": "tl.arange(0, 64)",
    "full": "tl.full([64], 3.0, tl.float32)",
    "zeros": "tl.zeros([64], tl.float32)",
    "zeros_like": "tl.zeros_like(x)",
    "expand_dims": "tl.expand_dims(tl.sum(m, 1), 1).broadcast_to([16, 4]).reshape([64])",
    "broadcast_to": "tl.broadcast_to(tl.expand_dims(x, 1), [64, 2]).sum(1)",
    "broadcast": "tl.broadcast(x, tl.zeros([64], tl.float32))[0]",
    "reshape": "tl.reshape(x, [8, 8]).reshape([64])",
    "view": "tl.view(x, [8, 8]).reshape([64])",
    "ravel": "tl.ravel(tl.reshape(x, [8, 8]))",
    "trans": "tl.trans(tl.reshape(x, [8, 8])).reshape([64])",
    "permute": "tl.permute(tl.reshape(x, [8, 8]), [1, 0]).reshape([64])",
    "join": "tl.join(x, x).sum(1)",
    "split": "tl.split(tl.join(x, x))[0]",
    "interleave": "tl.interleave(x, x).reshape([64, 2]).sum(1)",
    "cat": "tl.cat(x, x, can_reorder=True).reshape([64, 2]).sum(1)",
    "squeeze": "tl.squeeze(tl.expand_dims(x, 0), 0)",
    "unsqueeze": "tl.unsqueeze(x, 0).sum(0)",
    "flip": "tl.flip(x)",
    "sort": "tl.sort(x)",
    "topk": "tl.topk(x, 16).sum(0) + x",
    "gather": "tl.gather(x, i, 0)",
    "histogram": "tl.histogram(i, 64)",
    "dot": "tl.dot(m, m).reshape([256, 1]).sum(1).sum(0) + x",
    "swizzle2d": "tl.swizzle2d(i, i, 8, 8, 4)[0]",
    "item": "tl.load(x_ptr + tl.arange(0, 1)).item() + x",
    "load": "tl.load(x_ptr + i)",
    "num_programs": "tl.num_programs(0) + x",
    "program_id": "tl.program_id(0) + x",
    "atomic_add": "tl.atomic_add(y_ptr + i, x)",
    "atomic_max": "tl.atomic_max(y_ptr + i, x)",
    "atomic_min": "tl.atomic_min(y_ptr + i, x)",
    "atomic_xchg": "tl.atomic_xchg(y_ptr + i, x)",
}
KERNEL = """
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, y_ptr):
    i = tl.arange(0, 64)
    r = tl.arange(0, 16)
    x = tl.load(x_ptr + i)
    m = tl.load(x_ptr + r[:, None] * 16 + r[None, :])
    k = x > 0
    y = {expression}
    tl.store(y_ptr + tl.arange(0, 64), y)
"""


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(1) as found:
        yield found


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_each_row_is_translated(name, pool, tmp_path):
    """By the translator itself, for a 64-lane target; whether the code is right is for the fixtures to say."""
    assert name in BY_NAME
    path = tmp_path / "row.py"
    path.write_text(KERNEL.format(expression=EXPRESSIONS[name]))
    launch = {"kernel": "row_kernel", "signature": {"x_ptr": "*fp32", "y_ptr": "*fp32"}, "attrs": {"x_ptr": "DS"}}
    request = TranslateRequest(str(path), "gfx942", launches=tuple(parse_launches(json.dumps(launch))))
    result = pool.call("translator.translation:translate_kernel", request)
    found = [d.render() for outcome in result.outcomes for d in (*outcome.diagnostics, *result.diagnostics)]
    assert result.status == "translated", found
    assert "import triton.language" not in result.text.split("def row_kernel")[0] or "tl." in result.text
