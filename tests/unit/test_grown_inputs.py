"""Inputs on longer tensors, for sources that leave theirs."""

from __future__ import annotations

import numpy as np

from gluonize.judge.inputs.adversarial import GROWTH, grown
from gluonize.judge.inputs.inputs import LARGEST, Inputs, Tensor


def tensor(name: str, items: int) -> Tensor:
    return Tensor(name, "f32", np.zeros(items, np.float32))


def test_small_tensors_grow_beside_one_that_may_not():
    """An index that is read past its end is small; what it is an index into need not be."""
    bigger = grown(Inputs({"rows": tensor("rows", 64), "x": tensor("x", LARGEST // 2)}))
    assert bigger is not None
    assert bigger.arguments["rows"].data.size == 64 * GROWTH
    assert bigger.arguments["x"].data.size == LARGEST // 2


def test_nothing_grows_beyond_what_can_be_run():
    assert grown(Inputs({"x": tensor("x", LARGEST // 2)})) is None
