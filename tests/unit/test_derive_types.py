"""Types of pointers that are made up: what host code, its callers and copies tell of them, and the default."""

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.read.launches.derivation import derive_kernel
from gluonize.read.launches.derive.set_options import parse_settings, settings_for
from gluonize.trace.acceptance import FrontEndJudge

HEAD = "import functools\nimport torch\nimport triton\nimport triton.language as tl\nraise SystemExit\n"


def derive(folder, text, *settings):
    path = folder / "m.py"
    path.write_text(HEAD + text)
    given = settings_for(parse_settings(settings), "k")
    return derive_kernel(str(path), "k", lambda loaded: FrontEndJudge(loaded, "gfx950"), settings=given)


def types(found):
    return {name: kind for name, kind in found.launches[0].signature.items() if kind.startswith("*")}


def row(found, name):
    return next(row for row in found.rows if row.name == name)


SUM = """
@triton.jit
def k(x, g, out, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i).to(tl.float32) * tl.load(g + i).to(tl.float32)
    tl.store(out + i, value.to(out.dtype.element_ty))


def inner(x, g):
    out = torch.empty_like(x)
    k[(1,)](x, g, out, B=64)
    return out
"""


@pytest.mark.parametrize(
    "made, expected",
    [
        ("torch.empty_like(x, dtype=torch.float32)", "*fp32"),
        ("scaled(x)", "*fp16"),
        ("twice(x)", "*fp16"),
        ("unknown(x)", "*bf16"),
    ],
)
def test_a_type_that_only_a_caller_shows(tmp_path, made, expected):
    text = f"""
def checked(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)
    return wrapper

def scaled(y):
    return y.to(torch.float16)

@checked
def twice(y):
    return scaled(y * 2)

def outer(x: torch.Tensor):
    g = {made}
    return inner(x, g)
"""
    found = derive(tmp_path, SUM + text)
    assert types(found) == {"x": "*bf16", "g": expected, "out": "*bf16"}
    assert row(found, "g").confidence == "use"
    assert ("passes it so" in row(found, "g").why) == (expected != "*bf16")


def test_a_caller_in_another_file_and_callers_of_callers(tmp_path):
    package = tmp_path / "p"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "top.py").write_text(
        "import torch\nfrom p.middle import middle\n\ndef top(x):\n    return middle(x, x.half())\n"
    )
    (package / "middle.py").write_text("from p.m import inner\n\ndef middle(x, gate):\n    return inner(x, gate)\n")
    found = derive(package, SUM)
    assert types(found) == {"x": "*bf16", "g": "*fp16", "out": "*bf16"}
    assert "top.py:5 passes it so" in row(found, "g").why


def test_tensors_that_a_caller_makes_alike_have_one_type(tmp_path):
    text = (
        "\ndef outer(x: torch.Tensor):\n    assert x.dtype == torch.float16\n    return inner(x, torch.zeros_like(x))\n"
    )
    assert set(types(derive(tmp_path, SUM + text)).values()) == {"*fp16"}


def test_what_autograd_saved(tmp_path):
    text = """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        g = torch.empty(x.shape[0], dtype=torch.float32)
        ctx.save_for_backward(x, g)
        return x

    @staticmethod
    def backward(ctx, dy):
        x, g = ctx.saved_tensors
        return inner(x, g)
"""
    assert types(derive(tmp_path, SUM + text))["g"] == "*fp32"


AUTOGRAD = """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gate, keep):
        ctx.gate = gate
        if keep is not None:
            ctx.save_for_backward(x, keep, gate)
        else:
            ctx.save_for_backward(x, gate)
        return x

    @staticmethod
    def backward(ctx, dy):
        {given}
        return inner(x, g)

def outer(x: torch.Tensor, gate: torch.Tensor):
    return F.apply(x, gate.to(torch.float16), None)
"""


@pytest.mark.parametrize("given", ["x, g = ctx.saved_tensors", "x, kept, g = ctx.saved_tensors", "x, g = dy, ctx.gate"])
def test_what_reaches_backward_from_the_call_of_apply(tmp_path, given):
    assert types(derive(tmp_path, SUM + AUTOGRAD.format(given=given))) == {"x": "*bf16", "g": "*fp16", "out": "*bf16"}


