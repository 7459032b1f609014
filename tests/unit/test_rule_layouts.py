"""Layouts that are lists of bases, as calls of the functions that give them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gluonize.decide.layouts.constructors import Called
from gluonize.decide.layouts.gluon_values import as_gluon, linear, of_gluon
from gluonize.decide.layouts.rule_texts import PADDED_OPERAND, TRANSPOSED, WIDE_STORE
from gluonize.gluon.layout_names import Tile
from gluonize.gluon.trees.function import gives_layout, parsed
from gluonize.gluon.trees.walk import walk
from gluonize.trace.model.layouts import Blocked, DotOperand, Layout, Linear, Mfma
from gluonize.triton_api.gluon_language import gl
from gluonize.write.function.rule_layouts import RuleLayouts

MMA = Mfma(4, (32, 32, 16), True, (2, 2))
A = DotOperand(0, MMA, 8)
SHARED = of_gluon(PADDED_OPERAND.given(as_gluon(A), [128, 64], gl.float16, True))
# In the order of LDS: eight columns for a lane, then lanes, then warps; the rest of the tile is in registers again.
LOAD = Linear((*SHARED.offsets[:3], *SHARED.offsets[11:]), SHARED.offsets[3:9], SHARED.offsets[9:11], (), (128, 64))
STORE = of_gluon(WIDE_STORE.given(as_gluon(MMA), as_gluon(linear(MMA, (128, 128)))))
TILES = {
    SHARED: Tile((128, 64), ("BLOCK_M", "BLOCK_K"), ("gl.float16", "a_ptr.dtype.element_ty")),
    STORE: Tile((128, 128), ("BLOCK_M", "BLOCK_N")),
}
CONSTANTS = (("a_load", LOAD), ("mma", MMA), ("c_store", STORE), ("a_shared", SHARED), ("a_operand", A))
PARAMETERS = {"a_ptr", "BLOCK_M", "BLOCK_N", "BLOCK_K"}


def written(
    constants=CONSTANTS, tiles=TILES, parameters=PARAMETERS, taken=(), warps=4
) -> tuple[dict[str, str | Layout], list]:
    rules = RuleLayouts(constants, tiles, 64, warps, parameters, lambda: taken)
    found = rules.written()
    return {name: x.text if isinstance(x, Called) else x for name, x in found}, list(rules.called)


def test_what_a_layout_follows_from_is_written_behind_it():
    found, called = written()
    assert list(found) == ["mma", "c_store", "a_operand", "a_shared", "a_load"]
    assert found["a_shared"] == (
        "cdna4.compute_efficient_padded_shared_layout(a_operand, [BLOCK_M, BLOCK_K], a_ptr.dtype.element_ty)"
    )
    assert found["a_load"] == "direct_copy(a_shared, 8, gl.num_warps())"
    assert found["c_store"] == "wide_store(mma, gl.to_linear_layout(mma, [BLOCK_M, BLOCK_N]))"
    assert sorted(called) == ["cdna4.compute_efficient_padded_shared_layout", "direct_copy", "wide_store"]


def test_what_lanes_transpose_follows_from_what_they_loaded():
    held = Blocked((4, 8), (4, 16), (4, 1), (1, 0))
    made = of_gluon(TRANSPOSED.given(as_gluon(held), as_gluon(linear(held, (64, 128)))))
    constants, tiles = (("b_transposed", made), ("b_load", held)), {held: Tile((64, 128), ("BLOCK_K", "BLOCK_N"))}
    found, called = written(constants, tiles)
    assert found["b_transposed"] == "transposed_in_lanes(b_load, gl.to_linear_layout(b_load, [BLOCK_K, BLOCK_N]))"
    assert list(found) == ["b_load", "b_transposed"] and called == ["transposed_in_lanes"]
    other = replace(made, register=swapped(made.register, 0, 2))
    assert written((("b_transposed", other), ("b_load", held)), tiles)[0]["b_transposed"] == other


def swapped(bases: tuple, i: int, j: int) -> tuple:
    out = list(bases)
    out[i], out[j] = out[j], out[i]
    return tuple(out)


@pytest.mark.parametrize("at", range(6))
def test_no_call_stands_for_bases_in_another_order(at: int):
    other = replace(LOAD, lane=swapped(LOAD.lane, at, (at + 1) % 6))
    assert written((("a_load", other), *CONSTANTS[1:]))[0]["a_load"] == other
    tile = replace(SHARED, offsets=swapped(SHARED.offsets, at + 6, at + 5))
    found, _ = written((*CONSTANTS[:3], ("a_shared", tile), CONSTANTS[4]), TILES | {tile: TILES[SHARED]})
    assert found["a_shared"] == tile and found["a_load"] == LOAD
    store = replace(STORE, lane=swapped(STORE.lane, at, (at + 1) % 6))
    found, _ = written((CONSTANTS[1], ("c_store", store)), TILES | {store: TILES[STORE]})
    assert found["c_store"] == store


def test_nor_for_another_number_of_warps():
    assert written(warps=8)[0]["a_load"] == LOAD


def test_sizes_are_those_that_the_top_of_the_function_knows():
    assert written(parameters=PARAMETERS - {"BLOCK_K"})[0]["a_shared"] == SHARED
    assert written(parameters=PARAMETERS - {"a_ptr"})[0]["a_shared"] == SHARED
    numbers = {SHARED: Tile((128, 64), ("128", "64"), ("gl.float16", "gl.float16"))}
    assert "(a_operand, [128, 64], gl.float16)" in written(tiles=numbers, parameters=())[0]["a_shared"]
    assert written(tiles={})[0]["c_store"] == STORE


def test_a_name_of_the_source_stays_its_own():
    found, called = written(taken={"direct_copy"})
    assert found["a_load"] == "direct_copy_2(a_shared, 8, gl.num_warps())" and "direct_copy_2" in called


def test_short_layouts_stay():
    plain = Blocked((1, 8), (8, 8), (4, 1), (1, 0))
    assert written((*CONSTANTS, ("x_load", plain)))[0]["x_load"] == plain


@pytest.mark.parametrize(
    "call, gives",
    [
        ("direct_copy(a, 8, 4)", True),
        ("direct_copy_2(a, 8, 4)", True),
        ("cdna4.compute_efficient_padded_shared_layout(a, s, t)", True),
        ("my_direct_copy(a)", False),
        ("direct_copy", False),
    ],
)
def test_calls_of_rules_are_layouts(call: str, gives: bool):
    function = parsed(f"def f():\n    x = {call}\n")
    (value,) = (n.value for n in walk(function.node) if type(n).__name__ == "Assign")
    assert gives_layout(value) == gives
