"""Where the elements of a tile lie in shared memory as the TMA unit and the tensor cores of NVIDIA GPUs share it.

A tile is cut into panels as wide as the swizzle; in a panel, rows follow each other and vectors of 16 bytes are exchanged within each row.
Formula: `nvmmaSharedToLinearLayout` of Triton 3.9.0 (lib/Dialect/TritonGPU/IR/LinearLayoutConversions.cpp).
"""

from __future__ import annotations

import numpy as np

from translator.ttgir.attributes import Attribute

VECTOR = 16  # bytes
BOX = 256  # elements that the box of a copy has at most along a dimension
ROWS = 8  # of a swizzled matrix


def nvmma_offsets(layout: Attribute, shape: tuple[int, ...]) -> np.ndarray:
    """Per element of a two-dimensional tile, in elements, where it lies."""
    swizzle, bits = layout.get("swizzlingByteWidth"), layout.get("elementBitWidth")
    rows, columns = np.indices(shape)
    if layout.get("transposed"):
        rows, columns, shape = columns, rows, shape[::-1]
    width = min(8 * swizzle // bits if swizzle else BOX, shape[1])
    height = min(BOX, shape[0])
    column = columns % width
    if swizzle:
        vector = 8 * VECTOR // bits
        phases = swizzle // VECTOR
        phase = rows % ROWS // (ROWS // phases) % phases
        column = (column // vector ^ phase) * vector + column % vector
    inside = rows % height * width + column
    boxes = rows // height + columns // width * (shape[0] // height)
    return inside + boxes * height * width
