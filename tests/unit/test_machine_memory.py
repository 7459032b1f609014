"""Guarded memory, shared memory states, number formats and the comparison."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gluonize.judge.inputs.chosen_programs import choose_programs, together
from gluonize.judge.inputs.inputs import Inputs
from gluonize.judge.machine.dtypes import FLOAT8, decode, encode, rounded, stored, toward_zero
from gluonize.judge.machine.hazards import Hazard
from gluonize.judge.machine.memory.guarded import Buffer, Memory
from gluonize.judge.machine.memory.lds import Copy, SharedMemory
from gluonize.judge.verdict.compare import compare_buffer
from gluonize.trace.model.locations import UNKNOWN, Locations, strip_locations


def lanes(buffer, *elements: int, size: int = 4) -> np.ndarray:
    return buffer.base + np.array(elements, np.int64) * size


@pytest.fixture
def memory() -> Memory:
    made = Memory()
    made.add("x", "f32", np.arange(8, dtype=np.float32))
    made.add("y", "f32", np.zeros(8, np.float32))
    return made


def test_loads_give_other_where_masked(memory: Memory):
    x = memory.buffers[0]
    address, mask = lanes(x, 1, 99, 3), np.array([True, False, True])
    assert memory.load(address, mask, np.float32(5), "f32", (3,)).tolist() == [1, 5, 3]
    assert memory.load(address, mask, None, "f32", (3,)).tolist() == [1, 0, 3]


@pytest.mark.parametrize("element, kind", [(8, "out-of-bounds"), (-1, "out-of-bounds"), (2**28, "out-of-bounds")])
def test_enabled_lanes_must_stay_inside(memory: Memory, element: int, kind: str):
    with pytest.raises(Hazard, match="leave x") as raised:
        memory.load(lanes(memory.buffers[0], 0, element), None, None, "f32", (2,))
    assert raised.value.kind == kind


def test_wild_and_misaligned_pointers(memory: Memory):
    with pytest.raises(Hazard, match="null"):
        memory.load(np.array([64]), None, None, "f32", (1,))
    with pytest.raises(Hazard, match="no buffer"):
        memory.load(np.array([1 << 50]), None, None, "f32", (1,))
    with pytest.raises(Hazard, match="aligned"):
        memory.load(lanes(memory.buffers[0], 0) + 2, None, None, "f32", (1,))


def test_programs_of_a_grid_with_more_than_two_to_the_31(memory: Memory):
    y = memory.buffers[1]
    for number, value in ((5, 1), (2**32 + 5, 2)):
        memory.program = number
        memory.store(lanes(y, 0), np.array([value], np.float32), None, "f32")
    assert y.racing[0]  # two programs, whose numbers are the same in 32 bits


def test_one_access_may_reach_several_buffers(memory: Memory):
    x, y = memory.buffers
    memory.store(np.concatenate([lanes(x, 0), lanes(y, 7)]), np.array([3, 4], np.float32), None, "f32")
    assert x.data.view(np.float32)[0] == 3 and y.data.view(np.float32)[7] == 4


@pytest.mark.parametrize(
    "first, second, racing",
    [([1.0], [2.0], True), ([1.0], [1.0], False), ([1.0, 2.0], None, True), ([1.0, 1.0], None, False)],
    ids=["programs-differ", "programs-agree", "lanes-differ", "lanes-agree"],
)
def test_conflicting_stores(memory: Memory, first, second, racing: bool):
    y = memory.buffers[1]
    memory.store(lanes(y, *[2] * len(first)), np.array(first, np.float32), None, "f32")
    if second:
        memory.program = 1
        memory.store(lanes(y, 2), np.array(second, np.float32), None, "f32")
    assert memory.racing() == (["y"] if racing else [])


def test_a_program_may_overwrite_its_own_stores(memory: Memory):
    y = memory.buffers[1]
    for value in (1.0, 2.0):
        memory.store(lanes(y, 2), np.array([value], np.float32), None, "f32")
    assert memory.racing() == []


def test_stores_of_several_widths_are_tracked_by_byte(memory: Memory):
    y = memory.buffers[1]
    memory.store(lanes(y, 0), np.array([1.0], np.float32), None, "f32")
    memory.store(lanes(y, 0) + 5, np.array([1], np.int8), None, "i8")
    assert np.flatnonzero(y.touched(y.changed)).tolist() == [0, 1, 2, 3, 5]


def test_reading_what_another_program_wrote_is_noticed(memory: Memory):
    y = memory.buffers[1]
    memory.store(lanes(y, 0), np.array([1.0], np.float32), None, "f32")
    memory.load(lanes(y, 0), None, None, "f32", (1,))
    assert memory.crossing == []
    memory.program = 1
    memory.load(lanes(y, 0), None, None, "f32", (1,))
    assert memory.crossing == ["y"]


def shared(slots: int = 2):
    lds = SharedMemory()
    view = lds.allocate("smem", "f32", (slots, 4), UNKNOWN)
    return lds, view


def slot(view, index: int):
    return type(view)(view.allocation, view.index[index])


def copy_to(lds: SharedMemory, view, value: float) -> None:
    lds.issue(Copy(UNKNOWN, "copy", view, np.full(view.shape, value, np.float32)), lds.async_copies)


def test_a_copy_lands_when_a_wait_covers_it():
    lds, view = shared()
    for i in (0, 1):
        copy_to(lds, slot(view, i), i)
        lds.commit(lds.async_copies)
    lds.wait(lds.async_copies, 1, 0, UNKNOWN)
    assert lds.load(slot(view, 0)).tolist() == [0, 0, 0, 0]
    with pytest.raises(Hazard, match=r"in flight, first smem\[1, 0\]"):
        lds.load(slot(view, 1))
    lds.wait(lds.async_copies, 0, 0, UNKNOWN)
    assert lds.load(slot(view, 1)).tolist() == [1, 1, 1, 1]


def test_a_wait_does_not_cover_what_was_not_committed():
    lds, view = shared()
    copy_to(lds, slot(view, 0), 1)
    lds.wait(lds.async_copies, 0, 0, UNKNOWN)
    with pytest.raises(Hazard, match="in flight"):
        lds.load(slot(view, 0))


def test_reading_and_overwriting_hazards():
    lds, view = shared()
    with pytest.raises(Hazard, match="never written"):
        lds.load(slot(view, 0))
    copy_to(lds, slot(view, 0), 1)
    with pytest.raises(Hazard, match="overwrites 4 elements of smem still in flight"):
        lds.store(slot(view, 0), np.zeros(4))
    with pytest.raises(Hazard, match="overwrites 4 elements of smem still in flight"):
        copy_to(lds, slot(view, 0), 2)


@pytest.mark.parametrize("element", FLOAT8)
def test_every_float8_code_survives(element: str):
    codes = np.arange(256, dtype=np.uint8)
    values = decode(codes, element)
    back = encode(values, element)
    assert ((back == codes) | np.isnan(values)).all()
    assert np.isnan(decode(encode(np.array([np.nan]), element), element)).all()


@pytest.mark.parametrize("element", [*FLOAT8, "bf16"])
def test_rounding_is_to_the_nearest_representable(element: str):
    """Against a search over all representable values."""
    table = np.unique(decode(np.arange(256, dtype=np.uint8), element)) if element in FLOAT8 else None
    values = np.random.default_rng(3).standard_normal(500).astype(np.float32) * 4
    found = np.asarray(rounded(values, element), np.float64)
    if table is None:
        bits = values.view(np.uint32) & np.uint32(0xFFFF0000)
        pair = np.stack([bits.view(np.float32), (bits + np.uint32(0x10000)).view(np.float32)])
        best = np.abs(pair.astype(np.float64) - values).min(0)
    else:
        finite = table[np.isfinite(table)].astype(np.float64)
        best = np.abs(finite[:, None] - values[None, :]).min(0)
    np.testing.assert_array_equal(np.abs(found - values), best)


def test_rounding_toward_zero():
    assert toward_zero(np.float32([1.999, -1.999]), "bf16").tolist() == [1.9921875, -1.9921875]
    assert toward_zero(np.float32([1.999, -1.999]), "f16").tolist() == [1.9990234375 - 2**-10, -1.9990234375 + 2**-10]


def comparison(expected, found, element: str = "f32", reduction: int = 1, narrowest: str = "f32"):
    sides = []
    for values in (expected, found):
        memory = Memory()
        held = np.asarray(values, np.int32 if element == "i32" else np.float32)
        zeros = np.zeros(held.size, np.asarray(encode(held, element)).dtype)
        buffer = memory.add("x", element, zeros)
        memory.store(lanes(buffer, *range(held.size), size=zeros.itemsize), held, None, element)
        sides.append(memory.buffers[0])
    return compare_buffer(*sides, reduction, narrowest)


@pytest.mark.parametrize(
    "expected, found, element, reduction, wrong",
    [
        ([1.0, 2.0], [1.0, 2.0], "f32", 1, 0),
        ([1.0, 2.0], [1.0 + 2e-7, 2.0], "f32", 1, 0),
        ([1.0, 2.0], [1.0 + 2e-5, 2.0], "f32", 1, 1),
        ([1.0, 2.0], [1.0 + 2e-5, 2.0], "f32", 4096, 0),
        ([1.0, 2.0], [1.0, np.nan], "f32", 4096, 1),
        ([np.nan, np.inf], [np.nan, np.inf], "f32", 1, 0),
        ([np.inf, 1.0], [-np.inf, 1.0], "f32", 1, 1),
        ([1.0, 2.0], [1.0078125, 2.0], "bf16", 1, 0),
        ([1.0, 2.0], [1.0625, 2.0], "bf16", 1, 1),
        ([7, 8], [7, 9], "i32", 4096, 1),
    ],
)
def test_tolerance(expected, found, element: str, reduction: int, wrong: int):
    assert comparison(expected, found, element, reduction).wrong == wrong


def test_one_flipped_rounding_in_a_hundred_is_forgiven_but_not_two():
    expected = np.linspace(1, 2, 100)
    one, two = expected.copy(), expected.copy()
    one[5] += 1e-3
    two[[5, 6]] += 1e-3
    assert comparison(expected, one, narrowest="f16").wrong == 0
    assert comparison(expected, one, narrowest="f32").wrong == 1
    assert comparison(expected, two, narrowest="f16").wrong == 2


def test_programs_are_chosen_in_order_with_both_ends():
    assert choose_programs(5, 100) == [0, 1, 2, 3, 4]
    chosen = choose_programs(1000, 20)
    assert chosen == sorted(set(chosen)) and chosen[0] == 0 and chosen[-1] == 999 and 15 <= len(chosen) <= 21
    assert chosen == choose_programs(1000, 20)
    assert choose_programs(1000, 0) == [0, 999]


def test_programs_that_wait_for_each_other_are_as_many_as_a_variant_may_take():
    given, variant = Inputs({}), Inputs({}, variant="n = 0")
    far = replace(variant, programs=(40,))
    assert together(107, given, 1.0, 5000.0) == together(107, variant, 1.0, 0.0) == 107  # not known yet
    assert together(107, variant, 100_000.0, 5000.0) == 20
    assert together(107, variant, 100_000.0, 50.0) == 107 and together(5, variant, 1.0, 5000.0) == 5
    assert together(107, variant, 1.0, 5000.0) == 16 and together(107, far, 1.0, 5000.0) == 41


def test_locations():
    text = (
        '#loc1 = loc("k.py":7:3)\n#loc2 = loc("lib.py":9:1)\n#loc3 = loc("x"(#loc1))\n'
        "#loc4 = loc(callsite(#loc2 at #loc3))\n#loc = loc(unknown)\n"
    )
    table = Locations.of(text.splitlines())
    assert (table.resolve("#loc3").line, table.resolve("#loc3").name) == (7, "x")
    assert table.resolve("#loc4").file == "lib.py"
    assert Locations(table.table, "k.py").resolve("#loc4").line == 7
    assert (
        table.path("#loc4", "k.py") == (7,)
        and table.path("#loc4", "lib.py") == (9,)
        and table.path("#loc", "k.py") == ()
    )
    assert table.resolve("#loc").line == 0
    assert strip_locations('%a = f(%b loc("q"(#loc1))) : i32 loc(#loc3)') == ("%a = f(%b) : i32", "#loc3")


@pytest.mark.parametrize("element", ["i8", "f16", "f32", "i64"])
@pytest.mark.parametrize("granule", [1, 2, 4, 8])
def test_a_record_of_items_holds_where_it_does_for_one_of_their_bytes(element, granule):
    buffer = Buffer("x", element, np.zeros(8 * 37 + 3, np.uint8), 0)
    buffer.track(granule)
    buffer.changed[np.random.default_rng(granule).integers(0, len(buffer.changed), 9)] = True
    size = stored(element).itemsize
    marked = buffer.touched(buffer.changed)
    expected = [marked[i : i + size].any() for i in range(0, len(marked) // size * size, size)]
    assert buffer.per_element(buffer.changed).tolist() == expected
    assert buffer.per_element(None).tolist() == [False] * len(expected)
