"""Launches of kernels that are Gluon already: the values that only they have, and the classes that such kernels are made of."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from gluonize.diagnostics import TranslationError
from gluonize.read.evaluate.host_objects import record_fields
from gluonize.read.evaluate.spec_values import decode_value, encode_value, value_problem
from gluonize.read.kernels.load import load_kernel
from gluonize.read.spec.launch import parse_launches
from gluonize.trace.front.offline import gpu_target

SCHEDULERS = """
    from triton.experimental import gluon
    from triton.experimental.gluon import language as gl

    @gluon.aggregate
    class Plain:
        first: gl.tensor

        @gluon.jit
        def create():
            return Plain(gl.program_id(0))

        @gluon.jit
        def tile(self):
            return Tile(self)

    @gluon.aggregate
    class Tile:
        scheduler: Plain

    def grouped(size):
        size = gl.constexpr(size)

        @gluon.aggregate
        class Grouped:
            first: gl.tensor

            @gluon.jit
            def create():
                return Grouped(gl.program_id(0) // size)

        Grouped.__name__ = f"Grouped{size.value}"
        return Grouped

    @gluon.jit
    def kernel(out, Scheduler: gl.constexpr):
        gl.store(out, Scheduler.create().first)
"""


@pytest.fixture
def loaded(tmp_path):
    (tmp_path / "tiles").mkdir()
    path = tmp_path / "tiles" / "kernels.py"
    path.write_text(dedent(SCHEDULERS))
    return load_kernel(str(path), "kernel")


@pytest.mark.parametrize(
    "encoded, name",
    [
        ({"$class": "tiles/kernels.py:Plain"}, "Plain"),
        ({"$class": "kernels.py:Plain"}, "Plain"),
        ({"$call": "tiles/kernels.py:grouped", "args": [8]}, "Grouped8"),
    ],
    ids=["class below a folder around it", "class beside it", "made by a call"],
)
def test_classes_of_the_program(loaded, encoded, name):
    made = decode_value(encoded, loaded.load_jit)
    assert made.__name__ == name and made.__triton_aggregate__


def test_classes_may_mention_each_other(loaded):
    made = decode_value({"$class": "kernels.py:Plain"}, loaded.load_jit)
    assert made.tile.fn.__globals__["Tile"].__name__ == "Tile"


def test_a_path_that_is_not_there_is_refused(loaded):
    with pytest.raises(TranslationError, match="no file other.py"):
        decode_value({"$class": "other.py:Plain"}, loaded.load_jit)


@pytest.mark.parametrize(
    "text",
    [
        "BlockedLayout(size_per_thread=[1, 4], threads_per_warp=[8, 4], warps_per_cta=[4, 1], order=[1, 0], cga_layout=[])",
        "SliceLayout(dim=1, parent=BlockedLayout(size_per_thread=[1, 4], threads_per_warp=[8, 4], warps_per_cta=[4, 1], order=[1, 0], cga_layout=[]))",
        "NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2, transposed=False, fp4_padded=False, cga_layout=[])",
    ],
    ids=["blocked", "slice", "shared"],
)
def test_layouts_read_and_written(text):
    layout = decode_value({"$layout": text})
    assert repr(layout) == text
    assert encode_value(layout) == {"$layout": text}


@pytest.mark.parametrize("text", ["__import__('os')", "BlockedLayout(", "NoSuchLayout(1)", "open('x')"])
def test_what_is_no_layout_is_refused(text):
    with pytest.raises(TranslationError, match="is not a Gluon layout"):
        decode_value({"$layout": text})


@pytest.mark.parametrize(
    "value, problem",
    [
        ({"$call": "a.py:f", "args": 8}, "exactly one of the keys"),
        ({"$class": "a.py:f", "args": [8]}, "exactly one of the keys"),
        ({"$call": "a.py"}, "module:function"),
        ({"$call": "a.py:f", "args": [{"$nothing": 1}]}, "exactly one of the keys"),
    ],
)
def test_misspelt_values(value, problem):
    assert problem in (value_problem(value) or "")


def test_a_launch_keeps_its_target():
    (spec,) = parse_launches({"kernel": "k", "signature": {"x": "*fp32"}, "target": "cuda:90", "uses": ["tma_load"]})
    assert spec.target == "cuda:90"
    assert parse_launches(spec.as_json())[0] == spec


@pytest.mark.parametrize(
    "name, expected",
    [("cuda:90", ("cuda", 90, 32)), ("sm_100", ("cuda", 100, 32)), ("hip:gfx950", ("hip", "gfx950", 64))],
)
def test_targets_of_sources(name, expected):
    found = gpu_target(name)
    assert (found.backend, found.arch, found.warp_size) == expected


PLAN = """
    from triton.experimental import gluon
    from triton.experimental.gluon import language as gl

    class Plan:
        def __init__(self, first, count):
            self.first = first
            self.count = count

    @gluon.constexpr_function
    def plan(size):
        return Plan(size, count=size // 2)

    @gluon.jit
    def kernel(out, SIZE: gl.constexpr):
        made: gl.constexpr = plan(SIZE)
        gl.store(out, made.first + made.count)
"""


def test_a_plain_record_is_made_at_compile_time(tmp_path):
    path = tmp_path / "plan.py"
    path.write_text(dedent(PLAN))
    scope = load_kernel(str(path), "kernel").fn.__globals__
    made = scope["plan"](8)
    assert (getattr(made, "value", made).first, getattr(made, "value", made).count) == (8, 4)


@pytest.mark.parametrize(
    "text",
    [
        "class Plan:\n def __init__(self, n):\n  self.n = print(n)",
        "class Plan:\n def __init__(self, n):\n  self.n = m",
        "class Plan:\n def __init__(self, n=print()):\n  self.n = n",
        "class Plan(Base):\n def __init__(self, n):\n  self.n = n",
        "class Plan:\n def __init__(self, n):\n  self.n = n\n def m(self):\n  print()",
    ],
    ids=["a call", "something else", "a default", "a base", "a method"],
)
def test_any_other_class_is_not_made(text):
    assert record_fields(ast.parse(text).body[0]) is None
