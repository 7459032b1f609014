"""Layout maps and their drawings against the compiler's own view of every kind of layout."""

import re

import numpy as np
import pytest
import report_layout_view  # noqa: F401 - found by the children through this folder

from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.product.report.layouts import banks, drawing
from gluonize.product.report.layouts.linear_map import DistributedMap, Holder, SharedMap, bank_use
from gluonize.trace.model.layouts import Blocked, DotOperand, Linear, Mfma, Slice, Wmma
from gluonize.trace.model.shared_layouts import Padded, SharedLinear, Swizzled

MFMA = Mfma(4, (32, 32, 16), True, (2, 2))
WMMA = Wmma(2, True, ((0, 1), (1, 0)), (), (16, 16, 16))
BLOCKED = Blocked((1, 8), (8, 8), (4, 1), (1, 0))
# target, warps, layout, shape; together every kind of register layout, with broadcast, slices and one and three dimensions.
CASES = {
    "blocked": ("gfx950", 4, BLOCKED, (64, 64)),
    "blocked column-major": ("gfx942", 4, Blocked((8, 1), (8, 8), (1, 4), (0, 1)), (64, 64)),
    "blocked vector, copies": ("gfx950", 4, Blocked((1,), (64,), (4,), (0,)), (128,)),
    "blocked, three dimensions": ("gfx1100", 4, Blocked((1, 1, 4), (2, 4, 4), (2, 2, 1), (2, 1, 0)), (4, 8, 16)),
    "slice": ("gfx950", 4, Slice(1, BLOCKED), (64,)),
    "linear": (
        "gfx950",
        4,
        Linear(
            ((0, 1), (0, 2), (0, 4), (4, 0), (8, 0)),
            ((0, 8), (0, 16), (0, 32), (64, 0), (32, 0), (16, 0)),
            ((1, 0), (2, 0)),
            (),
            (128, 64),
        ),
        (128, 64),
    ),
    "mfma": ("gfx950", 4, MFMA, (64, 64)),
    "mfma, not transposed": ("gfx942", 4, Mfma(3, (16, 16, 16), False, (4, 1)), (64, 32)),
    "mfma operand": ("gfx950", 4, DotOperand(0, MFMA, 8), (64, 32)),
    "mfma operand b": ("gfx950", 4, DotOperand(1, MFMA, 8), (32, 64)),
    "wmma": ("gfx1200", 4, WMMA, (32, 32)),
    "wmma operand": ("gfx1200", 4, DotOperand(1, WMMA, 8), (16, 32)),
}


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(1) as pool:
        yield pool


