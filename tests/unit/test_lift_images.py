"""Descriptors of images (im2col): the pixels that lifted kernels read are those that the descriptor walks over."""

from __future__ import annotations

import itertools
import math
from textwrap import dedent
from types import SimpleNamespace

import numpy as np
import pytest

from fixture_set import ROOT
from launch_checks_of import check_of
from lift_harness import lifted, tensor
from gluonize.diagnostics import TranslationError
from gluonize.facts.integers.given_launches import given_numbers
from gluonize.judge.machine.memory.tensor_descriptors import Descriptor, PixelBox
from gluonize.lift.machine.images import pixels
from gluonize.lift.values.scalars import Scalar, atom
from gluonize.lift.values.tensors import Graph, Node
from gluonize.read.kernels.gluon_kernels import plain_launch
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.model.locations import UNKNOWN
from gluonize.trace.model.types import Type

NUMPY = {
    "arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply, "arith.andi": np.logical_and,
    "tt.addptr": np.add, "arith.select": np.where, "arith.extsi": lambda x: x.astype(np.int64),
    "arith.divsi": lambda a, b: np.trunc(a / b).astype(np.int64), "arith.remsi": np.fmod,
}  # fmt: skip


def value(x: Node | Scalar) -> np.ndarray:
    """What an expression is; a pointer is its distance from the base."""
    if isinstance(x, Scalar):
        return np.int64(x.value)
    args = [value(y) for y in x.args] if x.op != "argument" else []
    shape = x.type.shape
    if x.op == "argument":
        return np.int64(0)
    if x.op == "tt.make_range":
        return np.arange(*x.attrs)
    if x.op in ("tt.splat", "tt.broadcast"):
        return np.broadcast_to(args[0], shape)
    if x.op == "tt.expand_dims":
        return np.expand_dims(args[0], x.attrs[0])
    if x.op == "arith.cmpi":
        return {"slt": np.less, "sge": np.greater_equal}[x.attrs[0]](*args)
    return NUMPY[x.op](*args)


def number(n: int) -> Scalar:
    return Scalar(n, atom("arg", f"n{n}"))


def read(shape, lower, upper, steps, block, start, offsets):
    """Distances and mask that the lifted arithmetic gives."""
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    parts = [number(n) for n in (*shape, *strides, *lower, *upper, *steps)]
    base = Node("argument", ("x.0",), (), Type("ptr", "f16"))
    node = Node("images", ("x",), (base, *parts), Type("desc", "f16", block))
    run = SimpleNamespace(graph=Graph(), around=())
    pointers, inside = pixels(run, UNKNOWN, node, [number(n) for n in start], [number(n) for n in offsets])
    box = PixelBox(tuple(lower), tuple(upper), tuple(steps))
    held = Descriptor(0, tuple(shape), tuple(strides), block, "f16", box=box)
    return value(pointers), value(inside), held.pixels(start, offsets)


CASES = [
    # shape, lower, upper, steps; where the walk begins is each pixel around the box
    ((2, 5, 7, 16), (0, 0), (0, 0), (1, 1)),
    ((2, 5, 7, 16), (-1, -1), (-1, -1), (1, 1)),
    ((2, 5, 7, 16), (-1, 0), (0, -2), (2, 3)),
    ((3, 9, 16), (-2,), (1,), (2,)),
    ((2, 3, 4, 5, 8), (0, -1, 0), (0, 0, -1), (1, 2, 1)),
]


