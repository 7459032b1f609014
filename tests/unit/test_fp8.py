"""OCP's e4m3 is widened by arithmetic where Triton would compare and select, and has the same values."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import compiled, dedent, launch, tensor, translate, validated

from translator.diagnostics import TranslationError
from translator.lowering.jobs import lower_file
from translator.validate import validate_launch

CODES = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def every_code(bits_ptr, nan_ptr, D: tl.constexpr):
        code = tl.arange(0, 256)
        x = code.to(tl.uint8).to(tl.float8e4nv, bitcast=True).to(tl.float16)
        bits = x.to(tl.int16, bitcast=True)
        tl.store(bits_ptr + code, tl.where(x == x, bits, 0))
        tl.store(nan_ptr + code, x != x)
    """)
CAST = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def cast(x_ptr, z_ptr, D: tl.constexpr):
        o = tl.arange(0, 256)
        tl.store(z_ptr + o, tl.load(x_ptr + o).to(TO))
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


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "gfx1201"])
def test_every_code_has_the_value_that_triton_gives_it(target: str, tmp_path: Path):
    values = {"bits_ptr": tensor(256), "nan_ptr": tensor(256)}
    spec = launch("every_code", {"bits_ptr": "*i16", "nan_ptr": "*i8"}, {"D": 0}, values=values)
    text = validated(tmp_path, CODES, spec, target)
    assert text.count(CALL) == 2, text
    for right, wrong in (("-0x4080", "-0x0080"), ("256.0", "128.0"), ("half * 35840.0 * 0.0", "0.0"), ("<< 8", "<< 7")):
        assert right in text
        (tmp_path / "output.py").write_text(text.replace(right, wrong))
        answer = validate_launch(str(tmp_path / "source.py"), str(tmp_path / "output.py"), spec, target)
        assert answer["status"] == "mismatch", (wrong, answer)


@pytest.mark.parametrize(
    "target, dtype, to, expected",
    [
        ("gfx942", "fp16", "tl.float16", "fp8e4nv_to_fp16(cdna3.buffer_load(x_ptr, o)), z_ptr"),
        ("gfx1201", "fp32", "tl.float32", "fp8e4nv_to_fp16(cdna3.buffer_load(x_ptr, o)).to(gl.float32)"),
        ("gfx1100", "fp16", "D", "fp8e4nv_to_fp16(cdna3.buffer_load(x_ptr, o)).to(D)"),
        ("gfx942", "bf16", "tl.bfloat16", ""),
        ("gfx950", "fp16", "tl.float16", ""),
        ("gfx1250", "fp32", "tl.float32", ""),
    ],
)
def test_casts(target: str, dtype: str, to: str, expected: str, tmp_path: Path):
    import triton.language as tl

    values = {"x_ptr": tensor(256), "z_ptr": tensor(256)}
    constants = {"D": tl.float16}
    spec = launch("cast", {"x_ptr": "*fp8e4nv", "z_ptr": f"*{dtype}"}, constants, values=values)
    text = translate(tmp_path, CAST.replace("TO", to), spec, target=target).text
    assert (expected or "buffer_load(x_ptr, o)") in text and (CALL in text) == bool(expected), text


def test_a_launch_with_another_type_is_refused(tmp_path: Path):
    specs = [launch("cast", {"x_ptr": f"*{dtype}", "z_ptr": "*fp16"}, {"D": 0}) for dtype in ("fp8e4nv", "i8")]
    text = translate(tmp_path, CAST.replace("TO", "tl.float16"), specs[0], target="gfx942").text
    compiled(tmp_path, text, specs[0], "gfx942")
    with pytest.raises(TranslationError, match="fp8e4nv_to_fp16 is given another type"):
        compiled(tmp_path, text, specs[1], "gfx942")


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_operands_of_products(target: str, tmp_path: Path):
    pointers = {"x_ptr": "*fp8e4nv", "y_ptr": "*fp8e4nv", "z_ptr": "*fp32"}
    spec = launch("product", pointers, {"B": 64}, values={name: tensor(64, 64) for name in pointers})
    text = validated(tmp_path, DOT, spec, target)
    assert text.count(CALL) == 3, text
    ours, theirs = compiled(tmp_path, text, spec, target), lower_file(str(tmp_path / "source.py"), spec, target)
    assert 2 * ours.metrics.mix.insns < theirs.metrics.mix.insns
