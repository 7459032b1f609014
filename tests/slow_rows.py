"""Rows of a table of tests of which some are run each time, and the others with the slow tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def slow_but(rows: Iterable[Any], kept: int = 1) -> list[Any]:
    """Rows for `parametrize`: the first `kept` as they are, the others marked slow."""
    return [row if i < kept else slow(row) for i, row in enumerate(rows)]


def slow_but_every(rows: Iterable[Any], step: int) -> list[Any]:
    """Rows for `parametrize`: one of `step` as it is, the others marked slow."""
    return [row if i % step == 0 else slow(row) for i, row in enumerate(rows)]


def slow(row: Any) -> Any:
    """A row for `parametrize` that is run with the slow tests; of several arguments a tuple."""
    return pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=pytest.mark.slow)


def slow_but_crossed(rows: Iterable[Any], columns: Iterable[Any], step: int) -> list[Any]:
    """Pairs for `parametrize`, of which each row and each column keeps one of `step`; the others are marked slow."""
    columns = list(columns)
    return [
        (row, column) if (i + j) % step == 0 else slow((row, column))
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    ]


def in_turn(rows: Iterable[Any], columns: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Pairs for `parametrize`: each row once, with one of the columns in turn, for what has to do with only one of both at a time."""
    columns = list(columns)
    return [(row, columns[i % len(columns)]) for i, row in enumerate(rows)]
