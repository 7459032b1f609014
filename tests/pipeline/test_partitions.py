"""What the barriers of warp-specialized loops count."""

from __future__ import annotations

import pytest

from gluonize.loops.plan.partition_schedule import Partitions

ATTENTION = (("k",), ("v",))


@pytest.mark.parametrize("buffers", [1, 2, 3])
def test_copies_of_the_tensor_data_mover_arrive_once_per_warp(buffers: int):
    mixed = Partitions(buffers, (("a", "b"), ("c",)), 4, 4, 32, (1, 1))
    assert [mixed.ready_count(group) for group in (0, 1)] == ["4 * 32 + 4", "4"]


def test_partitions_say_what_they_count():
    text = "\n".join(Partitions(3, ATTENTION, producer_warps=4, consumer_warps=4, lanes=32).described())
    assert "producer: 4 warps; consumer: 4 warps" in text
    assert "ready and empty for k, ready and empty for v" in text
    assert "arrivals at ready: 4 * 32, 4 * 32" in text and "tile t: slot t % 3, phase t // 3 & 1" in text
