"""Aggregates of a kernel's author in Triton source: their classes are carried over, whatever their methods are called."""

from __future__ import annotations

from translation_of import launch, translate, validated

SOURCE = """import triton
import triton.language as tl
from triton.language.core import _aggregate as aggregate


@aggregate
class View:
    ptr: tl.tensor
    count: tl.tensor

    @triton.constexpr_function
    def __init__(self, ptr, count):
        self.ptr = ptr
        self.count = count

    @triton.jit
    def store(self, data, at, factor: tl.constexpr):
        tl.store(self.ptr + at, data * factor, mask=at < self.count)


@triton.jit
def kernel(x_ptr, y_ptr, n, B: tl.constexpr, FACTOR: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    out = View(y_ptr, n)
    out.store(tl.load(x_ptr + at, mask=at < n), at, FACTOR)
"""


def test_a_method_that_is_called_like_one_of_tritons(tmp_path):
    """Two launches read the class twice; it is one class in the output."""
    types = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
    launches = [launch("kernel", types, {"B": 128, "FACTOR": factor}, id=f"k{factor}") for factor in (2, 3)]
    validated(tmp_path, SOURCE, launches[1])
    text = translate(tmp_path, SOURCE, *launches).text
    assert text.count("class View:") == 1 and "store_gluon(out, " in text


def test_annotations_that_are_strings(tmp_path):
    """They are looked up in the module of the class, which is never imported."""
    types = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
    source = f"from __future__ import annotations\n{SOURCE}"
    validated(tmp_path, source, launch("kernel", types, {"B": 128, "FACTOR": 2}))
