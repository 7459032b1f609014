"""Constructs of the language, each in a small kernel: translated, compiled, and run against its source."""

import textwrap

import pytest
from translation_of import dedent

from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest
from gluonize.rules import ptx
from gluonize.translation import translate_kernel

TARGETS = ("gfx950", "gfx1100")
HEAD = """
import triton
import triton.language as tl


@triton.jit
def larger(a, ai, b, bi):
    t = (a > b) | ((a == b) & (ai < bi))
    return tl.where(t, a, b), tl.where(t, ai, bi)


@triton.jit
def branching(a, b):
    if a > 0:
        return a * b
    else:
        return b


"""
# name -> what the body computes from x_ptr (fp32), i_ptr (u8) and n into y_ptr; B is 32, or as in SIZES.
BODIES = {
    "zeros and constants without dimensions": """
        s = tl.max(tl.load(x_ptr + o), axis=0)
        i = tl.load(i_ptr)
        t = tl.where(s > 0, tl.zeros_like(s), s) + tl.full((), 2.0, tl.float32) + tl.zeros((), tl.int32)
        tl.store(y_ptr + o, t + tl.where(i > 1, i, tl.zeros_like(i)) + o)
    """,
    "reduce of a tuple whose parts come in other layouts": """
        x = tl.load(x_ptr + o[:, None] * B + o[None, :])
        m, mi = tl.reduce((x, tl.broadcast_to(o[None, :], (B, B))), 1, larger)
        tl.store(y_ptr + o, m + mi)
    """,
    "reduce and scan of a tuple in a variable": """
        x = tl.load(x_ptr + o[:, None] * B + o[None, :])
        t = (x, tl.broadcast_to(o[None, :], (B, B)))
        m, mi = tl.reduce(t, 1, larger)
        a, b = tl.associative_scan(t, 0, larger)
        tl.store(y_ptr + o, m + mi + tl.sum(a, 1) + tl.sum(b, 1))
    """,
    "results of a reduction carried by a loop": """
        m = tl.load(x_ptr + o)
        mi = o
        for i in range(n):
            x = tl.load(x_ptr + o[:, None] * B + o[None, :] + i)
            if i == 0:
                m, mi = tl.reduce((x, x.to(tl.int32)), 1, larger)
            else:
                m, mi = tl.reduce((x + 1, x.to(tl.int32)), 0, larger)
        tl.store(y_ptr + o, m + mi)
    """,
    "a helper whose variable is a tensor in one specialization and a number in another": """
        x = tl.load(x_ptr + o[:, None] * B + o[None, :])
        x = tl.sort(tl.sort(x, 1), 1)
        tl.store(y_ptr + o, tl.sum(x, 1))
    """,
    "halves carried by a loop": """
        a = tl.load(x_ptr + o)
        b = a + 1
        for i in range(n):
            a, b = tl.split(tl.join(a * 2, b).reshape([B, 2]))
        tl.store(y_ptr + o, a - b)
    """,
    "pointers of one statement with several targets": """
        p, q = x_ptr + o, x_ptr + B + o
        for i in range(n):
            p, q = q, p
        tl.store(y_ptr + o, tl.load(p) * 2 + tl.load(q))
    """,
    "offsets of 8 and 16 bits": """
        i = tl.load(i_ptr + o)
        p = x_ptr + i
        p += 1
        j = tl.load(i_ptr + o + B).to(tl.int16)
        tl.store(y_ptr + o, tl.load(p) + tl.load(x_ptr + i[None, :] + j[:, None]).sum(0) + tl.load(x_ptr + (i > 1)))
    """,
    "elements that take different branches": """
        x = tl.load(x_ptr + o)
        tl.store(y_ptr + o, tl.map_elementwise(branching, x, x + 1))
    """,
    "a name that a loop and the code after it use": """
        for k in range(n):
            acc = tl.zeros([B, B], tl.float32)
            for i in range(n):
                a = tl.load(x_ptr + o[:, None] * B + o[None, :] + i).to(tl.float16)
                acc += tl.dot(a, a)
            if n > 2:
                a = tl.load(x_ptr + o[:, None] * B + o[None, :]).to(tl.float16)
                acc += tl.dot(a, a)
            tl.store(y_ptr + o[:, None] * B + o[None, :], acc)
    """,
}


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(1) as found:
        yield found