def test_what_setup_context_saves_beside_a_forward_without_ctx(tmp_path):
    text = """
class F(torch.autograd.Function):
    @staticmethod
    def forward(x, gate):
        return x, torch.empty(x.shape[0], dtype=torch.float64)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, gate = inputs
        y, total = output
        ctx.save_for_backward(GIVEN)

    @staticmethod
    def backward(ctx, dy, dtotal):
        x, g = ctx.saved_tensors
        return inner(x, g)

def outer(x: torch.Tensor, gate: torch.Tensor):
    return F.apply(x, gate.to(torch.float16))
"""
    assert types(derive(tmp_path, SUM + text.replace("GIVEN", "x, gate")))["g"] == "*fp16"
    assert types(derive(tmp_path, SUM + text.replace("GIVEN", "x, total")))["g"] == "*fp64"


@pytest.mark.parametrize(
    "body, expected",
    [
        (
            "if x.dtype in (torch.bool, torch.int32):\n        kind = torch.int64",
            "*bf16",
        ),  # nothing says that x holds integers
        ("if x.dtype != torch.int32:\n        raise TypeError\n    kind = x.dtype", "*i32"),
        ("if not (x.dtype == torch.float16):\n        raise TypeError\n    kind = x.dtype", "*fp16"),
        ("if x.dim() != 2 or x.dtype != torch.float16:\n        raise TypeError\n    kind = x.dtype", "*fp16"),
        ("if g.dtype == torch.float32:\n        kind = torch.float32", "*fp32"),
    ],
)
def test_conditions_on_types(tmp_path, body, expected):
    text = f"""
@triton.jit
def k(x, g, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, (tl.load(x + i) + tl.load(g + i)).to(out.dtype.element_ty))


def run(x: torch.Tensor):
    g = torch.empty(64, dtype=torch.float32)
    kind = x.dtype
    {body}
    out = torch.empty(x.shape[0], dtype=kind)
    k[(1,)](x, g, out, B=64)
"""
    assert types(derive(tmp_path, text))["out"] == expected


def test_a_size_that_is_asked_for_says_nothing_of_the_rank(tmp_path):
    text = """
def made(y):
    assert y.shape[0] == 1
    if len(y.shape) == 3:
        return torch.empty_like(y, dtype=torch.float16)
    raise ValueError(y.shape)

def outer(x):
    return inner(x, made(x))
"""
    assert types(derive(tmp_path, SUM + text))["g"] == "*fp16"


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "made, expected",
    [
        ("x.new_zeros(4, dtype=torch.int32)", "*i32"),
        ("torch.searchsorted(x, y)", "*i64"),
        ("torch.searchsorted(x, y, out_int32=True) - 1", "*i32"),
        ("torch.sort(x)[1]", "*i64"),
        ("x.topk(4)[1]", "*i64"),
        ("torch.empty_like(x, dtype=kind)", "*bf16"),  # not that of x
    ],
)
def test_types_of_what_the_host_makes(tmp_path, made, expected):
    text = f"""
@triton.jit
def k(x, at, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) + tl.load(at + i))


def run(x, y, out, kind):
    assert x.dtype == torch.float16
    given = dict(x=x, at={made}, out=out)
    k[(1,)](**given, B=64)
"""
    found = types(derive(tmp_path, text))
    assert found["x"] == "*fp16" and found["at"] == expected


STORE = """
@triton.jit
def {kernel}(x, a_scale, out, B: tl.constexpr):
    i = tl.arange(0, B)
    y = tl.load(x + i).to(tl.float32) / tl.load(a_scale)
    y = {value}
    tl.store(out + i, y)
k = {kernel}
"""


@pytest.mark.parametrize(
    "value, expected",
    [
        ("y * 2", "*fp32"),
        ("y.to(out.dtype.element_ty)", "*bf16"),
        ("y.to(tl.int8)", "*i8"),
        ("y.to(tl.float32)", "*fp32"),
    ],
)
def test_a_name_that_is_stored_was_converted(tmp_path, value, expected):
    assert types(derive(tmp_path, STORE.format(kernel="k", value=value)))["out"] == expected


def test_what_something_is_made_like_is_there(tmp_path):
    text = """
@triton.jit
def k(x, dw, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(dw + i, tl.load(x + i).to(tl.float32).to(dw.dtype.element_ty))

def run(x, weight=None):
    dw = torch.empty_like(weight) if weight is not None else None
    made = torch.empty_like(weight)
    k[(1,)](x, made, B=64)
"""
    assert types(derive(tmp_path, text))["dw"] == "*bf16"


