"""OCP's e4m3 is cast by arithmetic where Triton would compare and select, and has the same values."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import compiled, dedent, launch, tensor, translate, validated

from gluonize.diagnostics import TranslationError
from gluonize.judge.lower.jobs import lower_file
from gluonize.judge.verdict import validate_launch

WIDEN = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def every_code(bits_ptr, nan_ptr, B: tl.constexpr):
        code = tl.arange(0, B)
        x = code.to(tl.uint8).to(tl.float8e4nv, bitcast=True).to(tl.float16)
        bits = x.to(tl.int16, bitcast=True)
        tl.store(bits_ptr + code, tl.where(x == x, bits, 0))
        tl.store(nan_ptr + code, x != x)
    """)
NARROW = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def narrowed(first_ptr, second_ptr, B: tl.constexpr):
        at = tl.arange(0, B)
        x = MAKE
        tl.store(first_ptr + at, x.to(tl.float8e4nv).to(tl.uint8, bitcast=True))
        tl.store(second_ptr + at, (-x).to(tl.float8e4nv).to(tl.uint8, bitcast=True))
    """)
# Every fp16, every bf16, and fp32 next to and at half of what two neighbouring codes differ by.
NUMBERS = {
    "fp16": "at.to(tl.uint16).to(tl.float16, bitcast=True)",
    "bf16": "at.to(tl.uint16).to(tl.bfloat16, bitcast=True)",
    "fp32": "((at // 3 + 0x7000) * 0x10000 + at % 3 * 0x8000 - 1).to(tl.float32, bitcast=True)",
    "halves": "((at // 3 + 0x700) * 0x80000 + at % 3 - 1).to(tl.float32, bitcast=True)",
}
CAST = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def cast(x_ptr, z_ptr, D: tl.constexpr):
        o = tl.arange(0, 256)
        tl.store(z_ptr + o, VALUE)
    """)
