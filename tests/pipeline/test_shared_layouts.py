"""Layouts of LDS tiles: read from TTGIR text and spelled for Gluon."""

from __future__ import annotations

import pytest
from triton.experimental.gluon import language as gl

from gluonize.trace.model.attributes import parse_attribute
from gluonize.trace.model.shared_layouts import Padded, SharedLinear, Swizzled, read_shared, rotating


def test_rotating_is_the_formula_of_triton():
    # The K x N tile of an fp16 operand on gfx942: the bases of `sharedToLinearLayoutAMDRotating` for 64 x 128.
    layout = rotating(4, 1, 16, (0, 1), (64, 128))
    rows = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0), (32, 0)]
    assert layout.offsets == (*rows, (4, 1), (8, 2), (16, 4), (32, 8), (4, 16), (8, 32), (16, 64))


def test_rotating_reaches_every_element_once():
    layout = rotating(8, 2, 8, (1, 0), (32, 64))
    seen = set()
    for offset in range(32 * 64):
        place = (0, 0)
        for bit, basis in enumerate(layout.offsets):
            if offset >> bit & 1:
                place = (place[0] ^ basis[0], place[1] ^ basis[1])
        seen.add(place)
    assert seen == {(r, c) for r in range(32) for c in range(64)}


READ = [
    (
        "#ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 8, order = [1, 0]}>",
        Swizzled(8, 2, 8, (1, 0)),
        "SwizzledSharedLayout",
    ),
    (
        "#ttg.padded_shared<[128:+8] {order = [1, 0], shape = [4, 8]}>",
        Padded(((128, 8),), (), (1, 0), (4, 8)),
        "PaddedSharedLayout",
    ),
    (
        "#ttg.padded_shared<[512:+16, 1024:+8] {offset = [[0, 1], [0, 2], [0, 4], [2, 0], [1, 0]], block = []}>",
        Padded(((512, 16), (1024, 8)), ((0, 1), (0, 2), (0, 4), (2, 0), (1, 0)), (), (4, 8)),
        "PaddedSharedLayout",
    ),
    (
        "#ttg.shared_linear<{offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]]}, alignment = 16>",
        SharedLinear(((0, 1), (0, 2), (0, 4), (1, 0), (2, 0))),
        "SharedLinearLayout",
    ),
]


@pytest.mark.parametrize("text, layout, kind", READ)
def test_read_and_spelled(text: str, layout, kind: str):
    read = read_shared(parse_attribute(text), (4, 8))
    assert read == layout
    built = eval(read.spelled(), {"gl": gl})  # noqa: S307
    assert type(built).__name__ == kind and layout.described().startswith("LDS: ")


def test_what_has_no_constructor_is_left_out():
    assert read_shared(parse_attribute("#ttg.nvmma_shared<{swizzlingByteWidth = 128}>"), (4, 8)) is None
    assert "permuted" in READ[2][1].described() and "permuted" not in READ[1][1].described()
