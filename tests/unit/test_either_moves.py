"""Texts in which sizes say what moves from tile to tile: the base of addresses, or the offsets from it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from gluonize.decide.layouts.size_range import SizeRange
from gluonize.facts.obligations import Obligation
from gluonize.general.box import Region
from gluonize.general.either_moves import Moving, moving_bases, with_either
from gluonize.gluon.trees.function import parsed
from gluonize.write.state.emitted import EmittedFunction, EmittedKernel, LaidOut
from gluonize.write.state.unit import Record, Synthesized

BASE = """def kernel(x_ptr, K, stride, BLOCK):
    x_base = x_ptr
    x_offs = gl.arange(0, BLOCK) * stride
    for k in range(K):
        x = buffer_load(x_base, x_offs, mask=x_mask)
        # The next tile.
        x_base += BLOCK * stride
"""
OFFSETS = BASE.replace("    x_base = x_ptr\n", "").replace("(x_base, ", "(x_ptr, ").replace("x_base", "x_offs")
EITHER = BASE.replace("x_base += BLOCK * stride", "x_base, x_offs = advanced(x_base, x_offs, BLOCK * stride)")
REGION = Region((SizeRange("BLOCK", 16, 64), SizeRange("num_warps", 1, 4)))
CHECKED = Obligation(1, "stride", "not-negative", "offsets", "launch", ("stride",))


def translated(text: str, moves: bool, *obligations: Obligation, source: str = "") -> EmittedKernel:
    function = SimpleNamespace(file_name="", src=source)
    kernel = EmittedFunction(parsed(text), function, laid_out=LaidOut(parsed(text)))
    return EmittedKernel(kernel, [], Record(obligations=set(obligations)), {("kernel", "x_ptrs"): moves})


def made(own: EmittedKernel, plain: EmittedKernel | None, functions: dict | None = None) -> EmittedKernel:
    tools = SimpleNamespace(functions=functions or {})
    given = [SimpleNamespace(traced=SimpleNamespace(target=SimpleNamespace(warp_size=64)))]
    trials = SimpleNamespace(given=given, own=[own], tools=tools, unmoved=lambda i, point: plain)
    (found,) = with_either([own], trials, REGION)
    return found


def text_of(emitted: EmittedKernel) -> str:
    return emitted.kernel.laid_out.function.text


def test_sizes_say_what_moves_where_small_tiles_differ_in_that_alone():
    found = made(translated(BASE, True, CHECKED), translated(OFFSETS, False, CHECKED))
    assert text_of(found) == EITHER
    function, _ = found.record.globals_needed["advanced"]
    assert ">= 2 * 128 * 64 * gl.num_warps()" in function.text


@pytest.mark.parametrize(
    "plain",
    [
        translated(OFFSETS.replace("* stride\n    for", "* K\n    for"), False),
        translated(OFFSETS, False, CHECKED),
        translated(BASE, True),
        None,
    ],
    ids=["another-text", "asks-for-more", "no-small-tiles", "refused"],
)
def test_a_base_that_moves_stays_where_nothing_shows_that_offsets_may(plain):
    own = translated(BASE, True)
    assert made(own, plain) is own


def test_the_function_has_a_name_of_its_own():
    own, plain = (translated(text, text == BASE, source="advanced = 1") for text in (BASE, OFFSETS))
    assert "= advanced_2(x_base" in text_of(made(own, plain))
    plain_names = [translated(text, text == BASE) for text in (BASE, OFFSETS)]
    other = Synthesized("advanced", "def advanced(x): return x\n")
    assert "= advanced_2(x_base" in text_of(made(*plain_names, {"advanced": other}))


@pytest.mark.parametrize(
    "old, new",
    [
        ("mask=x_mask", "x_base"),
        ("buffer_load(x_base, x_offs", "buffer_load(x_base, x_offs + 1"),
        ("        # The next tile.", "        x_offs += 1"),
        ("        # The next tile.", "        x_base = x_ptr"),
    ],
    ids=["used-alone", "other-offsets", "offsets-move-too", "starts-twice"],
)
def test_what_is_no_base_with_offsets_of_its_own_is_left(old, new):
    assert moving_bases(parsed(BASE)) == {"x_base": Moving("x_ptr", "x_offs")}
    changed = BASE.replace(old, new)
    assert changed != BASE and moving_bases(parsed(changed)) == {}


def test_a_base_that_is_no_argument_at_first_stays_where_offsets_move():
    own, plain = (text.replace("x_base = x_ptr", "x_base = x_ptr + K") for text in (BASE, BASE))
    plain = plain.replace("x_base += ", "x_offs += ")
    assert moving_bases(parsed(own)) == {"x_base": Moving("", "x_offs")}
    assert "x_base, x_offs = advanced(" in text_of(made(translated(own, True), translated(plain, False)))


def test_launches_of_several_texts_are_left():
    own, other = translated(BASE, True), translated(BASE.replace("x_base", "base"), True)
    trials = SimpleNamespace(own=[own, other], unmoved=lambda i, point: translated(OFFSETS, False))
    assert with_either([own, other], trials, REGION) == [own, other]