def tensor(low=None, high=None) -> dict:
    given = {"dtype": "", "shape": [8192], "stride": [1], "storage": 8192, "offset": 0}
    return {"tensor": given | ({"range": [low, high]} if high else {})}


def checked(pool, folder, text, kernel, target, signature, size=32):
    """The translation of a kernel, after it has compiled and agreed with its source."""
    source, output = folder / "source.py", folder / "output.py"
    source.write_text(text)
    attrs = {name: "DS" for name, kind in signature.items() if kind.startswith("*")}
    values = {name: tensor(0, 3) if "u8" in kind else tensor() for name, kind in signature.items() if kind[0] == "*"}
    values |= {name: 3 for name, kind in signature.items() if kind == "i32"}
    spec = LaunchSpec(
        kernel, kernel, str(source), signature | {"B": "constexpr"}, {"B": size}, attrs,
        {"num_warps": 4, "num_stages": 2}, (1,), values=values,
    )  # fmt: skip
    request = TranslateRequest(str(source), target, launches=(spec,))
    result = pool.call("gluonize.translation:translate_kernel", request)
    found = [d.render(text) for outcome in result.outcomes for d in outcome.diagnostics]
    assert result.text is not None, "\n".join(found)
    output.write_text(result.text)
    answer = pool.call("gluonize.judge.verdict:validate_launch", str(source), str(output), spec, target)
    assert answer["status"] == "validated", f"{answer}\n{result.text}"
    return result.text


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("what", BODIES)
def test_construct(what, target, pool, tmp_path):
    body = textwrap.indent(dedent(BODIES[what]), "    ")
    text = f"{HEAD}@triton.jit\ndef kernel(x_ptr, i_ptr, y_ptr, n, B: tl.constexpr):\n    o = tl.arange(0, B)\n{body}"
    checked(pool, tmp_path, text, "kernel", target, {"x_ptr": "*fp32", "i_ptr": "*u8", "y_ptr": "*fp32", "n": "i32"})


def asm(text: str, arguments: str, constraints: str, dtype: str = "tl.float32") -> str:
    return f"tl.inline_asm_elementwise({text!r}, {constraints!r}, [{arguments}], dtype={dtype}, is_pure=True, pack=1)"


PTX = {
    "ex2": (asm("ex2.approx.ftz.f32 $0, $1;", "x", "=f,f"), "gl.exp2(x)"),
    "tanh": (asm("tanh.approx.f32 $0, $1;", "x * x * x * 4", "=f,f"), "tanh_from_exp("),
    "rounded": (asm("mul.rn.f32 $0, $1, $2;", "x, x", "=f,f,f"), "v_mul_f32"),
    "number": (asm("fma.rn.f32 $0, $1, $2, $3;", "x, x, 2.0", "=f,f,f,f"), "gl.fma(x, x, 2.0)"),
    "bf16": (asm("cvt.rn.bf16.f32 $0, $1;", "x", "=h,f", "tl.bfloat16") + ".to(tl.float32)", "x.to(gl.bfloat16)"),
    "lines": (asm("{ mul.ftz.f32 $0, $1, 0fBFB8AA3B;\n ex2.approx.ftz.f32 $0, $0; }", "x", "=f,f"), "* -1.442"),
    "registers": (asm("{ .reg .f32 t; add.f32 t, $1, $1; sqrt.approx.f32 $0, t; }", "x * x", "=f,f"), "gl.sqrt(r0)"),
    "reciprocal": (asm("rcp.rn.f32 $0, $1;", "x", "=f,f"), "gl.div_rn(1.0, x)"),
    "bits": (
        asm("{ .reg .b32 t; and.b32 t, $1, 0x7fffffff; shr.u32 $0, t, 3; }", "x", "=r,f", "tl.int32")
        + ".to(tl.float32)",
        "(x0.to(gl.uint32, bitcast=True) & 2147483647)",
    ),
    "counts": (
        asm("{ .reg .b32 t, u; popc.b32 t, $1; clz.b32 u, $1; mad.lo.s32 $0, t, 64, u; }", "x", "=r,f", "tl.int32")
        + ".to(tl.float32)",
        "libdevice.popc(",
    ),
    "high": (asm("mul.hi.u32 $0, $1, $1;", "x", "=r,f", "tl.int32") + ".to(tl.float32)", "gl.umulhi("),
    "fp4": (
        asm(
            "{ .reg .b8 t; cvt.rn.satfinite.e2m1x2.f32 t, $1, $2; cvt.u32.u8 $0, t; }",
            "x, 0.3 - x",
            "=r,f,f",
            "tl.uint32",
        )
        + ".to(tl.float32)",
        "r0 = (to_e2m1(x1) | (to_e2m1(x0) << 4))",
    ),
}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", PTX)
def test_ptx_that_has_a_row(name, pool, tmp_path):
    expression, expected = PTX[name]
    text = f"{HEAD}@triton.jit\ndef kernel(x_ptr, y_ptr, B: tl.constexpr):\n    o = tl.arange(0, B)\n"
    text += f"    x = tl.load(x_ptr + o)\n    y = {expression}\n    tl.store(y_ptr + o, y)\n"
    output = checked(pool, tmp_path, text, "kernel", "gfx950", {"x_ptr": "*fp32", "y_ptr": "*fp32"})
    assert expected in output


