"""Whatever tests of pipelined loops translate is verified on the way, and its expressions are parsed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from parsed_expressions import parsed
from verified_loops import verified


@pytest.fixture(autouse=True)
def every_loop_and_expression_is_verified() -> Iterator[None]:
    with verified(), parsed():
        yield