@pytest.mark.parametrize(
    "said, expected",
    [("of float32", "*fp32"), ("fp16 or bf16", "*bf16"), ("a gate, computed in float32", "*bf16"),
     ("[N, C]. x: [N] int32 rows", "*bf16")],
)  # fmt: skip
def test_the_docstring_of_a_host_function(tmp_path, said, expected):
    text = SUM.replace(
        "def inner(x, g):",
        'def inner(x: torch.Tensor, g: torch.Tensor):\n    """Adds.\n\n    g (torch.Tensor): SAID\n    """',
    )
    assert types(derive(tmp_path, text.replace("SAID", said)))["g"] == expected


@pytest.mark.parametrize("passed", ["MOST", "-MOST", "MOST / 2"])
def test_a_constant_of_the_file_that_is_one_of_two_floats(tmp_path, passed):
    text = f"""
from torch.cuda import get_device_name

MOST = 224.0 if get_device_name() == "one" else torch.finfo(torch.float8_e4m3fn).max

@triton.jit
def k(x, low, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, tl.maximum(tl.load(x + i), low), mask=i < n)

def run(x):
    k[(1,)](x, {passed}, x.numel(), B=64)
"""
    assert derive(tmp_path, text).launches[0].signature["low"] == "fp32"


@pytest.mark.parametrize("passed, expected", [("int(c.least)", "i32"), ("float(c.least)", "fp32")])
def test_numbers_that_host_code_converts(tmp_path, passed, expected):
    text = f"""
@triton.jit
def k(x, least, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, least + tl.load(x + i, mask=i < n), mask=i < n)

def run(x, c):
    k[(1,)](x, {passed}, x.numel(), B=64)
"""
    assert derive(tmp_path, text).launches[0].signature["least"] == expected


def test_a_type_that_one_caller_shows_counts_more_than_likeness_to_another_tensor(tmp_path):
    text = """
def one(x: torch.Tensor):
    return inner(x, torch.empty_like(x))

def two(x: torch.Tensor):
    return inner(x, torch.empty_like(x, dtype=torch.float32))
"""
    assert types(derive(tmp_path, SUM + text))["g"] == "*fp32"


def test_a_default_of_which_only_the_host_knows_the_value(tmp_path):
    text = """
info = torch.finfo(torch.promote_types(torch.half, torch.float))

@triton.jit
def k(x, B: tl.constexpr = 64, FP8_MAX: tl.constexpr = info.max):
    i = tl.arange(0, B)
    tl.store(x + i, tl.minimum(tl.load(x + i), FP8_MAX))
"""
    assert derive(tmp_path, text).launches[0].constexprs["FP8_MAX"] == 448.0


def test_an_argument_that_has_to_be_there(tmp_path):
    text = """
@triton.jit
def k(x, at, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + tl.load(at + i), 1.0)

def run(x, start=None, at=None):
    if start is None:
        assert at is not None
    k[(1,)](x, at, B=64)
"""
    assert types(derive(tmp_path, text))["at"] == "*i64"


@pytest.mark.parametrize(
    "bound, expected", [("i", "*i64"), ("tl.program_id(0) * B + i[:, None]", "*i64"), ("tl.exp(x)", "*bf16")]
)
def test_what_is_compared_with_an_index_is_one(tmp_path, bound, expected):
    text = f"""
@triton.jit
def k(lo, out, x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.where({bound} >= tl.load(lo + i), 1.0, 0.0))
"""
    if "None" in bound:
        text = text.replace("out + i,", "out + i[:, None] + i[None, :],").replace(
            "tl.load(lo + i)", "tl.load(lo + i)[None, :]"
        )
    assert types(derive(tmp_path, text.replace("(x)", "(tl.load(x + i).to(tl.float32))")))["lo"] == expected


