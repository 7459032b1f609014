"""Layouts of NVIDIA GPUs as layouts of one with a tensor data mover and 32 lanes: `AMDWMMALayout` for products, rows with padding in LDS.

NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 128, 16])
    -> gl.amd.AMDWMMALayout(version=3, transposed=True, warp_bases=[[1, 0], [2, 0]], instr_shape=[16, 16, 32])

Blocked and sliced layouts stay: both have 32 lanes in a warp.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gluonize.decide.layouts.constructors import constructor
from gluonize.decide.layouts.gluon_values import of_gluon
from gluonize.numbered import numbered
from gluonize.rules.architecture import MatrixRow, Target
from gluonize.rules.gluon import Layouts, class_name
from gluonize.trace.model.layouts import Wmma
from gluonize.trace.model.shared_layouts import Padded, Swizzled
from gluonize.triton_api.gluon_language import DistributedLayout, SharedLayout

_ANYWHERE = (Layouts.BLOCKED, Layouts.SLICE, Layouts.LINEAR, Layouts.SWIZZLED, Layouts.SHARED_LINEAR)
_PAD_BYTES = 16  # what a lane reads at once
_MOST_INTERVAL = 1024  # bytes between paddings that a descriptor can say: 256 dwords


class NoCounterpart(Exception):
    """Why something has no counterpart, and what a port by hand does instead, "" where that is nothing else."""

    def __init__(self, why: str, by_hand: str = ""):
        super().__init__(why)
        self.why, self.by_hand = why, by_hand


def is_layout(value: Any) -> bool:
    """Whether a value is a layout of Gluon's."""
    return isinstance(value, (DistributedLayout, SharedLayout))


def layout_text(layout: Any) -> str:
    """The expression of a layout that has the same meaning on all GPUs with 32 lanes. Raises: NoCounterpart for one that has not."""
    inner = layout
    while inner is not None:
        if class_name(inner) not in _ANYWHERE:
            raise NoCounterpart(f"a {type(inner).__name__} is of its own machine")
        inner = getattr(inner, "parent", None)
    found = of_gluon(layout)
    assert found is not None, f"bug in gluonize: {layout} is not read"
    return constructor(found)


def given_name(parameter: str) -> str:
    """What a layout is called in the output that the source takes as an argument."""
    return f"{parameter}_given"


def is_products(layout: Any) -> bool:
    """Whether a layout is that of accumulators of NVIDIA's matrix instructions."""
    return class_name(layout) == Layouts.NVIDIA_PRODUCT


def is_shared(layout: Any) -> bool:
    """Whether a layout is one that NVIDIA's copies and products take from shared memory."""
    return class_name(layout) == Layouts.NVIDIA_SHARED


def products_layout(layout: Any, target: Target) -> str:
    """The layout of accumulators. Raises: NoCounterpart."""
    if list(layout.version) != [3, 0]:
        raise NoCounterpart("accumulators of other products than those of warp groups have layouts of their own")
    if any(any(basis) for basis in layout.cga_layout or []):
        raise NoCounterpart("a product of a whole cluster", "each workgroup multiplies its own part")
    bits = 256 // layout.instr_shape[2]  # of an element: one instruction has 32 bytes of K
    row = next(row for row in _rows(target) if _bits(row) == bits)
    bases = [(1 << i, 0) for i in range(int(math.log2(layout.warps_per_cta[0])))]
    bases += [(0, 1 << i) for i in range(int(math.log2(layout.warps_per_cta[1])))]
    return constructor(Wmma(3, True, tuple(bases), (), tuple(row.shape)))


def k_width(dtype: str, target: Target) -> int:
    """Consecutive elements of K that a lane holds of an operand. Raises: NoCounterpart for a type that is not multiplied."""
    for row in _rows(target):
        if dtype in row.dtypes:
            return row.k_width
    raise NoCounterpart(f"products of {dtype} are none of its matrix instructions")


def _rows(target: Target) -> list[MatrixRow]:
    return sorted((row for row in target.matrix if row.kind == "wmma"), key=lambda row: row.shape[2])


def _bits(row: MatrixRow) -> int:
    return 32 if "fp32" in row.dtypes else 8 if {"int8", "fp8e5"} & {*row.dtypes} else 16


def in_lds(shape: Sequence[int], element_bits: int) -> Padded | Swizzled:
    """A layout in LDS for blocks that the mover copies: rows one after another, 16 bytes between them against bank conflicts."""
    row, order = shape[-1] * element_bits // 8, tuple(reversed(range(len(shape))))
    if len(shape) < 2 or not 8 <= row <= _MOST_INTERVAL:
        return Swizzled(1, 1, 1, order)
    return Padded(((shape[-1], _PAD_BYTES * 8 // element_bits),), (), order, tuple(shape))


def padded(shape: Sequence[int], element_bits: int) -> str:
    """The expression of that layout."""
    return in_lds(shape, element_bits).spelled()


class Named:
    """Layouts that the kernel's descriptors have, each with a name that nothing else has.

    blocks: the shape of each descriptor's blocks, and the bits of an element. Descriptors with equal layouts share one.
    """

    def __init__(self, taken: set[str], blocks: Mapping[str, tuple[Sequence[int], int]]):
        self.lines: list[str] = []
        self._names: dict[str, str] = {}  # by descriptor
        layouts = {descriptor: in_lds(*block) for descriptor, block in blocks.items()}
        groups: dict[str, list[str]] = {}
        for descriptor, layout in layouts.items():
            groups.setdefault(layout.spelled(), []).append(descriptor)
        for spelled, descriptors in groups.items():
            whose = "tile" if 1 < len(descriptors) == len(blocks) else "_".join(descriptors)
            name = numbered(f"{whose}_shared", taken.__contains__)
            taken.add(name)
            self._names |= dict.fromkeys(descriptors, name)
            layout = layouts[descriptors[0]]
            if isinstance(layout, Padded):
                self.lines.append(f"# {layout.described()}")
            self.lines.append(f"{name}: gl.constexpr = {spelled}")

    def of(self, descriptor: str) -> str:
        """The name of the layout of a descriptor's blocks."""
        return self._names[descriptor]