DOT = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def product(x_ptr, y_ptr, z_ptr, B: tl.constexpr):
        o = tl.arange(0, B)
        at = o[:, None] * B + o[None, :]
        tl.store(z_ptr + at, tl.dot(tl.load(x_ptr + at), tl.load(y_ptr + at)))
    """)
CALL = "fp8e4nv_to_fp16("
NAMES = (CALL, "to_fp8e4nv(")
SOFTWARE = ("gfx942", "gfx1100", "gfx1201")


@pytest.mark.parametrize("target", SOFTWARE)
def test_every_code_has_the_value_that_triton_gives_it(target: str, tmp_path: Path):
    values = {"bits_ptr": tensor(256), "nan_ptr": tensor(256)}
    spec = launch("every_code", {"bits_ptr": "*i16", "nan_ptr": "*i8"}, {"B": 256}, values=values)
    text = validated(tmp_path, WIDEN, spec, target)
    assert text.count(CALL) == 2, text
    for right, wrong in (("-0x4080", "-0x0080"), ("256.0", "128.0"), ("half * 35840.0 * 0.0", "0.0"), ("<< 8", "<< 7")):
        assert_found(tmp_path, text, right, wrong, spec, target)


@pytest.mark.parametrize("numbers", NUMBERS)
def test_every_number_has_the_code_that_triton_gives_it(numbers: str, tmp_path: Path):
    size = 4096 if numbers == "halves" else 65536
    values = {"first_ptr": tensor(size), "second_ptr": tensor(size)}
    spec = launch("narrowed", dict.fromkeys(values, "*u8"), {"B": size}, values=values)
    text = validated(tmp_path, NARROW.replace("MAKE", NUMBERS[numbers]), spec, "gfx942")
    assert text.count("to_fp8e4nv(") == 3, text
    if numbers == "fp32":
        for change in (
            ("448.0", "480.0"),
            ("0x3C800000", "0x3C000000"),
            ("0x0A000000", "0x0A800000"),
            ("& 0x80)", "& 0)"),
        ):
            assert_found(tmp_path, text, *change, spec, "gfx942")


def assert_found(folder: Path, text: str, right: str, wrong: str, spec, target: str):
    """A wrong constant in the cast is found by validating the launch."""
    assert right in text
    (folder / "output.py").write_text(text.replace(right, wrong))
    answer = validate_launch(str(folder / "source.py"), str(folder / "output.py"), spec, target)
    assert answer["status"] == "mismatch", (wrong, answer)


LOAD = "cdna3.buffer_load(x_ptr, o)"


@pytest.mark.parametrize(
    "target, source, result, value, expected",
    [
        ("gfx942", "fp8e4nv", "fp16", "x.to(tl.float16)", f"(fp8e4nv_to_fp16({LOAD}), z_ptr"),
        ("gfx1201", "fp8e4nv", "fp32", "x.to(tl.float32)", f"(fp8e4nv_to_fp16({LOAD}).to(gl.float32), z_ptr"),
        ("gfx1100", "fp8e4nv", "fp16", "x.to(D)", f"(fp8e4nv_to_fp16({LOAD}).to(D), z_ptr"),
        ("gfx942", "fp8e4nv", "bf16", "x.to(tl.bfloat16)", ""),
        ("gfx950", "fp8e4nv", "fp16", "x.to(tl.float16)", ""),
        ("gfx1250", "fp8e4nv", "fp32", "x.to(tl.float32)", ""),
        ("gfx942", "fp32", "fp8e4nv", "x.to(tl.float8e4nv)", f"(to_fp8e4nv({LOAD}), z_ptr"),
        ("gfx1201", "bf16", "fp8e4nv", "x", f"(to_fp8e4nv({LOAD}, z_ptr.dtype.element_ty), z_ptr"),
        ("gfx1100", "fp16", "fp8e4nv", "x.to(z_ptr.dtype.element_ty)", f"({LOAD}, z_ptr.dtype.element_ty), z_ptr"),
        ("gfx942", "fp32", "fp8e4nv", "x.to(tl.float8e4nv, fp_downcast_rounding='rtne')", ""),
        ("gfx942", "fp32", "fp8e5", "x", ""),
        ("gfx950", "fp32", "fp8e4nv", "x", ""),
    ],
)
def test_casts(target: str, source: str, result: str, value: str, expected: str, tmp_path: Path):
    import triton.language as tl

    values = {"x_ptr": tensor(256), "z_ptr": tensor(256)}
    spec = launch("cast", {"x_ptr": f"*{source}", "z_ptr": f"*{result}"}, {"D": tl.float16}, values=values)
    value = value.replace("x", "tl.load(x_ptr + o)", 1)
    text = translate(tmp_path, CAST.replace("VALUE", value), spec, target=target).text
    assert (expected or "x_ptr, o") in text, text
    assert any(name in text for name in NAMES) == bool(expected), text


@pytest.mark.parametrize(
    "value, types, others",
    [
        ("tl.load(x_ptr + o).to(tl.float16)", ("fp8e4nv", "fp16"), ("i8", "fp16")),
        ("tl.load(x_ptr + o)", ("fp32", "fp8e4nv"), ("fp32", "i8")),
        ("tl.load(x_ptr + o)", ("fp32", "fp8e4nv"), ("fp64", "fp8e4nv")),
    ],
)
def test_a_launch_with_another_type_is_refused(value: str, types, others, tmp_path: Path):
    right, wrong = (launch("cast", {"x_ptr": f"*{x}", "z_ptr": f"*{z}"}, {"D": 0}) for x, z in (types, others))
    text = translate(tmp_path, CAST.replace("VALUE", value), right, target="gfx942").text
    compiled(tmp_path, text, right, "gfx942")
    with pytest.raises(TranslationError, match="another type|cast asserts"):
        compiled(tmp_path, text, wrong, "gfx942")


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_operands_of_products(target: str, tmp_path: Path):
    pointers = {"x_ptr": "*fp8e4nv", "y_ptr": "*fp8e4nv", "z_ptr": "*fp32"}
    spec = launch("product", pointers, {"B": 64}, values={name: tensor(64, 64) for name in pointers})
    text = validated(tmp_path, DOT, spec, target)
    assert text.count(CALL) == 3, text
    ours, theirs = compiled(tmp_path, text, spec, target), lower_file(str(tmp_path / "source.py"), spec, target)
    assert 2 * ours.metrics.mix.insns < theirs.metrics.mix.insns
