"""What layout Gluon infers for shape-changing operations: asked of Gluon's own builder, once per question.

`reshape`, `permute`, `join`, `split` and `cat` change a layout in ways that only the dialect's inference knows. The
questions are asked on a scratch module that holds nothing but the operation.
"""

from __future__ import annotations

import functools
from typing import Any

from gluonize.decide.layouts.constructors import constructor
from gluonize.rules.gluon import Layouts, class_name
from gluonize.trace.model.layouts import Blocked, DotOperand, Layout, Linear, Mfma, Slice, Wmma
from gluonize.triton_api.gluon_language import gl
from gluonize.triton_api.libtriton import gluon_ir, ir

# Scratch modules are kept for so many targets and numbers of warps, and made anew after so many operations: a context
# never gives back what was made in it.
MAX_MODULES = 8
MAX_QUESTIONS = 500


class NoLayout(Exception):
    """Gluon has no layout for the result (the operation does not exist for this operand layout)."""


class _Scratch:
    def __init__(self, arch: str, num_warps: int, warp_size: int, num_ctas: int):
        from gluonize.triton_api.libtriton import amd

        self.context = ir.context()
        ir.load_dialects(self.context)
        amd.load_dialects(self.context)
        self.builder = gluon_ir.GluonOpBuilder(self.context, arch)
        self.builder.set_loc("gluonize", 1, 0)
        self.module = self.builder.create_module()
        b = ir.builder(self.context)
        self.module.set_attr("ttg.target", b.get_string_attr(f"hip:{arch}"))
        self.module.set_attr("ttg.num-warps", b.get_int32_attr(num_warps))
        self.module.set_attr("ttg.num-ctas", b.get_int32_attr(num_ctas))
        self.module.set_attr("ttg.threads-per-warp", b.get_int32_attr(warp_size))
        function_type = self.builder.get_function_ty([], [])
        self.function = self.builder.get_or_insert_function(self.module, "scratch", function_type, "public", False)
        self.module.push_back(self.function)
        self.builder.set_insertion_point_to_start(self.function.add_entry_block())

        self.questions = 0

    def value(self, shape: tuple[int, ...], layout: Layout) -> Any:
        ty = gl.distributed_type(gl.int32, list(shape), to_gluon(layout))
        return self.builder.create_poison(ty.to_ir(self.builder))

    def layout_of(self, value: Any) -> Layout:
        return from_gluon(self.builder.get_gluon_layout_from_tensor(value))


@functools.lru_cache(maxsize=MAX_MODULES)
def _scratch(arch: str, num_warps: int, warp_size: int, num_ctas: int) -> _Scratch:
    return _Scratch(arch, num_warps, warp_size, num_ctas)


def to_gluon(layout: Layout) -> Any:
    """The Gluon object for `layout`."""
    return eval(constructor(layout), {"gl": gl})  # noqa: S307 - our own constructor text


def from_gluon(layout: Any) -> Layout:
    """The value for a Gluon layout object."""
    name = class_name(layout)

    def t(x):
        return tuple(t(y) for y in x) if isinstance(x, (list, tuple)) else x

    if name == Layouts.BLOCKED:
        parts = layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta, layout.order, layout.cga_layout
        return Blocked(*map(t, parts))
    if name == Layouts.SLICE:
        return Slice(layout.dim, from_gluon(layout.parent))
    if name == Layouts.LINEAR:
        return Linear(
            t(layout.reg_bases), t(layout.lane_bases), t(layout.warp_bases), t(layout.block_bases), t(layout.shape)
        )
    if name == Layouts.OPERAND:
        return DotOperand(layout.operand_index, from_gluon(layout.parent), layout.k_width)
    if name == Layouts.MFMA:
        tiles = t(layout.tiles_per_warp)
        return Mfma(
            layout.version,
            t(layout.instr_shape),
            layout.transposed,
            t(layout.warps_per_cta),
            layout.element_bitwidth,
            tiles if set(tiles) - {1} else (),
            t(layout.cga_layout),
        )
    if name == Layouts.WMMA:
        return Wmma(
            layout.version,
            layout.transposed,
            t(layout.warp_bases),
            t(layout.reg_bases or ()),
            t(layout.instr_shape),
            layout.rank,
            t(layout.cga_layout),
        )
    raise NoLayout(f"layout {layout} has no counterpart")


def infer(target: Any, num_warps: int, op: str, shape: tuple[int, ...], layout: Layout, detail: Any = ()) -> Layout:
    """The layout of `op` applied to a tensor of `shape` in `layout`; raises `NoLayout` where Gluon has none.

    `op` is `reshape` (detail: new shape), `permute` (detail: order), `join`, `split` or `cat`.
    """
    return _infer(target.name, num_warps, target.warp_size, op, shape, layout, detail)


@functools.lru_cache(maxsize=4096)
def _infer(arch, num_warps, warp_size, op, shape, layout, detail) -> Layout:
    asked = arch, num_warps, warp_size, 1 << len(layout.ctas)
    scratch = _scratch(*asked)
    if scratch.questions >= MAX_QUESTIONS:
        _scratch.cache_clear()
        scratch = _scratch(*asked)
    scratch.questions += 1
    builder = scratch.builder
    value = scratch.value(shape, layout)
    try:
        if op == "reshape":
            result = builder.create_reshape(value, list(detail), False)
        elif op == "permute":
            result = builder.create_trans(value, list(detail))
        elif op == "join":
            result = builder.create_join(value, value)
        elif op == "split":
            result = builder.create_split(value)[0]
        else:
            raise ValueError(op)
    except (RuntimeError, ValueError) as error:
        raise NoLayout(str(error)) from error
    return scratch.layout_of(result)