def test_tanh_is_one_instruction_where_there_is_one(pool, tmp_path):
    text = f"{HEAD}@triton.jit\ndef kernel(x_ptr, y_ptr, B: tl.constexpr):\n    o = tl.arange(0, B)\n"
    text += f"    tl.store(y_ptr + o, {PTX['tanh'][0]})\n".replace("x * x * x * 4", "tl.load(x_ptr + o)")
    output = checked(pool, tmp_path, text, "kernel", "gfx1250", {"x_ptr": "*fp32", "y_ptr": "*fp32"})
    assert "libdevice.tanh(" in output and "tanh_from_exp" not in output


def test_ptx_with_two_results(pool, tmp_path):
    lines = "lg2.approx.f32 l, $2; cvt.rpi.f32.f32 l, l; cvt.rzi.s32.f32 e, l; max.s32 e, e, -30; min.s32 e, e, 127;"
    lines = f"{{ .reg .f32 l; .reg .s32 e; {lines} add.s32 $1, e, 127; cvt.rn.f32.s32 l, e; ex2.approx.f32 $0, l; }}"
    text = f"{HEAD}@triton.jit\ndef kernel(x_ptr, y_ptr, B: tl.constexpr):\n    o = tl.arange(0, B)\n"
    text += "    x = tl.abs(tl.load(x_ptr + o))\n"
    text += f"    scale, e = {asm(lines, 'x', '=f,=r,f', '(tl.float32, tl.int32)')}\n    tl.store(y_ptr + o, x / scale + e)\n"
    output = checked(pool, tmp_path, text, "kernel", "gfx950", {"x_ptr": "*fp32", "y_ptr": "*fp32"})
    assert "scale, e = asm_lg2_ceil_int_max_min_add_" in output


def test_dependent_launches_are_dropped(pool, tmp_path):
    text = f"{HEAD}from triton.language.extra.cuda import gdc_wait\n\n\n@triton.jit\ndef kernel(x_ptr, y_ptr, B: tl.constexpr):\n"
    text += "    tl.inline_asm_elementwise('bar.sync 0;', '=r', [], tl.int32, is_pure=False, pack=1)\n"
    text += "    gdc_wait()\n    o = tl.arange(0, B)\n    tl.store(y_ptr + o, tl.load(x_ptr + o))\n"
    text += "    tl.inline_asm_elementwise('griddepcontrol.wait; // $0', '=r', [], tl.int32, is_pure=False, pack=1)\n"
    output = checked(pool, tmp_path, text, "kernel", "gfx950", {"x_ptr": "*fp32", "y_ptr": "*fp32"})
    assert output.count("pass  # AMD has no dependent launches") == 2
    assert output.count("    gl.barrier()\n") == 1