def test_a_tensor_that_callers_pass_is_left_out_where_nothing_is_accepted_with_it(tmp_path):
    text = """
@triton.jit
def k(x, seq, B: tl.constexpr, VARLEN: tl.constexpr):
    i = tl.arange(0, B)
    if VARLEN:
        i += tl.load(seq).no_such_method()
    tl.store(x + i, 1.0)

def inner(x, seq=None):
    k[(1,)](x, seq, B=64, VARLEN=seq is not None)

def outer(x, seq: torch.Tensor):
    inner(x, seq)
"""
    found = derive(tmp_path, text)
    assert found.launches[0].constexprs == {"seq": None, "B": 64, "VARLEN": False}


def test_scales_of_operands_of_8_bits_are_fp32(tmp_path):
    assert types(derive(tmp_path, STORE.format(kernel="k", value="y")))["a_scale"] == "*bf16"
    path = tmp_path / "quant_int8.py"
    path.write_text(HEAD + STORE.format(kernel="k", value="y"))
    found = derive_kernel(str(path), "k", lambda loaded: FrontEndJudge(loaded, "gfx950"))
    assert types(found)["a_scale"] == "*fp32"


@pytest.mark.parametrize("parameter, expected", [("USE_FP8: tl.constexpr", "*bf16"), ("fp8_scale", "*fp8e4nv")])
def test_a_flag_that_asks_for_fp8_is_no_name_of_the_kernel(tmp_path, parameter, expected):
    text = f"""
@triton.jit
def k(a, b, c, {parameter}, B: tl.constexpr):
    i = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(c + i, tl.dot(tl.load(a + i), tl.load(b + i)))
"""
    assert types(derive(tmp_path, text))["a"] == expected


def test_what_is_made_like_a_tensor_of_the_host_has_no_type_of_its_own(tmp_path):
    text = """
@triton.jit
def k(g, at, total, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(total + tl.load(at + i), tl.load(g + i))

def run(g, at, weight):
    total = {made}
    k[(1,)](g, at, total, B=64)
"""
    assert types(derive(tmp_path, text.replace("{made}", "weight")))["total"] == "*fp32"  # it is accumulated into
    found = derive(tmp_path, text.replace("{made}", "torch.zeros_like(weight)"))
    assert types(found)["total"] == "*bf16" and "the type of weight" in row(found, "total").why


def test_a_text_that_a_builtin_takes(tmp_path):
    text = """
@triton.jit
def k(x, out, HOW: tl.constexpr, WHERE: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, cache_modifier=HOW, eviction_policy=WHERE))
"""
    found = derive(tmp_path, text)
    assert (found.launches[0].constexprs["HOW"], found.launches[0].constexprs["WHERE"]) == ("", "")


COPY = """
@triton.jit
def k(x, out, total, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i)
    tl.store(out + i, value * 2)
    tl.store(total, tl.sum(value.to(tl.float32)))
"""


def test_what_is_stored_as_it_was_loaded_has_its_type(tmp_path):
    host = "\ndef f(x, out, total):\n    assert x.dtype == torch.float16\n    k[(1,)](x, out, total, B=64)\n"
    found = derive(tmp_path, COPY + host)
    assert types(found) == {"x": "*fp16", "out": "*fp16", "total": "*fp32"}
    assert row(found, "out").why == "what is stored is made of x without a conversion"


PLAIN = """
@triton.jit
def k(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, {expression})
"""


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("tl.load(x + i) + tl.load(y + i)", "*bf16"),  # nothing shows a type
        ("tl.exp(tl.load(x + i)) + tl.load(y + i)", "*fp32"),  # a function that takes no bf16
        ("(tl.load(x + i) >> 4) & 15", "*i32"),
    ],
)
def test_without_any_type_in_the_source_the_default_yields_to_the_front_end(tmp_path, expression, expected):
    found = derive(tmp_path, PLAIN.format(expression=expression))
    assert types(found)["x"] == expected
    if expected == "*bf16":
        assert row(found, "x").confidence == "name"


def test_a_number_that_the_host_leaves_out_is_what_it_is_used_as(tmp_path):
    text = """
@triton.jit
def k(x, scale, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, tl.load(x + i) * scale)

def f(x, scale=None):
    k[(1,)](x, scale, B=64)
"""
    found = derive(tmp_path, text)
    assert found.launches[0].signature["scale"] == "fp32"


