"""Pointer parameters that are moved: offsets from the tensor's start where their sign is not known."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, translate

from gluonize.judge.verdict import validate_launch
from gluonize.read.spec.launch import LaunchSpec


def moved(folder: Path, offsets: str, use: str = "", start: str = "0") -> str:
    text = dedent(f"""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, y_ptr, n, stride, scale, BLOCK: tl.constexpr):
            o = tl.arange(0, BLOCK)
            away = {offsets}
            i = {start}
            while i < n:
                x = tl.load(x_ptr + away)
                tl.store(y_ptr + o, x)
                x_ptr += stride
                y_ptr += BLOCK
                i += 1
            {use}
        """)
    spec = launch(
        "kernel", {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "stride": "i32", "scale": "fp32"}, {"BLOCK": 128}
    )
    return translate(folder, text, spec).text


SIGNED = "(o * scale).to(tl.int32)"


def test_signed_offsets_are_taken_from_the_start(tmp_path):
    text = moved(tmp_path, SIGNED)
    assert "buffer_load(x_ptr, away + x_offs.to(gl.int32))" in text and "x_offs += stride" in text
    assert "y_offs += BLOCK" in text and "y_ptr +=" not in text


def test_offsets_that_are_not_negative_move_with_their_base(tmp_path):
    text = moved(tmp_path, "o * 2")
    assert "x_ptr += stride" in text and "_offs" not in text.replace("_check", "")


def test_a_parameter_that_is_used_otherwise_stays_a_pointer(tmp_path):
    text = moved(tmp_path, SIGNED, "tl.store(x_ptr, scale)")
    assert "x_ptr += stride" in text and "gl.load(x_ptr + away)" in text


@pytest.mark.parametrize("offsets, split", [(SIGNED, True), ("o * 2", False)])
def test_parameters_that_are_moved_once_are_too(offsets: str, split: bool, tmp_path):
    text = dedent(f"""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, y_ptr, stride, scale, BLOCK: tl.constexpr):
            x_ptr += tl.program_id(0) * stride
            o = tl.arange(0, BLOCK)
            tl.store(y_ptr + o, tl.load(x_ptr + {offsets}))
        """)
    spec = launch("kernel", {"x_ptr": "*fp32", "y_ptr": "*fp32", "stride": "i32", "scale": "fp32"}, {"BLOCK": 128})
    made = translate(tmp_path, text, spec).text
    assert "buffer_load(x_ptr, " in made and ("x_offs += gl.program_id(0) * stride" in made) == split


@pytest.mark.compile
@pytest.mark.parametrize("mistake", ["", "x_offs", "y_offs"])
def test_results_are_the_source_s(mistake: str, tmp_path):
    """Elements backwards from a base that moves by rows: the sign of offsets is not known."""
    rows, columns = 5, 128
    text = moved(tmp_path, "stride + n - 1 - o * scale.to(tl.int32)", start="0")
    source, file = tmp_path / "source.py", tmp_path / "out.py"
    file.write_text(text.replace(f"{mistake} +=", f"{mistake} +=  2 * ") if mistake else text)
    tensor = {
        "tensor": {"dtype": "float32", "shape": [rows * columns], "stride": [1], "storage": rows * columns, "offset": 0}
    }
    values = {"x_ptr": tensor, "y_ptr": tensor, "n": 3, "stride": columns, "scale": 1.0}
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "stride": "i32", "scale": "fp32", "BLOCK": "constexpr"}
    attrs = {"x_ptr": "DS", "y_ptr": "DS"}
    spec = LaunchSpec(
        "k", "kernel", str(source), signature, {"BLOCK": columns}, attrs, {"num_warps": 4}, (1,), values=values
    )
    answer = validate_launch(str(source), str(file), spec, "gfx942")
    assert answer["status"] == ("mismatch" if mistake else "validated"), answer
