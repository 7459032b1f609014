"""Sizes of element types."""

from __future__ import annotations

import re


def bits_of(dtype: str) -> int:
    """Of one element in memory: Triton's spelling (`fp16`, `int32`, `fp8e4nv`) or MLIR's; addresses have 64."""
    if dtype.startswith(("pointer", "!tt.ptr")) or "*" in dtype:
        return 64
    if dtype in ("int1", "i1"):
        return 8
    m = re.match(r"[a-z]+?(8|16|32|64|1)(?:\D|$)", dtype)
    return int(m.group(1)) if m else 32
