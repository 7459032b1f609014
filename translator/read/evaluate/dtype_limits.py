"""What `torch.finfo` and `torch.iinfo` say of an element type; constants of kernels are often made of it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class FloatLimits:
    bits: int
    max: float
    eps: float
    tiny: float

    @property
    def min(self) -> float:
        return -self.max

    @property
    def smallest_normal(self) -> float:
        return self.tiny


@dataclass(frozen=True)
class IntegerLimits:
    bits: int
    min: int
    max: int


# (bits, largest, distance from 1 to the next, smallest normal): IEEE 754, and OCP's FP8 formats with AMD's older ones.
_FLOATS = {
    "float64": FloatLimits(64, (2 - 2.0**-52) * 2.0**1023, 2.0**-52, 2.0**-1022),
    "float32": FloatLimits(32, (2 - 2.0**-23) * 2.0**127, 2.0**-23, 2.0**-126),
    "float16": FloatLimits(16, 65504.0, 2.0**-10, 2.0**-14),
    "bfloat16": FloatLimits(16, (2 - 2.0**-7) * 2.0**127, 2.0**-7, 2.0**-126),
    "float8_e4m3fn": FloatLimits(8, 448.0, 0.125, 2.0**-6),
    "float8_e5m2": FloatLimits(8, 57344.0, 0.25, 2.0**-14),
    "float8_e4m3fnuz": FloatLimits(8, 240.0, 0.125, 2.0**-7),
    "float8_e5m2fnuz": FloatLimits(8, 57344.0, 0.25, 2.0**-15),
}


def limits(function: str, dtype: str) -> FloatLimits | IntegerLimits | None:
    """The answer of `finfo` or `iinfo` for torch's name of a type; None where torch has none either."""
    if function == "finfo":
        return _FLOATS.get(dtype)
    if (found := re.fullmatch(r"(u?)int(8|16|32|64)", dtype)) is None:
        return None
    bits = int(found.group(2))
    if found.group(1):
        return IntegerLimits(bits, 0, 2**bits - 1)
    return IntegerLimits(bits, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
