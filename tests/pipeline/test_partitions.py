"""The schedule of warp-specialized loops: right in every order of the partitions, and planted mistakes are found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from translator.pipeline.partition_schedule import Partitions, hazards

MATMUL = (("a", "b"),)
ATTENTION = (("k",), ("v",))
MISTAKES = {
    "slot read": {"read_shift": 1},
    "slot filled": {"write_shift": 1},
    "producer waits for this phase": {"producer_phase": 0},
    "consumer waits for the phase before": {"consumer_phase": 1},
    "ready expects one arrival more": {"ready_excess": 1},
    "ready expects one arrival less": {"ready_excess": -1},
    "ready expects one per warp": {"ready_excess": 4 - 128},
    "empty expects one arrival more": {"empty_excess": 1},
    "empty expects one arrival less": {"empty_excess": -1},
    "empty expects two of each lane": {"empty_excess": 128},
    "producer does not wait": {"omitted": (("producer", "wait"),)},
    "consumer does not wait": {"omitted": (("consumer", "wait"),)},
    "producer does not arrive": {"omitted": (("producer", "arrive"),)},
    "consumer does not arrive": {"omitted": (("consumer", "arrive"),)},
    "nothing is copied": {"omitted": (("producer", "copy"),)},
}


def partitions(buffers: int, groups) -> Partitions:
    return Partitions(buffers, groups, producer_warps=4, consumer_warps=4, lanes=32)


def found(schedule: Partitions) -> list[str]:
    """Hazards for all trip counts from 0 to twice the depth."""
    return [h for trips in range(2 * schedule.buffers + 1) for h in hazards(schedule, trips)]


@pytest.mark.parametrize("groups", [MATMUL, ATTENTION], ids=["matmul", "attention"])
@pytest.mark.parametrize("buffers", [1, 2, 3, 4])
def test_no_order_of_the_partitions_is_a_hazard(buffers: int, groups):
    assert found(partitions(buffers, groups)) == []


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
@pytest.mark.parametrize("groups", [MATMUL, ATTENTION], ids=["matmul", "attention"])
@pytest.mark.parametrize("buffers", [2, 3])
def test_planted_mistakes_are_found(buffers: int, groups, mistake: dict):
    assert found(replace(partitions(buffers, groups), **mistake))


@pytest.mark.parametrize("buffers", [1, 2, 3])
def test_copies_of_the_tensor_data_mover_arrive_once_per_warp(buffers: int):
    mixed = Partitions(buffers, (("a", "b"), ("c",)), 4, 4, 32, (1, 1))
    assert [mixed.ready_count(group) for group in (0, 1)] == [4 * 32 + 4, 4]
    assert [mixed.spelled_ready_count(group) for group in (0, 1)] == ["4 * 32 + 4", "4"]
    assert found(mixed) == []
    assert found(replace(mixed, ready_excess=-3))


def test_partitions_say_what_they_count():
    text = str(partitions(3, ATTENTION))
    assert "producer: 4 warps; consumer: 4 warps" in text
    assert "ready and empty for k, ready and empty for v" in text
    assert "arrivals at ready: 4 * 32, 4 * 32" in text and "tile t: slot t % 3, phase t // 3 & 1" in text
