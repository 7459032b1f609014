"""Reductions, scans and maps by functions in kernels that are lifted."""

from __future__ import annotations

import pytest
from lift_harness import lifted, tensor

from gluonize.diagnostics import TranslationError

ARGUMENTS = {
    "x_ptr": ("*fp32", tensor("float32", 64, 32)),
    "y_ptr": ("*fp32", tensor("float32", 64, 32)),
    "i_ptr": ("*i32", tensor("int32", 64, 32)),
}
TILE = """
@gluon.jit
def kernel(x_ptr, y_ptr, i_ptr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 8], [4, 1], [1, 0])
    rows = gl.arange(0, 64, gl.SliceLayout(1, layout))
    columns = gl.arange(0, 32, gl.SliceLayout(0, layout))
    place = rows[:, None] * 32 + columns[None, :]
    x = gl.load(x_ptr + place)
    i = gl.load(i_ptr + place)
"""


def text_of(tmp_path, helper: str, body: str, whole: bool = False) -> str:
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    return lifted(tmp_path, helper + TILE + indented, "hip:gfx950", ARGUMENTS, {}, [1], whole=whole)


FIRST = """
@gluon.jit
def first_largest(a, i, b, j):
    better = (a > b) | ((a == b) & (i < j))
    return gl.where(better, a, b), gl.where(better, i, j)
"""


def test_a_reduction_of_two_tensors_by_a_function(tmp_path):
    body = "a, b = gl.reduce((x, i), 1, first_largest)\ngl.store(y_ptr + rows, a)\ngl.store(i_ptr + rows, b)"
    text = text_of(tmp_path, FIRST, body, whole=True)
    assert "    y0 = (x0 > x2) | (x0 == x2) & (x1 < x3)\n    return tl.where(y0, x0, x2), tl.where(y0, x1, x3)" in text
    assert text.count("tl.reduce(") == 1 and "tl.reduce((x_1, i_1), 1, kernel_combine_0)" in text


def test_tensors_that_are_reduced_beside_each_other_are_reduced_each_for_itself(tmp_path):
    """Pairs in a small tensor are what happens to each of the two."""
    helper = """
@gluon.jit
def both(a, b, c, d):
    layout: gl.constexpr = gl.BlockedLayout([1, 2], [1, 64], [1, gl.num_warps()], [1, 0])
    lanes = gl.arange(0, 2, gl.SliceLayout(0, layout))
    return gl.split(gl.where(lanes == 0, a, b) + gl.where(lanes == 0, c, d))
"""
    body = "a, b = gl.reduce((x, x * 2), 1, both)\ngl.store(y_ptr + rows, a)\ngl.store(x_ptr + rows, b)"
    text = text_of(tmp_path, helper, body)
    assert "tl.reduce" not in text and text.count("tl.sum(") == 2


def test_a_scan_of_two_tensors_by_a_function(tmp_path):
    helper = """
@gluon.jit
def step(a, b, c, d):
    return a * c, b * c + d
"""
    body = "a, b = gl.associative_scan((x, x * 2), 0, step)\ngl.store(y_ptr + place, b)"
    text = text_of(tmp_path, helper, body, whole=True)
    assert "tl.associative_scan((x_1, x_1 * 2.0), 0, kernel_combine_0)" in text
    assert "return x0 * x2, x2 * x1 + x3" in text or "return x0 * x2, x1 * x2 + x3" in text


def test_a_reduction_that_would_be_widened_stays_in_its_type(tmp_path):
    helper = """
@gluon.jit
def larger(a, b):
    return gl.maximum(a, b)
"""
    body = "a = gl.reduce(x.to(gl.bfloat16), 1, larger)\ngl.store(y_ptr + rows, a.to(gl.float32))"
    assert "tl.reduce(" in text_of(tmp_path, helper, body)


def test_a_map_is_arithmetic_on_tensors(tmp_path):
    helper = """
@gluon.jit
def masked(a, i):
    if i > 5:
        out = a * 2.0
    else:
        out = -a
    return gl.where((-1 << i & 4) == 0, out, float("-inf"))
"""
    body = "gl.store(y_ptr + place, gl.map_elementwise(masked, x, i))"
    text = text_of(tmp_path, helper, body)
    assert 'tl.where(-1 << i_1 & 4 == 0, tl.where(i_1 > 5, out, out_1), float("-inf"))' in text


def test_a_map_of_several_elements_together(tmp_path):
    each = "\n@gluon.jit\ndef f(a, b):\n    return a + 1.0, b + 1.0\n"
    body = "gl.store(y_ptr + place, gl.map_elementwise(f, x, pack=2)[0])"
    assert "x_1 + 1.0" in text_of(tmp_path, each, body)
    for wrong in (each.replace("b + 1.0", "b + 2.0"), each.replace("b + 1.0", "b + a")):
        with pytest.raises(TranslationError, match="several elements|side by side"):
            text_of(tmp_path, wrong, body)


def test_a_function_that_loads_is_refused_at_its_reduction(tmp_path):
    helper = "\n@gluon.jit\ndef f(a, b):\n    return gl.inline_asm_elementwise('v_add_f32 $0, $1, $2', '=v,v,v', [a, b], gl.float32, True, 1)\n"
    with pytest.raises(TranslationError, match="a function with tt.elementwise_inline_asm in it"):
        text_of(tmp_path, helper, "gl.store(y_ptr + rows, gl.reduce(x, 1, f))")
