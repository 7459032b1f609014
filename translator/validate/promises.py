"""Promises about values: `multiple_of`, `max_contiguous` and `max_constancy`, printed as attributes of the op that made the value.

The compiler widens accesses on their word, so a false one is wrong numbers on a device while the values here are right.
"""

from __future__ import annotations

import numpy as np


def broken_promise(op, value) -> str:
    """What of an op's promises is not true of its value, "" when all are."""
    value = np.atleast_1d(value)
    if value.dtype.kind not in "iu":
        return ""
    for name, numbers in op.promises.items():
        for axis, number in enumerate(numbers[: value.ndim]):
            lines = np.moveaxis(value, axis, -1).astype(np.int64)
            number = min(number, lines.shape[-1]) if name != "tt.divisibility" else number
            if number > 1 and not _holds(name, lines, number):
                return f"{name} = {number} in dimension {axis} is promised, but not true"
    return ""


def _holds(name: str, lines: np.ndarray, number: int) -> bool:
    steps = np.diff(lines, axis=-1)
    if name == "tt.divisibility":
        # The first of each run of consecutive values is divisible.
        first = np.ones(lines.shape, bool)
        first[..., 1:] = steps != 1
        return not (lines[first] % number).any()
    inside = np.arange(1, lines.shape[-1]) % number != 0
    return bool((steps[..., inside] == (1 if name == "tt.contiguity" else 0)).all())
