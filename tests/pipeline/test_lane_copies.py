"""Tiles that each lane copies its part of, where the tensor data mover could (`--choose tile-copies=lanes`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_repeated_copies import MOST, ONCE, spec_of
from translation_of import validated

from gluonize.decide.choices.chosen import Choices, choices_of
from gluonize.judge.verdict import validate_launch

LANES = choices_of(tile_copies="lanes")


def written(folder: Path, choices: Choices, target: str = "gfx1250") -> str:
    return validated(folder, ONCE, spec_of(MOST, 0), target, chosen=(("product", choices),))


def test_lanes_copy_what_the_tensor_data_mover_could(tmp_path):
    by_mover, by_lanes = written(tmp_path, Choices()), written(tmp_path, LANES)
    assert "tdm.async_load" in by_mover and "async_copy" not in by_mover
    assert "async_copy.global_to_shared" in by_lanes and "tdm" not in by_lanes


@pytest.mark.parametrize("depth", ["2", pytest.param("3", marks=pytest.mark.slow)])
def test_loops_of_any_length_are_right(tmp_path, depth: str):
    written(tmp_path, LANES.replacing(depth=depth))
    files = str(tmp_path / "source.py"), str(tmp_path / "output.py")
    found = [validate_launch(*files, spec_of(n, 0), "gfx1250")["status"] for n in range(MOST)]
    assert found == ["validated"] * MOST


def test_nothing_changes_where_there_is_no_mover(tmp_path):
    assert written(tmp_path, LANES, "gfx950") == written(tmp_path, Choices(), "gfx950")
