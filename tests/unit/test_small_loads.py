"""A loop makes loads of fewer elements than there are threads again in each layout, as Triton does, instead of moving them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from translation_of import dedent, launch, translate

from gluonize.trace.front.trace import TensorFact
from gluonize.trace.model.layouts import Slice, Wmma
from gluonize.write.costs import loaded_again


def scaled_tile(folder: Path, scales: int, warps: int = 4) -> str:
    """The translation of a tile times a vector of as many elements as it has columns."""
    text = dedent(f"""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, s_ptr, out_ptr, sum_ptr, n):
            i = tl.arange(0, 16)
            j = tl.arange(0, {scales})
            for k in range(n):
                s = tl.load(s_ptr + j)
                x = tl.load(x_ptr + i[:, None] * {scales} + j[None, :])
                tl.store(out_ptr + i[:, None] * {scales} + j[None, :], x * s[None, :])
                tl.store(sum_ptr + j, s * 2)
                s_ptr += 1024
        """)
    pointers = dict.fromkeys(("x_ptr", "s_ptr", "out_ptr", "sum_ptr"), "*fp32")
    return translate(folder, text, launch("kernel", pointers | {"n": "i32"}, {}, warps=warps)).text


def test_a_small_vector_is_loaded_in_both_layouts(tmp_path):
    text = scaled_tile(tmp_path, 128)
    assert text.count("load(s_ptr") == 2
    assert "gl.convert_layout" not in text


def test_a_vector_of_an_element_per_thread_is_loaded_once(tmp_path):
    text = scaled_tile(tmp_path, 256)
    assert text.count("load(s_ptr") == 1 and "gl.convert_layout(s" in text


def test_what_scales_a_matrix_operand_along_k_is_moved(tmp_path):
    text = dedent("""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, s_ptr, out_ptr, n):
            i = tl.arange(0, 64)
            acc = tl.zeros((64, 64), dtype=tl.float32)
            for k in range(n):
                s = tl.load(s_ptr + i)
                x = tl.load(x_ptr + i[:, None] * 64 + i[None, :])
                acc += tl.dot((x * tl.exp(s)[None, :]).to(x.dtype), x)
                s_ptr += 64
                x_ptr += 4096
            tl.store(out_ptr + i[:, None] * 64 + i[None, :], acc)
        """)
    pointers = {"x_ptr": "*fp16", "s_ptr": "*fp32", "out_ptr": "*fp32"}
    text = translate(tmp_path, text, launch("kernel", pointers | {"n": "i32"}, {})).text
    assert text.count("load(s_ptr") == text.count("load(s_ptr, i,")  # in one layout, an iteration ahead
    assert "s = gl.convert_layout(s_next, gl.SliceLayout(0, " in text


def product_of_gates(folder: Path, product: str, columns: int = 64) -> str:
    """The translation of a kernel without a loop that scales rows and columns of `product` by the same vector."""
    text = dedent(f"""
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr, s_ptr, out_ptr, n):
            i = tl.arange(0, {columns})
            x = tl.load(x_ptr + i[:, None] * {columns} + i[None, :])
            s = tl.load(s_ptr + i, mask=i < n)
            y = {product}
            tl.store(out_ptr + i[:, None] * {columns} + i[None, :], y * (s[:, None] - s[None, :]))
        """)
    pointers = {"x_ptr": "*fp16", "s_ptr": "*fp32", "out_ptr": "*fp32"}
    return translate(folder, text, launch("kernel", pointers | {"n": "i32"}, {}), target="gfx950").text


def test_a_kernel_of_products_loads_a_small_vector_again(tmp_path):
    text = product_of_gates(tmp_path, "tl.dot(x, x)")
    assert text.count("load(s_ptr") == 2 and "gl.convert_layout(s" not in text


@pytest.mark.parametrize("product", ["x * 2", "tl.dot(x, x)\n            for k in range(n):\n                y += k"])
def test_kernels_without_products_or_with_a_loop_move_it(tmp_path, product: str):
    text = product_of_gates(tmp_path, product)
    assert text.count("load(s_ptr") == 1 and "gl.convert_layout(s" in text


@pytest.mark.parametrize(
    "version, transposed, columns, warps, again",
    [
        (1, True, 32, ((1, 0),), False),  # 16 loads of one element
        (1, True, 32, ((0, 1),), True),  # the warps share the columns
        (1, True, 16, ((1, 0),), True),
        (1, False, 32, ((1, 0),), True),  # a lane has one column of each product
        (2, True, 32, ((1, 0),), True),  # RDNA4's lanes have elements that follow one another
    ],
)
def test_what_a_lane_would_load_element_by_element_is_moved(version, transposed, columns, warps, again):
    load = object()
    rw = SimpleNamespace(
        tensor=lambda node: TensorFact((columns,), "fp32"), looped={load}, placed_layouts=lambda node: frozenset()
    )
    product = Wmma(version, transposed, warps, (), (16, 16, 16))
    assert loaded_again(rw, load, Slice(0, product)) == again
    rw.placed_layouts = lambda node: {Slice(0, product)}
    assert loaded_again(rw, load, Slice(0, product))
