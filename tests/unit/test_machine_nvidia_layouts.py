"""Places of elements in shared memory swizzled for the TMA unit, and in tensor memory, against Triton's own linear layouts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from slow_rows import slow_but_every
from triton._C.libtriton import gluon_ir, ir, nvidia
from triton.experimental.gluon.language import NVMMASharedLayout
from triton.experimental.gluon.language.nvidia.blackwell import TensorMemoryLayout, TensorMemoryScalesLayout

from gluonize.judge.machine.memory.aliases import nvmma_offsets
from gluonize.judge.machine.memory.tensor_memory import placement
from gluonize.trace.model.attributes import parse_attribute


@pytest.fixture(scope="module")
def builder():
    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    yield gluon_ir.GluonOpBuilder(context, "sm100")


def _images(bases: list[list[int]]) -> list[tuple[int, ...]]:
    """The element that each offset holds."""
    out = [np.zeros(2, np.int64)]
    for basis in bases:
        out += [place ^ np.array(basis) for place in out]
    return [tuple(int(n) for n in place) for place in out]


SHARED = [
    (swizzle, bits, transposed, shape)
    for swizzle, bits, transposed, shape in itertools.product(
        (0, 32, 64, 128), (8, 16, 32), (False, True), ((8, 128), (128, 64), (64, 256), (512, 128))
    )
    if swizzle * 8 // bits <= (shape[0] if transposed else shape[1]) and min(shape) >= 8
]


@pytest.mark.parametrize("swizzle, bits, transposed, shape", slow_but_every(SHARED, 7))
def test_swizzled_shared_memory(builder, swizzle, bits, transposed, shape):
    layout = NVMMASharedLayout(swizzle, bits, 2, transposed)
    text = f"#ttg.nvmma_shared<{{swizzlingByteWidth = {swizzle}, transposed = {str(transposed).lower()}, elementBitWidth = {bits}}}>"
    bases = builder.to_linear_layout(layout._to_ir(builder), shape).offset_bases
    found = nvmma_offsets(parse_attribute(text), shape)
    assert [int(found[place]) for place in _images(bases)] == list(range(shape[0] * shape[1]))


def _check_tensor_memory(text: str, element: str, shape, linear) -> None:
    """Each element lies where Triton says; bits that no index has are 0 in both."""
    found = placement(parse_attribute(text), element, shape)
    size = {"f32": 4, "f16": 2, "i8": 1}[element]
    index = np.indices(shape)
    for where, bases in ((found.lanes, linear.rows), (found.columns // size, linear.cols)):
        expected = np.zeros(shape, np.int64)
        for bit, basis in enumerate(bases):
            dims = [d for d in (0, 1) if basis[d]]
            if dims:
                expected |= ((index[dims[0]] & basis[dims[0]]) != 0).astype(np.int64) << bit
        assert (where == expected).all()


@pytest.mark.parametrize(
    "block, stride, shape, element",
    [
        ((128, 64), 1, (128, 64), "f32"),
        ((128, 64), 1, (128, 256), "f32"),
        ((128, 128), 1, (256, 128), "f32"),
        ((64, 64), 1, (64, 64), "f32"),
        ((64, 32), 1, (64, 128), "f32"),
        ((64, 64), 1, (128, 64), "f32"),
        ((64, 64), 1, (128, 128), "f32"),
        ((128, 128), 1, (128, 128), "f16"),
        ((128, 32), 2, (128, 32), "f16"),
        ((128, 1), 1, (128, 128), "f32"),
    ],
)
def test_accumulators(builder, block, stride, shape, element):
    layout = TensorMemoryLayout(block, col_stride=stride)
    text = f"#ttng.tensor_memory_encoding<blockM = {block[0]}, blockN = {block[1]}, colStride = {stride}>"
    _check_tensor_memory(text, element, shape, builder.to_linear_layout(layout._to_ir(builder), shape))


@pytest.mark.parametrize("shape", [(128, 4), (128, 8), (256, 4), (256, 16), (64, 4), (128, 2)])
def test_scales(builder, shape):
    layout = TensorMemoryScalesLayout()
    linear = builder.to_linear_layout(layout._to_ir(builder), shape)
    _check_tensor_memory("#ttng.tensor_memory_scales_encoding<>", "i8", shape, linear)


@pytest.mark.parametrize(
    "block, two, bases, shape",
    [
        ((128, 64), False, [[1, 0]], (256, 64)),
        ((128, 64), True, [[1, 0]], (256, 128)),
        ((128, 64), False, [[0, 1]], (128, 128)),
        ((64, 64), True, [[1, 0]], (128, 64)),
    ],
)
def test_clusters(builder, block, two, bases, shape):
    layout = TensorMemoryLayout(block, col_stride=1, cga_layout=bases, two_ctas=two)
    text = f"#ttng.tensor_memory_encoding<blockM = {block[0]}, blockN = {block[1]}, colStride = 1, CGALayout = {bases}"
    linear = builder.to_linear_layout(layout._to_ir(builder), shape)
    found = placement(parse_attribute(text + (", twoCTAs = true>" if two else ">")), "f32", shape)
    assert found.lanes.max() < 256
    places = set(zip(found.lanes.ravel().tolist(), found.columns.ravel().tolist()))
    assert len(places) == shape[0] * shape[1]  # no two elements share a place
    assert linear.shape == list(shape)
