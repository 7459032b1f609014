"""The table of ops: name -> function(machine, op, *operands) -> result, tuple of results, or None.

Each `ops_*.py` module adds its dialect's rows with `@row`. Operands and results are numpy arrays (tensors), numpy scalars, or
objects of `lds.py` (memory descriptors) and `descriptors.py` (tensor descriptors). Lay-outs play no part: a tensor is its
values.
"""

from __future__ import annotations

from typing import Callable

import numpy as np

from gluonize.judge.machine.dtypes import HELD, NARROW, rounded
from gluonize.trace.model.types import Type

TABLE: dict[str, Callable] = {}


def row(*names: str):
    """Register a function for ops `names`; a name may have one row only."""

    def register(function: Callable) -> Callable:
        for name in names:
            if name in TABLE:
                raise AssertionError(f"{name} has two rows")
            TABLE[name] = function
        return function

    return register


def as_type(value, kind: Type):
    """A numeric result in the type that the op declares, rounded if that is a float type."""
    if kind.element in NARROW:
        return rounded(np.asarray(value), kind.element)[()]
    dtype = HELD[kind.element]
    return value if value.dtype == dtype else value.astype(dtype)
