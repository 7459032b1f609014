"""Launches without what Triton decided by sizes alone: neighbours with other operands in LDS have one text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fixture_set import ROOT
from gluonize.decide.layouts.gluon_values import linear, of_gluon
from gluonize.decide.layouts.parametric import Entry
from gluonize.decide.layouts.rule_texts import chained_cores, second_cores
from gluonize.decide.readback.operands import OperandInLds
from gluonize.decide.readback.staging import Staged
from gluonize.decide.readback.traced_launch import TracedLaunch
from gluonize.general.converted_texts import in_words_of
from gluonize.general.launches.trials import with_sizes
from gluonize.general.layout_roles import classes, loosened, roles, same_through_lds, stored_as_loaded, told_apart
from gluonize.gluon.trees.function import parsed
from gluonize.read.spec.launch import read_launches
from gluonize.request import TranslateRequest
from gluonize.trace.model.layouts import Blocked, DotOperand, Mfma
from gluonize.trace.model.shared_layouts import Swizzled
from gluonize.trace.passes.anchors import Anchors, PlacedOp, TensorType
from gluonize.translation import tools_of
from gluonize.write.function.layout_constants import with_constants
from gluonize.write.state.emitted import EmittedFunction, EmittedKernel, LaidOut

ROWS = Blocked((1, 4), (4, 16), (4, 1), (1, 0))
OWN, WARPS_BESIDE, ONE_WARP = (64, 128, 64, 4), (64, 64, 64, 4), (32, 32, 64, 1)


def alike(one: EmittedKernel, other: EmittedKernel) -> bool:
    """Whether one text stands for both but for layouts, and where values are converted to these."""
    return in_words_of(one, other) is not None


def launched(*ops: tuple[str, int, str]) -> TracedLaunch:
    """A launch with operations: (name, path, element)."""
    made = [PlacedOp(name, (path,), (), (TensorType((64, 64), element, ROWS),)) for name, path, element in ops]
    return TracedLaunch(None, None, None, Anchors.of(made), 4, 1, {}, operands_in_lds={(1,): ()})


def test_arithmetic_on_indices_lies_anywhere_but_beside_what_was_chosen():
    every = [
        ("tt.load", 0, "f16"),
        ("tt.splat", 0, "i1"),
        ("arith.addi", 1, "i32"),
        ("arith.mulf", 2, "f32"),
    ]
    loose = loosened(launched(*every), False)
    assert [op.name for op in loose.anchors.ops] == ["tt.load", "tt.splat", "arith.mulf"]
    assert not loose.operands_in_lds and loose.loose


def test_a_tile_is_stored_as_it_was_loaded_where_lanes_keep_what_they_hold():
    """Not where another lane stores it, and a copy that no lane sees stays one."""
    held = Blocked((4, 4), (4, 16), (4, 1), (1, 0))
    bases = linear(held, (64, 64))
    turned = replace(bases, register=bases.register[2:4] + bases.register[:2] + bases.register[4:])
    moved = replace(bases, register=bases.register[:-1] + bases.lane[:1], lane=bases.register[-1:] + bases.lane[1:])
    tiles = [Staged((64, 64), Swizzled(1, 1, 1, (1, 0)), 1, held, into, "registers") for into in (turned, moved, None)]
    launch = replace(launched(), staging={(i,): tile for i, tile in enumerate(tiles)})
    found = stored_as_loaded(launch).staging
    assert [found[path].stored for path in ((0,), (1,), (2,))] == [held, moved, None]
    plain = replace(launched(), staging={(1,): tiles[1]})
    assert stored_as_loaded(plain) is plain


def test_operands_that_go_through_lds_whatever_the_sizes_stay_there():
    """What is loaded does; what is computed in a loop goes there for some sizes only."""
    q = OperandInLds((64, 64), "f16", Swizzled(4, 1, 16, (1, 0)), ((DotOperand(0, ROWS, 4), False),))
    every = launched(("tt.load", 0, "f16"), ("arith.truncf", 1, "f16"))
    launch = replace(every, operands_in_lds={(0,): (q,), (1,): (q,)})
    other = replace(every, operands_in_lds={(0,): (replace(q, shape=(32, 64), element="bf16"),)})
    same = same_through_lds([launch, other])
    assert [list(loosened(each, False, same).operands_in_lds) for each in (launch, other)] == [[(0,)]] * 2
    for changed in (replace(q, at_once=True), replace(q, loaded=ROWS), replace(q, read=((q.read[0][0], True),))):
        in_another_way = replace(every, operands_in_lds={(0,): (changed,)})
        assert not same_through_lds([launch, in_another_way])
        assert not loosened(in_another_way, False, same).operands_in_lds


@pytest.fixture(scope="module")
def attention():
    """(what traces, what writes) the first launch of attention for gfx950 with other sizes."""
    folder = ROOT / "flash_attention"
    spec = read_launches(str(folder / "launches.json"))[0]
    tools = tools_of(TranslateRequest(str(folder / "kernel.py"), "gfx950", launches=(spec,), general=True))

    def traced(point: tuple[int, ...]) -> TracedLaunch:
        return tools.trace(with_sizes(spec, dict(zip(("HEAD_DIM", "BLOCK_M", "BLOCK_N", "num_warps"), point))))

    return traced, tools.write


@pytest.mark.slow
def test_attention_with_other_operands_in_lds_has_one_text(attention):
    traced, write = attention
    launches = [traced(point) for point in (OWN, WARPS_BESIDE, ONE_WARP)]
    exact = write(launches[0], frozenset())
    moved = frozenset(key for key, moves in exact.moving.items() if moves)
    assert not alike(exact, write(launches[1], moved)), "nothing to be loosened"
    loose = [loosened(launch, False) for launch in launches]
    known = classes(list(map(roles, loose)))
    own, *others = (write(told_apart(launch, known), moved) for launch in loose)
    assert all(alike(own, other) for other in others)


def test_operands_of_a_product_are_read_in_any_order():
    def product(text: str):
        function = parsed(f"def kernel(a, b, c):\n    gl.store(c, {text})\n")
        laid_out = LaidOut(function, (("mma", Mfma(4, (32, 32, 16), True, (2, 2))),))
        return EmittedKernel(EmittedFunction(function, None, laid_out=laid_out), [])

    plain = product("cdna4.mfma(a, b, c)")
    assert alike(plain, product("cdna4.mfma(a, b, acc=c)"))
    assert alike(plain, product("cdna4.mfma(a, acc=gl.convert_layout(c, mma), b=b)"))
    assert not alike(plain, product("cdna4.mfma(a, c, acc=b)"))
    assert not alike(plain, product("cdna4.mfma(b=a, a=b, acc=c)"))


def test_a_layout_that_is_equal_in_one_launch_is_not_called_by_the_name_of_another():
    """The operand's product has four warps of rows in every launch; `beside` only where rows are 128."""
    warps, rows = Entry(4, "gl.num_warps()"), Entry(4, "M // 32")
    own, beside = (Mfma(4, (32, 32, 16), True, (down, 1)) for down in (warps, rows))
    assert own == beside
    constants = (("mma", own), ("beside", beside), ("a", DotOperand(0, own, 8)), ("b", DotOperand(1, beside, 8)))
    text = with_constants(LaidOut(parsed("def kernel(x):\n    gl.store(x, 1)\n"), constants)).text
    assert "gl.DotOperandLayout(0, mma, 8)" in text and "gl.DotOperandLayout(1, beside, 8)" in text


