"""Layouts that uses want, as plain values: what is new, which comes first, and what contradicts itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gluonize.decide.layouts.demands import Round, Wanted
from gluonize.read.spec.launch import read_launches
from gluonize.request import TranslateRequest
from gluonize.trace.model.layouts import Blocked, Slice
from gluonize.translation import translate_kernel
from gluonize.write.layouts import demand_walk

ROWS = Blocked((1, 4), (8, 8), (4, 1), (1, 0))
COLUMNS = Blocked((4, 1), (8, 8), (1, 4), (0, 1))


def test_the_first_use_has_the_variable_itself():
    wanted = Wanted()
    assert wanted.demand(ROWS, (9, 4)) and wanted.demand(COLUMNS, (5, 0))
    assert wanted.variants == [ROWS, COLUMNS]  # as they came
    wanted.settle()
    assert wanted.variants == [COLUMNS, ROWS]  # as they stand


def test_a_use_that_asks_again_adds_nothing():
    wanted, first, second = Wanted(), Round(), Round()
    first.demand("x", wanted, ROWS, (3, 4))
    assert not first.settled
    second.demand("x", wanted, ROWS, (3, 4))
    second.demand("x", wanted, ROWS, (7, 4))
    assert second.settled and wanted.first_use == {ROWS: (3, 4)}


def test_an_earlier_use_matters_where_there_are_several_layouts():
    wanted, again = Wanted(), Round()
    wanted.demand(ROWS, (9, 4))
    again.demand("x", wanted, ROWS, (2, 4))
    assert again.settled  # the only one has the name in any case
    wanted.demand(COLUMNS, (5, 0))
    again.demand("x", wanted, COLUMNS, (1, 0))
    assert not again.settled


def test_moved_values_are_no_variants():
    wanted, found = Wanted(), Round()
    found.demand_converted("x", wanted, ROWS, (4, 0))
    assert not found.settled and wanted.converted == [ROWS] and not wanted.variants
    again = Round()
    again.demand_converted("x", wanted, ROWS, (4, 0))
    assert again.settled


def test_something_else_may_ask_for_a_round():
    assert not Round(again=True).settled and Round().settled


def test_a_contradiction_names_both_uses():
    wanted, found = Wanted(), Round()
    wanted.demand(ROWS, (3, 4))
    found.demand("acc", wanted, COLUMNS, (8, 0))
    text = found.contradiction(first_line=10)
    assert text.startswith("`acc`: line 17 wants it in gl.BlockedLayout([4, 1], ")
    assert "line 12 wants it in gl.BlockedLayout([1, 4], " in text


@pytest.mark.parametrize("layouts", [[], [Slice(0, ROWS)]])
def test_one_layout_contradicts_nothing(layouts):
    wanted, found = Wanted(), Round()
    for layout in layouts:
        found.demand("x", wanted, layout, (3, 4))
    assert found.contradiction() == ""


def test_a_function_that_does_not_settle_is_refused_with_both_places(monkeypatch):
    monkeypatch.setattr(demand_walk, "MAX_ROUNDS", 1)
    folder = Path(__file__).parents[2] / "fixtures" / "matmul"
    launch = read_launches(str(folder / "launches.json"))[0]
    found = translate_kernel(TranslateRequest(str(folder / "kernel.py"), "gfx950", launches=(launch,)))
    (diagnostic,) = found.outcomes[0].diagnostics
    assert (found.text, diagnostic.code) == (None, "layout-fixpoint")
    lines = (folder / "kernel.py").read_text().splitlines()
    name, *uses = re.findall(r"`(\w+)`: line (\d+) wants it in gl\.\w+\(.*, line (\d+) wants", diagnostic.why)[0]
    assert len({*uses}) == 2 and all(re.search(rf"\b{name}\b", lines[int(line) - 1]) for line in uses)
