"""Each mend taken out: the generator finds the fault again."""

from __future__ import annotations

import pytest
from planted_reverts import REVERTS, found_again
from random_run import Judges

KERNELS = 150  # a fault that needs more is too rare for the tests to guard


@pytest.mark.slow
@pytest.mark.parametrize("name", REVERTS)
def test_a_mend_that_is_taken_out_is_missed(name: str):
    with Judges(interpreter=False) as judges:
        assert found_again(judges, name, KERNELS) is not None, REVERTS[name].what