@pytest.mark.parametrize(
    "m, n, k, warps, shape, tiles",
    [
        (128, 64, 64, 4, (32, 32, 16), ()),
        (64, 64, 64, 4, (32, 32, 16), ()),
        (128, 16, 64, 4, (16, 16, 32), (2, 1)),
        (128, 16, 64, 8, (16, 16, 32), ()),
        (128, 16, 16, 4, (16, 16, 16), (2, 1)),
        (16, 64, 64, 1, (16, 16, 32), ()),
    ],
)
def test_a_product_whose_rows_another_multiplies_has_whole_rows(m, n, k, warps, shape, tiles):
    """As Triton has it for attention on gfx950."""
    rule = chained_cores(4, {32: [16], 16: [32, 16]}, True, paired=True)
    assert of_gluon(rule.function(m, n, k, warps)) == Mfma(4, shape, True, (warps, 1), tiles_per_warp=tiles)


@pytest.mark.parametrize(
    "m, n, k, warps, shape, shared",
    [
        (128, 64, 64, 4, (32, 32, 8), (4, 1)),
        (128, 64, 64, 8, (32, 32, 8), (4, 2)),
        (16, 64, 16, 4, (16, 16, 16), (1, 4)),
        (32, 16, 64, 2, (16, 16, 16), (2, 1)),
    ],
)
def test_a_product_that_multiplies_rows_of_another_has_columns_where_these_are_few(m, n, k, warps, shape, shared):
    """As Triton has it for attention on gfx942."""
    rule = second_cores(3, {32: [8], 16: [16]}, True, paired=False)
    assert of_gluon(rule.function(m, n, k, warps)) == Mfma(3, shape, True, shared)