@pytest.mark.parametrize(
    "instruction",
    ["prmt.b32 $0, $1, $1, 0x5140;", "ex2.approx.f16 $0, $1;", "ex2.approx.f32 $0, t;", "max.NaN.f32 $0, $1, $1;"],
)
def test_ptx_without_a_row_is_refused(instruction, pool, tmp_path):
    text = f"{HEAD}@triton.jit\ndef kernel(x_ptr, y_ptr, B: tl.constexpr):\n    o = tl.arange(0, B)\n"
    text += f"    x = tl.load(x_ptr + o)\n    y = {asm(instruction, 'x', '=f,f')}\n    tl.store(y_ptr + o, y)\n"
    with pytest.raises(AssertionError, match="ptx-asm"):
        checked(pool, tmp_path, text, "kernel", "gfx950", {"x_ptr": "*fp32", "y_ptr": "*fp32"})


REDUCED = f"""{HEAD}TEXT: tl.constexpr = tl.constexpr("INSTRUCTION")


@triton.jit
def combine(a, b):
    return tl.inline_asm_elementwise(TEXT, "=f,f,f", [a, b], tl.float32, is_pure=True, pack=1)


@triton.jit
def kernel(x_ptr, y_ptr, B: tl.constexpr):
    tl.store(y_ptr, tl.reduce(tl.load(x_ptr + tl.arange(0, B)), 0, combine))
"""


def test_ptx_in_a_function_that_a_reduction_is_given_is_translated(pool, tmp_path):
    text = REDUCED.replace("INSTRUCTION", "{ .reg .f32 t; max.f32 t, $1, $2; mov.b32 $0, t; }")
    output = checked(pool, tmp_path, text, "kernel", "gfx950", {"x_ptr": "*fp32", "y_ptr": "*fp32"})
    assert "return gl.maximum(a, b)" in output and "inline_asm" not in output


def test_ptx_without_a_row_in_such_a_function_is_an_assertion_that_fails(pool, tmp_path):
    text = REDUCED.replace("INSTRUCTION", "max.NaN.f32 $0, $1, $2;")
    with pytest.raises(AssertionError, match="the PTX instruction `max.NaN.f32 .0, .1, .2` has no counterpart"):
        checked(pool, tmp_path, text, "kernel", "gfx950", {"x_ptr": "*fp32", "y_ptr": "*fp32"})


def test_the_refusal_of_ptx_is_at_the_instruction(tmp_path):
    text = (
        f"{HEAD}@triton.jit\ndef kernel(x_ptr, B: tl.constexpr):\n    o = tl.arange(0, B)\n    x = tl.load(x_ptr + o)\n"
    )
    text += (
        '    y = tl.inline_asm_elementwise("""\n        mov.b32 $0, $1;\n        prmt.b32 $0, $0, $1, 0x5140;\n    """,'
    )
    text += ' "=r,r", [x], tl.int32, is_pure=True, pack=1)\n    tl.store(x_ptr + o, y)\n'
    line = text.split("\n").index("        prmt.b32 $0, $0, $1, 0x5140;") + 1
    path = tmp_path / "k.py"
    path.write_text(text)
    spec = LaunchSpec("k", "kernel", "", {"x_ptr": "*i32", "B": "constexpr"}, {"B": 64}, {}, {"num_warps": 1}, (1,))
    (outcome,) = translate_kernel(TranslateRequest(str(path), "gfx950", launches=(spec,), keep_going=True)).outcomes
    (found,) = outcome.diagnostics
    assert (found.code, found.line, found.column) == (
        "ptx-asm",
        line,
        9,
    ) and "`prmt.b32 $0, $0, $1, 0x5140`" in found.message


def test_nvidias_device_library_is_refused(pool, tmp_path):
    text = f"{HEAD}from triton.language.extra.cuda import libdevice\n\n\n@triton.jit\ndef kernel(x_ptr, y_ptr, B: tl.constexpr):\n"
    text += "    o = tl.arange(0, B)\n    tl.store(y_ptr + o, libdevice.mul_rn(tl.load(x_ptr + o), 2.0))\n"
    with pytest.raises(AssertionError, match="nvidia-only"):
        checked(pool, tmp_path, text, "kernel", "gfx950", {"x_ptr": "*fp32", "y_ptr": "*fp32"})


def test_registers_of_the_machine_are_told_from_those_that_ptx_declares():
    declared = "{ .reg .b32 %r<3>; .reg .f32 t; mov.b32 %r1, $1; mov.b32 $0, %r1; }"
    assert ptx.special_registers("mov.u32 $0, %smid;") == ["%smid"]
    assert ptx.special_registers(declared) == []
