"""Whatever tests of pipelined loops translate is verified on the way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from verified_loops import verified


@pytest.fixture(autouse=True)
def every_loop_is_verified() -> Iterator[None]:
    with verified():
        yield