def viewed(text: str, held: DistributedMap) -> dict[tuple[int, ...], set[Holder]]:
    """The compiler's view as element -> holders; threads are numbered through all warps."""
    cells = [cell for line in text.splitlines() for cell in line.strip("[] \n").split(",") if cell.strip("[] ")]
    out = {}
    for at, cell in zip(np.ndindex(*held.shape), cells, strict=True):
        pairs = re.findall(r"T(\d+):\s*(\d+)", cell)
        out[at] = {Holder(int(t) // held.lanes, int(t) % held.lanes, int(r)) for t, r in pairs}
    return out


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", CASES)
def test_every_element_is_where_the_compiler_sees_it(pool, name):
    text, held = pool.call("report_layout_view:both", *CASES[name])
    assert {at: set(found) for at, found in held.holders.items()} == viewed(text, held)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", CASES)
def test_drawing_shows_what_the_compiler_sees(pool, name):
    """The boxes of the SVG, read back: their place, lane and registers are those of the compiler's view."""
    text, held = pool.call("report_layout_view:both", *CASES[name])
    expected = viewed(text, held)
    picture = drawing.detail(held)
    boxes = re.findall(r'data-holder="(\d+)\.(\d+)" data-at="(\d+),(\d+),(\d+)" data-first="(\d+)"', picture)
    assert boxes
    shown = set()
    for warp, lane, row, column, length, first in (map(int, box) for box in boxes):
        for i in range(length):
            at = drawing.coordinates(held.shape, row, column + i)
            assert Holder(warp, lane, first + i) in expected[at]
            shown.add((row, column + i))
    rows, columns = drawing.detail_size(held)
    assert shown == {(r, c) for r in range(rows) for c in range(columns)}


def test_a_wrong_basis_is_noticed(pool):
    """The comparison above can fail: one exchanged basis changes where elements are."""
    text, held = pool.call("report_layout_view:both", *CASES["blocked"])
    first, second, *rest = held.lane
    wrong = DistributedMap(held.register, (second, first, *rest), held.warp, held.shape)
    assert {at: set(found) for at, found in wrong.holders.items()} != viewed(text, wrong)


def test_overview_names_the_warps(pool):
    _, held = pool.call("report_layout_view:both", *CASES["mfma"])
    picture = drawing.overview(held)
    said = set(re.findall(r"<title>(warp \d: rows \d+ to \d+, columns \d+ to \d+)</title>", picture))
    assert said == {
        "warp 0: rows 0 to 31, columns 0 to 31",
        "warp 1: rows 0 to 31, columns 32 to 63",
        "warp 2: rows 32 to 63, columns 0 to 31",
        "warp 3: rows 32 to 63, columns 32 to 63",
    }


@pytest.mark.parametrize(
    "layout",
    [
        Swizzled(8, 1, 8, (1, 0)),
        Swizzled(1, 1, 1, (0, 1)),
        Padded(((64, 8),), (), (1, 0), (32, 64)),
        SharedLinear(tuple((0, 1 << i) for i in range(6)) + tuple((1 << i, 0) for i in range(5))),
    ],
    ids=["swizzled", "column-major", "padded", "linear"],
)
def test_every_element_has_its_own_place_in_lds(pool, layout):
    stored = pool.call("report_layout_view:shared", "gfx942", layout, (32, 64), 16)
    assert set(stored.offsets) == set(np.ndindex(32, 64))
    assert len(set(stored.offsets.values())) == 32 * 64


def test_swizzle_and_padding_by_hand(pool):
    """Row 1 of a swizzle with vectors of 8 has its vectors exchanged; 8 elements of padding follow each 64."""
    swizzled = pool.call("report_layout_view:shared", "gfx942", Swizzled(8, 1, 8, (1, 0)), (32, 64), 16)
    assert [swizzled.offsets[1, c] for c in (0, 8, 9)] == [64 + 8, 64, 65]
    padded = pool.call("report_layout_view:shared", "gfx942", Padded(((64, 8),), (), (1, 0), (32, 64)), (32, 64), 16)
    assert [padded.offsets[r, 3] for r in (0, 1, 2)] == [3, 64 + 8 + 3, 2 * (64 + 8) + 3]
    assert padded.size == (32 * 64 + 31 * 8) * 2


# 32 lanes read 4 bytes each, down a column of rows of 128 bytes: all in one bank, or in one each with a word of padding.
COLUMN = DistributedMap((), tuple((1 << i, 0) for i in range(5)), (), (32, 32))
ROWS = tuple((0, 1 << i) for i in range(5)) + tuple((1 << i, 0) for i in range(5))


def test_column_of_one_bank_takes_a_cycle_per_lane():
    use = bank_use(COLUMN, SharedMap(ROWS, (), (32, 32), 32), banks=32)
    assert (use.vector_bytes, use.ideal, use.cycles, use.conflicts) == (4, 1, 32, 31)
    assert use.phases[0] == {0: tuple(range(0, 1024, 32))}
    picture = banks.access(use)
    assert picture.count('class="conflict"') == 1 and picture.count('class="idle"') == 31
    assert "bank 0: 32 words" in picture


def test_padding_takes_the_conflicts_away():
    use = bank_use(COLUMN, SharedMap(ROWS, ((32, 1),), (32, 32), 32), banks=32)
    assert use.conflicts == 0 and len(use.phases[0]) == 32
    assert 'class="conflict"' not in banks.access(use)


def test_lanes_that_want_the_same_word_share_it():
    same = DistributedMap((), ((0, 0),) * 5, (), (32, 32))
    assert bank_use(same, SharedMap(ROWS, (), (32, 32), 32), banks=32).conflicts == 0


def test_wide_accesses_are_served_in_phases():
    """64 lanes of 16 bytes need 1024 bytes, 256 at a time over 64 banks."""
    vector = DistributedMap(
        tuple((0, 1 << i) for i in range(3)),
        tuple((0, 8 << i) for i in range(3)) + tuple((1 << i, 0) for i in range(3)),
        (),
        (8, 64),
    )
    rows = tuple((0, 1 << i) for i in range(6)) + tuple((1 << i, 0) for i in range(3))
    use = bank_use(vector, SharedMap(rows, (), (8, 64), 16), banks=64)
    assert (use.vector_bytes, use.ideal, use.conflicts) == (16, 4, 0)


def test_bank_map_colours_by_bank():
    picture = banks.bank_map(SharedMap(ROWS, (), (32, 32), 32), banks=32)
    rows = re.findall(r'data-bank="(\d+)"', picture)
    assert rows[:32] == [str(i) for i in range(32)] and rows[32:64] == rows[:32]


def test_bank_map_of_a_column_major_tile_steps_down_by_words():
    """Two 16-bit elements of a column share a word: the second box of a column is the next bank."""
    columns = tuple((1 << i, 0) for i in range(5)) + tuple((0, 1 << i) for i in range(3))
    picture = banks.bank_map(SharedMap(columns, (), (32, 8), 16), banks=32)
    found = re.findall(r"element \((\d+), (\d+)\): byte (\d+), bank (\d+)", picture)
    assert [tuple(map(int, x)) for x in (found[0], found[1], found[8])] == [(0, 0, 0, 0), (0, 1, 64, 16), (2, 0, 4, 1)]
