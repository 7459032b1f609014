"""A `static_range` loop in which shapes change is written out; a loop again where each iteration has the same text."""

from __future__ import annotations

from pathlib import Path

import pytest
from translation_of import dedent, launch, tensor, validated

SOURCE = dedent("""
    import triton
    import triton.language as tl


    @triton.jit
    def polynomial(x, coefficients):
        y = coefficients[0]
        for i in tl.static_range(1, len(coefficients)):
            y = y * x + coefficients[i]
        return y


    @triton.jit
    def halved(x, N: tl.constexpr):
        for i in tl.static_range(2):
            x = tl.sum(tl.reshape(x, (N >> (i + 1), 2)), 1)
        return x


    @triton.jit
    def kernel(x_ptr, y_ptr, B: tl.constexpr):
        o = tl.arange(0, B)
        x = tl.load(x_ptr + o)
        y = x
        tl.store(y_ptr + o, y)
""")
B = 64


def translated(folder: Path, statement: str) -> str:
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32"}
    spec = launch("kernel", signature, {"B": B}, values={"x_ptr": tensor(B), "y_ptr": tensor(B)})
    return validated(folder, SOURCE.replace("y = x\n", statement + "\n"), spec)


def test_library_functions_of_several_shapes_are_one(tmp_path: Path):
    """Each step of `tl.flip` has another shape, and each size another number of steps."""
    text = translated(tmp_path, "y = tl.reshape(tl.flip(tl.reshape(tl.flip(x), (4, 16)), 1), (B,))")
    assert text.count("def flip") == 1 and "for i in gl.static_range(steps):" in text, text


@pytest.mark.parametrize("call", ["polynomial(x, (1.0, 2.0, 3.0))", "polynomial(x, (1.0, x, 3.0, x))"])
def test_the_index_stays_where_the_text_is_the_same(call: str, tmp_path: Path):
    text = translated(tmp_path, f"y = {call}")
    assert "for i in gl.static_range(1, len(coefficients)):" in text and "coefficients[i]" in text, text


def test_layouts_that_change_are_written_out(tmp_path: Path):
    text = translated(tmp_path, "y = x + tl.sum(halved(x, B), 0)")
    helper = text[text.index("def halved") : text.index("def kernel")]
    assert "written out: shapes change" in helper and "(0 + 1)" in helper and "(1 + 1)" in helper, text


def test_lines_that_begin_left_of_the_loop(tmp_path: Path, monkeypatch):
    """Comments, and what is in brackets, are no measure of how far statements are indented."""
    body = "        x = tl.sum(tl.reshape(x, (N >> (i + 1), 2)), 1)\n"
    lines = "        x = tl.reshape(x, (N >> (i +\n1), 2))\n#   x = x * 3\n        x = tl.sum(x, 1)\n"
    monkeypatch.setitem(globals(), "SOURCE", SOURCE.replace(body, lines))
    text = translated(tmp_path, "y = x + tl.sum(halved(x, B), 0)")
    helper = text[text.index("def halved") : text.index("def kernel")]
    assert "written out: shapes change" in helper and "\n    x = gl.sum(" in helper, text