def test_one_operand_of_a_bit_operation_becomes_an_integer_and_no_other_pointer(tmp_path):
    text = """
@triton.jit
def unpacked(b, SHIFT: tl.constexpr):
    return (b >> SHIFT) & 15

@triton.jit
def k(x, w, out, SHIFT: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i) * unpacked(tl.load(w + i), SHIFT)
    tl.store(out + i, value.to(out.dtype.element_ty))
"""
    assert types(derive(tmp_path, text)) == {"x": "*bf16", "w": "*i32", "out": "*bf16"}


def test_what_is_computed_in_place_of_what_a_caller_leaves_out(tmp_path):
    text = """
def middle(x: torch.Tensor, g: torch.Tensor | None):
    if g is None:
        g = x.to(torch.float16)
    return inner(x, g)

def top(x):
    return middle(x, g=None)
"""
    assert types(derive(tmp_path, SUM + text))["g"] == "*fp16"


def test_a_tensor_that_every_call_passes_is_there_whatever_its_default(tmp_path):
    text = (
        SUM.replace("def inner(x, g)", "def inner(x, g=None)")
        + "\ndef outer(x, g: torch.Tensor):\n    return inner(x, g)\n"
    )
    found = derive(tmp_path, text)
    assert types(found) == {"x": "*bf16", "g": "*bf16", "out": "*bf16"}
    assert row(found, "out").value == "*bf16" and not found.others


def test_a_function_of_several_ranks_that_refuses_all_others(tmp_path):
    text = """
def summed(y, dtype=torch.float32):
    if len(y.shape) == 3:
        return torch.empty_like(y, dtype=dtype or y.dtype)
    elif len(y.shape) == 4:
        return torch.empty_like(y, dtype=dtype or y.dtype)
    else:
        raise ValueError(y.shape)

def outer(x):
    return inner(x, summed(x))
"""
    assert types(derive(tmp_path, SUM + text))["g"] == "*fp32"


def test_of_a_pasted_line_only_what_was_corrected_is_fixed(tmp_path):
    text = """
@triton.jit
def k(a, b, c, B: tl.constexpr):
    i = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(c + i, tl.dot(tl.load(a + i), tl.load(b + i)))
"""
    line = [f"k.{row.name}={row.value}" for row in derive(tmp_path, text).guesses]
    assert "k.a=*bf16" in line and "k.b=*bf16" in line
    found = derive(tmp_path, text, *(word.replace("k.b=*bf16", "k.b=*fp16") for word in line))
    assert types(found) == {"a": "*fp16", "b": "*fp16", "c": "*fp32"}
    assert "a is *fp16, not *bf16, which goes with no launch" in found.notes
    with pytest.raises(TranslationError, match="no launch was found"):
        derive(tmp_path, text, "a=*fp16", "b=*i64")


@pytest.mark.parametrize(
    "asked, element, bits",
    [
        ("", "*bf16", "uint16"),
        ("    assert x.dtype in WIDE\n", "*fp32", "uint32"),
        ("    x = x.float()\n", "*fp32", "uint32"),
    ],
)
def test_a_table_of_types(tmp_path, asked, element, bits):
    text = f"""
BITS = {{torch.float32: tl.uint32, torch.bfloat16: tl.uint16}}
WIDE = {{torch.float32: 4}}

@triton.jit
def k(x, out, KIND: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i).to(KIND, bitcast=True) & 3)

def run(x, out):
{asked}    k[(1,)](x, out, KIND=BITS[x.dtype], B=64)
"""
    found = derive(tmp_path, text)
    assert types(found)["x"] == element and found.launches[0].constexprs["KIND"] == {"$dtype": bits}


def test_what_torch_keeps_of_an_operator_changes_no_table(tmp_path):
    text = """
KINDS = {torch.float32: tl.uint32, torch.float64: tl.uint64}

@triton.jit
def k(x, out, KIND: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i).to(KIND, bitcast=True) & 3)

@torch.library.custom_op("pkg::run", mutates_args={})
def run(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    k[(1,)](x, out, KIND=KINDS[x.dtype], B=64)
    return out

@run.register_fake
def fake(x):
    return torch.empty_like(x, dtype=other(KINDS))

def backward(ctx, grad):
    return other(KINDS)

run.register_autograd(backward, setup_context=lambda ctx, inputs, output: None)
"""
    found = derive(tmp_path, text)
    assert types(found)["x"] == "*fp32" and found.launches[0].constexprs["KIND"] == {"$dtype": "uint32"}


