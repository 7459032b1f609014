"""The schedule of a pipelined loop is right for every trip count, and planted mistakes are found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from gluonize.loops.plan.schedule import Copied, Schedule, at_once, copy_schedule, refill_schedule, register_schedule
from gluonize.product.report.loops.hazards import BESIDE, events_of, hazards


def found(schedule: Schedule, trips: int) -> list[str]:
    """What is wrong with a planned loop."""
    return hazards(events_of(schedule, trips), trips)


def beside(
    events: Iterable[tuple], kinds: tuple[str, ...], by: int, buffers: int, ring: int | None = None
) -> Iterator[tuple]:
    """The events, those of some kinds, and of one ring if one is given, in slots that lie beside their own."""
    for event in events:
        moved = event[0] in kinds and (ring is None or event[3:] == (ring,))
        yield (*event[:2], (event[2] + by) % buffers, *event[3:]) if moved else event


@pytest.mark.parametrize("buffers", [2, 3, 4, 5])
def test_copies_are_right_for_all_trip_counts(buffers):
    for trips in range(2 * buffers + 1):
        assert found(copy_schedule(buffers), trips) == []


@pytest.mark.parametrize("buffers", [2, 3, 4])
@pytest.mark.parametrize("grouped, tensor_loads", [(False, 1), (False, 2), (True, 1), (True, 3)])
def test_tensor_copies_are_right_for_all_trip_counts(buffers, grouped, tensor_loads):
    for trips in range(2 * buffers + 1):
        assert found(copy_schedule(buffers, tensor_loads, grouped), trips) == []


@pytest.mark.parametrize("buffers", [2, 3, 4])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("by", [-2, 1, 2])
def test_a_wrong_count_of_tensor_copies_is_found(buffers, grouped, by):
    right = copy_schedule(buffers, 2, grouped)
    planted = replace(right, tensor_wait=right.tensor_wait + by)
    assert any(found(planted, trips) for trips in range(2 * buffers + 1))


@pytest.mark.parametrize("buffers", [1, 2, 3, 4])
def test_registers_are_right_for_all_trip_counts(buffers):
    for trips in range(2 * buffers + 3):
        assert found(register_schedule(buffers), trips) == []


@pytest.mark.parametrize("buffers", [2, 3, 4])
def test_tiles_through_registers_beside_copies_are_right_for_all_trip_counts(buffers):
    for trips in range(2 * buffers + 1):
        assert found(copy_schedule(buffers, stored=True), trips) == []


@pytest.mark.parametrize("buffers", [2, 3, 4])
@pytest.mark.parametrize("by", [1, -1])
def test_a_tile_stored_beside_its_slot_is_found(buffers, by):
    planned = copy_schedule(buffers, stored=True)
    assert any(
        hazards(beside(events_of(planned, trips), ("store",), by, buffers, BESIDE), trips)
        for trips in range(2 * buffers + 1)
    )


@pytest.mark.parametrize("tensor_loads, grouped", [(1, False), (3, False), (0, True), (2, True)])
def test_a_slot_that_is_filled_again_is_right_for_all_trip_counts(tensor_loads, grouped):
    for trips in range(5):
        assert found(refill_schedule(tensor_loads, grouped), trips) == []


@pytest.mark.parametrize("planted", [{"wait": 1}, {"tensor_wait": 1}, {"prologue": 0}], ids=str)
def test_a_missing_wait_for_copies_beside_the_tensor_data_mover_is_found(planted):
    assert any(found(replace(refill_schedule(1, True), **planted), trips) for trips in range(5))


@pytest.mark.parametrize("planted", [{"tensor_wait": 1}, {"prologue": 0}, {"ahead": 2}, {"ahead": 0}], ids=str)
def test_a_slot_that_is_filled_too_early_or_read_too_early_is_found(planted):
    assert any(found(replace(refill_schedule(1), **planted), trips) for trips in range(5))


def test_one_slot_that_is_filled_before_its_last_read_is_found():
    planted = Copied(1, prologue=1, ahead=1, grouped=False, tensor_loads=1)
    assert any(found(planted, trips) for trips in range(5))


def test_a_loop_that_runs_once_at_most_is_right():
    for schedule in (copy_schedule(2), copy_schedule(3, 2, False), register_schedule(1)):
        assert [found(at_once(schedule), trips) for trips in (0, 1)] == [[], []]


def test_a_slot_is_not_filled_again_without_a_barrier():
    unordered = [event for event in events_of(refill_schedule(1), 2) if event != ("barrier",)]
    assert hazards(unordered, 2)[0] == "tile 1 refills slot 0 with no barrier since it was read"


MISTAKES = ["wait", "prologue", "ahead"]


@pytest.mark.parametrize("buffers", [2, 3, 4])
@pytest.mark.parametrize("kinds", [("read",), ("copy", "store")], ids=["read", "filled"])
@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize("made", [copy_schedule, register_schedule])
def test_a_slot_beside_the_right_one_is_found(buffers, kinds, by, made):
    planned = made(buffers)
    assert any(hazards(beside(events_of(planned, n), kinds, by, buffers), n) for n in range(2 * buffers + 1))


@pytest.mark.parametrize("buffers", [2, 3, 4])
@pytest.mark.parametrize("field", MISTAKES)
@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize("stored", [False, True])
def test_an_off_by_one_of_copies_is_found(buffers, field, by, stored):
    planted = copy_schedule(buffers, stored=stored)
    planted = replace(planted, **{field: getattr(planted, field) + by})
    assert any(found(planted, trips) for trips in range(2 * buffers + 1))


@pytest.mark.parametrize("buffers", [1, 2, 3])
@pytest.mark.parametrize("field", [f for f in MISTAKES if f != "wait"])
@pytest.mark.parametrize("by", [-1, 1])
def test_an_off_by_one_of_registers_is_found(buffers, field, by):
    planted = register_schedule(buffers)
    planted = replace(planted, **{field: getattr(planted, field) + by})
    assert any(found(planted, trips) for trips in range(2 * buffers + 1))


def test_what_is_found_names_tile_and_slot():
    early = replace(copy_schedule(3), wait=2)
    assert "iteration 0 reads slot 0 before its copy is waited for" in found(early, 3)
    late = replace(copy_schedule(3), wait=0)
    assert "a wait covers a tile that is read later only" in found(late, 3)
    assert found(replace(copy_schedule(2), wait=-1), 2)[0] == "wait for -1 groups"