@pytest.mark.parametrize("shape, lower, upper, steps", CASES)
def test_rows_are_the_pixels_that_the_descriptor_walks_over(shape, lower, upper, steps):
    begins = [range(low - 1, extent + 1) for low, extent in zip(lower, shape[1:-1])]
    for first in itertools.islice(itertools.product((0, 1), *begins), 0, None, 3):
        for channel, moved in ((0, 0), (8, 1), (shape[-1] - 4, 2)):
            start, offsets = [*first, channel], [moved] * len(lower)
            pointers, inside, (address, held) = read(shape, lower, upper, steps, (32, 8), start, offsets)
            np.testing.assert_array_equal(inside, held)
            np.testing.assert_array_equal(pointers[held], (address // 2)[held])


def images(kind: str = "fp16", **box) -> tuple[str, dict]:
    """The type of a descriptor of images, and what a launch gives for it."""
    layout = "NVMMASharedLayout(swizzle_byte_width=64, element_bitwidth=16, rank=2, transposed=False, fp4_padded=False, cga_layout=[])"
    base = tensor("float16", 2, 6, 6, 32)["tensor"]
    corners = {"pixel_box_lower_corner": [-1, -1], "pixel_box_upper_corner": [-1, -1], "element_strides": [1, 1, 1, 1]}
    held = {"base": base, "shape": [2, 6, 6, 32], "strides": [1152, 192, 32, 1], **(corners | box)}
    return f"tensordesc_im2col<{kind}[16, 32],input_rank=4,{layout}>", {"descriptor": held}


TILE = dedent("""
    from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

    @gluon.jit
    def kernel(x, y, r, s):
        slot = gl.allocate_shared_memory(x.dtype, x.block_shape, x.layout)
        bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
        mbarrier.init(bar, count=1)
        mbarrier.expect(bar, x.block_type.nbytes)
        tma.async_load_im2col(x, [0, gl.program_id(0) - 1, -1, 0], [r.to(gl.int16), s.to(gl.int16)], bar, slot)
        mbarrier.wait(bar, 0)
        layout: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])
        at = gl.arange(0, 16, gl.SliceLayout(1, layout))[:, None] * 32 + gl.arange(0, 32, gl.SliceLayout(0, layout))[None, :]
        gl.store(y + gl.program_id(0) * 512 + at, slot.load(layout))
""")


def arguments(**box) -> dict:
    return {"x": images(**box), "y": ("*fp16", tensor("float16", 2048)), "r": ("i32", 2), "s": ("i32", 3)}


def test_a_tile_of_pixels_is_read_through_pointers(tmp_path):
    text = lifted(tmp_path, TILE, "cuda:90", arguments(), {}, [4])
    assert "tl.load(x[0] + " in text and "mask=" in text and "other=0.0" in text
    assert "pixel_y = r + " in text and "pixel_x = s + " in text


def test_what_lies_outside_is_zero_or_refused(tmp_path):
    with pytest.raises(TranslationError) as caught:
        lifted(tmp_path, TILE, "cuda:90", arguments(padding="nan"), {}, [4])
    assert "NaN" in caught.value.diagnostics[0].why


def launch() -> LaunchSpec:
    kind, held = images()
    return LaunchSpec(
        "i", "kernel", signature={"x": kind, "n": "i32"}, attrs={"n": "D"}, values={"x": held}, target="cuda:90"
    )


def test_the_lifted_kernel_takes_a_tuple():
    plain = plain_launch(launch())
    assert plain.signature["x"] == ["*fp16", ["i32"] * 4, ["i64"] * 3 + ["constexpr"], *[["i32"] * 2] * 3]
    base, *numbers = plain.values["x"]["$tuple"]
    assert base["tensor"]["shape"] == [2, 6, 6, 32]
    assert [x["$tuple"] for x in numbers] == [[2, 6, 6, 32], [1152, 192, 32, 1], [-1, -1], [-1, -1], [1, 1]]


def test_tuples_are_no_whole_numbers():
    _, given = given_numbers([plain_launch(launch())], {})
    assert given.unsaid == {"n": 16}


def test_a_launch_is_checked_for_the_parts_of_the_descriptor():
    """Triton would say of another tuple, or of the descriptor itself, that some name does not exist."""
    check = check_of((ROOT / "convolution" / "golden" / "gfx950.py").read_text(), "convolution")
    pair, ones = (1, 2), (1, 1)
    plain = (object(), pair, pair)
    x = (object(), (2, 7, 9, 128), (8064, 1152, 128, 1), ones, ones, ones)
    check(x, plain, plain)
    for wrong in (x[:3], object(), (*x[:4], (1, 1, 1), ones), (x[0], pair, pair, ones, ones, ones)):
        with pytest.raises(ValueError, match=r"convolution: x is not \(base, shape, strides"):
            check(wrong, plain, plain)
    with pytest.raises(ValueError, match=r"convolution: w is not \(base, shape, strides"):
        check(x, object(), plain)
