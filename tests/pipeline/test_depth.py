"""Pipelines are as deep as LDS has room for, where what was asked for does not fit."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "unit"))

from test_family import LOOP, loop  # noqa: E402
from translation_of import compiled, translate  # noqa: E402


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "target, spec, buffers",
    [
        ("gfx942", loop(128, 256, 64, 8, 2), "1"),  # 48 KiB a tile, 64 KiB of LDS
        ("gfx942", loop(128, 256, 64, 8, 3), "1"),
        ("gfx942", loop(64, 64, 64, 4, 3), "2"),
        ("gfx950", loop(128, 256, 64, 8, 3), "3"),  # 160 KiB
        ("gfx950", loop(256, 256, 64, 8, 4), "2"),
        ("gfx1100", loop(64, 64, 128, 4, 3), "2"),  # 32 KiB a tile: nothing is left for padding
    ],
)
def test_as_many_buffers_as_fit(target: str, spec, buffers: str, tmp_path: Path):
    text = translate(tmp_path, LOOP, spec, target=target).text
    assert f"NUM_BUFFERS: gl.constexpr = {buffers}" in text
    assert compiled(tmp_path, text, spec, target=target).lds_overflow() is None


def test_a_tile_that_does_not_fit_is_not_pipelined(tmp_path: Path):
    result = translate(tmp_path, LOOP, loop(256, 256, 128, 8, 2), target="gfx942")
    assert "NUM_BUFFERS" not in result.text
    assert [kept.reason for o in result.outcomes for kept in o.kept_loops] == ["LDS has no room for its tiles"]