@pytest.mark.parametrize(
    "low, high, made, expected",
    [
        ("v & 0xF", "v >> 4", "low << 4 | high", ("*u8", "*u8")),
        ("v & 0x3", "(v >> 6) & 0x3", "low | high << 6", ("*u8", "*u8")),
        ("v & 0xF", "(v >> 28) & 0xF", "low | high << 28", ("*i32", "*i32")),
        ("v & 0xF", "(v >> (i % 8) * 4) & 0xF", "low << (i % 8) * 4", ("*i32", "*i32")),
    ],
)
def test_numbers_that_share_a_byte(tmp_path, low, high, made, expected):
    text = f"""
@triton.jit
def k(packed, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(packed + i)
    low = {low}
    high = {high}
    tl.store(out + i, {made})
"""
    found = types(derive(tmp_path, text))
    assert (found["packed"], found["out"]) == expected


FLAG = """
@triton.jit
def k(q, o, IS_BF16: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(q + i).to(tl.float32)
    if IS_BF16:
        y = x.to(tl.bfloat16)
    else:
        y = x.to(tl.float16)
    tl.store(o + i, y)


def run(q):
    q = q.transpose(0, 1)
    o = torch.empty_like(q)
    k[(1,)](q, o, IS_BF16=q.dtype == torch.bfloat16, B=64)
"""


def test_a_flag_that_asks_for_a_type_goes_with_the_type(tmp_path):
    launches = derive(tmp_path, FLAG).launches
    had = {(spec.signature["q"], spec.signature["o"], spec.constexprs["IS_BF16"]) for spec in launches}
    assert had == {("*bf16", "*bf16", True), ("*fp16", "*fp16", False)}


def test_a_tile_of_which_host_code_says_nothing_is_no_size(tmp_path):
    text = """
@triton.jit
def k(a, b, c, count, BLOCK_M: tl.constexpr):
    i = tl.arange(0, BLOCK_M)[:, None] * BLOCK_M + tl.arange(0, BLOCK_M)[None, :]
    tl.store(c + i, tl.dot(tl.load(a + i), tl.load(b + i)) * count)

def run(a, b, c, tile):
    count = a.shape[0] // tile
    k[(count,)](a, b, c, count, BLOCK_M=tile)
"""
    assert derive(tmp_path, text).launches[0].constexprs["BLOCK_M"] == 64  # of 256 x 256 none fits into LDS


def test_options_that_a_dict_is_given_by_name(tmp_path):
    text = FLAG.replace("    k[", "    opts = {}\n    opts.update({'num_stages': 3}, num_warps=8)\n    k[")
    options = derive(tmp_path, text.replace("B=64)", "B=64, **opts)")).launches[0].options
    assert options["num_warps"] == 8 and options["num_stages"] == 3


def test_a_tile_that_one_launch_says_is_that_of_another(tmp_path):
    text = """
@triton.jit
def k(a, b, c, FLAG: tl.constexpr, GROUPS: tl.constexpr):
    i = tl.arange(0, GROUPS * 16)[:, None] * 1024 + tl.arange(0, GROUPS * 16)[None, :]
    product = tl.dot(tl.load(a + i), tl.load(b + i))
    if FLAG:
        product += 1
    tl.store(c + i, product)

def run(a, b, c):
    k[(1,)](a, b, c, FLAG=False, GROUPS=4 if a.shape[0] % 128 == 0 else 2)

class Layer:
    def forward(self, a, b, c):
        FLAG, GROUPS = True, self.choose(a)
        k[(1,)](a, b, c, FLAG=FLAG, GROUPS=GROUPS)
"""
    assert [spec.constexprs["GROUPS"] for spec in derive(tmp_path, text).launches] == [4, 4]


def test_a_made_up_size_unrolls_no_loop_hundreds_of_times(tmp_path):
    text = """
@triton.jit
def k(x, out, F: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for f in tl.static_range(F):
        total += tl.load(x + i * F + f)
    tl.store(out + i, total)

def run(x, out):
    rows, F = x.shape
    k[(1,)](x, out, F=F, B=64)
"""
    assert derive(tmp_path, text).launches[0].constexprs["F"] == 16
    told = text.replace("def run(x, out):", "def run(x, out):\n    x = torch.empty(64, 96)")
    assert derive(tmp_path, told).launches[0].constexprs["F"] == 96
