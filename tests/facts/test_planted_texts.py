"""Rules that are made unsound by a few words: each is found by a narrow kernel, a loop, an address or a multiple of the tables.

`planted_texts.toml` has, by module of the translator, what stands there, what stands there instead, and what finds it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from narrow_kernels import launches, narrow, traced
from planting import planted
from test_narrow_kernels import CASES, GIVEN, made
from test_narrow_lanes import APART, multiples, unsound_fixed, unsound_parts
from test_narrow_rounds import LOOPS
from test_narrow_rounds import made as made_of_loops

TABLE = tomllib.loads((Path(__file__).parent / "planted_texts.toml").read_text())
ROWS = [(module, *row) for module, rows in TABLE.items() for row in rows]
# Every how many are tried each time.
SOME = 24


def found_by(finder: str, folder: Path) -> str:
    """What is wrong of `kernel sums`, `given large products`, `loop steps`, `address rows`, `multiple sums` or `fixed`."""
    kind, _, name = finder.partition(" ")
    if kind == "kernel":
        return made(folder, CASES[name])
    if kind == "given":
        given, _, case = name.partition(" ")
        return made(folder, CASES[case], given=GIVEN[given], every=False)
    if kind == "loop":
        return made_of_loops(folder, LOOPS[name])
    if kind == "fixed":
        return unsound_fixed(folder)
    if kind == "multiple":
        with narrow():
            wrong, said = multiples(folder, name)
        return wrong or "a multiple" * (name == "floats" and said > 0)
    body, some = APART[name]
    found: list = []
    with narrow():
        wrong = unsound_parts(traced(body, folder), launches(0), found)
    return wrong or "parts" * (bool(found) != some)


def is_found(row: tuple, folder: Path) -> bool:
    module, before, after, finder = row
    with planted(f"gluonize.{module}", before, after):
        try:
            return bool(found_by(finder, folder))
        except (AssertionError, KeyError, ValueError, ZeroDivisionError, RecursionError):
            return True  # a rule that cannot go on says nothing that is wrong


@pytest.mark.parametrize("row", ROWS[::SOME], ids=str)
def test_some_rules_that_are_wrong_are_found(row: tuple, tmp_path: Path):
    assert is_found(row, tmp_path)


@pytest.mark.slow
def test_all_rules_that_are_wrong_are_found(tmp_path: Path):
    missed = [row for row in ROWS if not is_found(row, tmp_path)]
    assert missed == []


def test_a_text_is_planted_for_a_while():
    from gluonize.facts.integers import host_bounds

    with planted("gluonize.facts.integers.host_bounds", '_of("max", a, number(1))', '_of("max", a, number(2))'):
        assert host_bounds.positive(host_bounds.number(1)).number == 2
    assert host_bounds.positive(host_bounds.number(1)).number == 1


@pytest.mark.parametrize("before", ["nowhere in the file", "return"])
def test_a_text_has_to_stand_there_once(before: str):
    with pytest.raises(AssertionError, match="has this"):
        with planted("gluonize.facts.integers.host_bounds", before, "pass"):
            pass
