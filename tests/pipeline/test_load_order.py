"""Loads of a tile ahead that go through registers, before the reads of the tile that is multiplied."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_stages import in_short_stages, wide_statuses

from gluonize.decide.choices.chosen import Choices, choices_of

EARLY = choices_of(load_order="before-reads")


def without(choices: Choices) -> Choices:
    """The choices but for the order of loads."""
    return Choices(tuple(pair for pair in choices.overrides if pair[0] != "load-order"))


def order(text: str) -> list[str]:
    """The loads of tiles and the reads of their slots in the loop, in order."""
    lines = text.partition("for k in")[2].splitlines()
    return [line.split()[0] for line in lines if "buffer_load(" in line or ".load(" in line]


@pytest.mark.one_of(2)
@pytest.mark.compile
@pytest.mark.parametrize("choices", [EARLY, EARLY.replacing(depth="2")], ids=["1-buffer", "2-buffers"])
def test_loads_stand_before_reads(choices: Choices, tmp_path: Path):
    text = in_short_stages("gfx942", choices)
    assert order(text) == ["a_next", "b_next", "a", "b"]
    assert order(in_short_stages("gfx942", without(choices))) == [
        "a",
        "b",
        "a_next",
        "b_next",
    ]
    assert wide_statuses(text, "gfx942", tmp_path, (0, 16, 64, 80, 144)) == {"validated"}


@pytest.mark.parametrize("target", ["gfx950", "gfx1250"])
def test_copies_have_an_order_of_their_own(target: str):
    assert in_short_stages(target, EARLY) == in_short_stages(target, without(EARLY))


@pytest.mark.compile
def test_a_store_before_the_reads_is_found(tmp_path: Path):
    text = in_short_stages("gfx942", EARLY)
    read = "        a = a_smem.index(slot).load(a_operand)\n"
    store = "        a_smem.index(slot).store(a_next)\n"
    head, loop, body = text.partition("    for k in")
    assert body.count(read) == body.count(store) == 1
    planted = head + loop + body.replace(store, "").replace(read, store + read)
    assert "validated" not in wide_statuses(planted, "gfx942", tmp_path, (144,))
