"""The schedule of a pipelined loop is right for every trip count, and its interpreter finds planted mistakes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from translator.pipeline.schedule import STORED, Schedule, copy_schedule, hazards, refill_schedule, register_schedule


@pytest.mark.parametrize("buffers", [2, 3, 4, 5])
def test_copies_are_right_for_all_trip_counts(buffers):
    for trips in range(2 * buffers + 1):
        assert hazards(copy_schedule(buffers), trips) == []


@pytest.mark.parametrize("buffers", [2, 3, 4])
@pytest.mark.parametrize("grouped, tensor_loads", [(False, 1), (False, 2), (True, 1), (True, 3)])
def test_tensor_copies_are_right_for_all_trip_counts(buffers, grouped, tensor_loads):
    for trips in range(2 * buffers + 1):
        assert hazards(copy_schedule(buffers, tensor_loads, grouped), trips) == []


@pytest.mark.parametrize("buffers", [2, 3, 4])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("by", [-2, 1, 2])
def test_a_wrong_count_of_tensor_copies_is_found(buffers, grouped, by):
    right = copy_schedule(buffers, 2, grouped)
    planted = replace(right, tensor_wait=right.tensor_wait + by)
    assert any(hazards(planted, trips) for trips in range(2 * buffers + 1))


@pytest.mark.parametrize("buffers", [1, 2, 3, 4])
def test_registers_are_right_for_all_trip_counts(buffers):
    for trips in range(2 * buffers + 3):
        assert hazards(register_schedule(buffers), trips) == []


@pytest.mark.parametrize("buffers", [2, 3, 4])
def test_tiles_through_registers_beside_copies_are_right_for_all_trip_counts(buffers):
    for trips in range(2 * buffers + 1):
        assert hazards(copy_schedule(buffers, stored=True), trips) == []


@pytest.mark.parametrize("buffers", [2, 3, 4])
@pytest.mark.parametrize("by", [1, -1])
def test_a_tile_stored_beside_its_slot_is_found(buffers, by):
    class Planted(Schedule):
        def events(self, trips):
            for event in super().events(trips):
                beside = event[0] == "store" and event[1] >= self.prologue
                yield ("store", event[1], (event[2] + by) % self.buffers, STORED) if beside else event

    right = copy_schedule(buffers, stored=True)
    planted = Planted(**{name: getattr(right, name) for name in right.__dataclass_fields__})
    assert any(hazards(planted, trips) for trips in range(2 * buffers + 1))


@pytest.mark.parametrize("tensor_loads, grouped", [(1, False), (3, False), (0, True), (2, True)])
def test_a_slot_that_is_filled_again_is_right_for_all_trip_counts(tensor_loads, grouped):
    for trips in range(5):
        assert hazards(refill_schedule(tensor_loads, grouped), trips) == []


@pytest.mark.parametrize("planted", [{"wait": 1}, {"tensor_wait": 1}, {"prologue": 0}], ids=str)
def test_a_missing_wait_for_copies_beside_the_tensor_data_mover_is_found(planted):
    assert any(hazards(replace(refill_schedule(1, True), **planted), trips) for trips in range(5))


@pytest.mark.parametrize(
    "planted", [{"refills": False}, {"tensor_wait": 1}, {"prologue": 0}, {"ahead": 2}, {"ahead": 0}], ids=str
)
def test_a_slot_that_is_filled_too_early_or_read_too_early_is_found(planted):
    assert any(hazards(replace(refill_schedule(1), **planted), trips) for trips in range(5))


def test_a_slot_is_not_filled_again_without_a_barrier():
    class Unordered(Schedule):
        def events(self, trips):
            yield from (event for event in super().events(trips) if event != ("barrier",))

    right = refill_schedule(1)
    planted = Unordered(**{name: getattr(right, name) for name in right.__dataclass_fields__})
    assert hazards(planted, 2)[0] == "tile 1 refills slot 0 with no barrier since it was read"


MISTAKES = ["wait", "prologue", "ahead", "read_shift", "write_shift"]


@pytest.mark.parametrize("buffers", [2, 3, 4])
@pytest.mark.parametrize("field", MISTAKES)
@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize("stored", [False, True])
def test_an_off_by_one_of_copies_is_found(buffers, field, by, stored):
    planted = copy_schedule(buffers, stored=stored)
    planted = replace(planted, **{field: getattr(planted, field) + by})
    assert any(hazards(planted, trips) for trips in range(2 * buffers + 1))


@pytest.mark.parametrize("buffers", [1, 2, 3])
@pytest.mark.parametrize("field", [f for f in MISTAKES if f != "wait"])
@pytest.mark.parametrize("by", [-1, 1])
def test_an_off_by_one_of_registers_is_found(buffers, field, by):
    if buffers == 1 and field.endswith("shift"):
        pytest.skip("with one slot every index is the same")
    planted = register_schedule(buffers)
    planted = replace(planted, **{field: getattr(planted, field) + by})
    assert any(hazards(planted, trips) for trips in range(2 * buffers + 1))


def test_what_is_found_names_tile_and_slot():
    early = replace(copy_schedule(3), wait=2)
    assert "iteration 0 reads slot 0 before its copy is waited for" in hazards(early, 3)
    late = replace(copy_schedule(3), wait=0)
    assert "a wait covers a tile that is read later only" in hazards(late, 3)
    assert hazards(replace(copy_schedule(2), wait=-1), 2)[0] == "wait for -1 groups"
