"""Arguments of `tl.range` that are given by name, in whatever order."""

import pytest

from translation_of import launch, translate, validated

SOURCE = """import triton
import triton.language as tl


@triton.jit
def k(x_ptr, y_ptr, n, B: tl.constexpr):
    o = tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    for i in tl.range({arguments}):
        acc = acc * 0.5 + tl.load(x_ptr + B + o + i)
    tl.store(y_ptr + o, acc)
"""
SPEC = launch("k", {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}, {"B": 64})


@pytest.mark.parametrize(
    "arguments, written",
    [
        ("step=-3, arg1=14, arg2=n", "range(14, n, -3)"),
        ("arg2=n, arg1=2", "range(2, n)"),
        ("arg1=n, step=2", "range(0, n, 2)"),
        ("n, step=2", "range(0, n, 2)"),
        ("1, n, step=2, num_stages=3", "range(1, n, 2)"),
        ("1, n, 2", "range(1, n, 2)"),
    ],
)
def test_they_are_written_in_the_order_of_the_parameters(tmp_path, arguments, written):
    assert f"for i in {written}:" in translate(tmp_path, SOURCE.format(arguments=arguments), SPEC).text


@pytest.mark.compile
def test_the_translation_counts_as_the_source(tmp_path):
    validated(tmp_path, SOURCE.format(arguments="step=3, arg2=n, arg1=2"), SPEC)
