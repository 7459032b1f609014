"""Which offsets of a tensor data mover's tiles count as not negative.

The data mover fills with zeros beyond a tensor's end, not before its start. An offset made of indices that come from memory,
from a helper's caller or from a division by a count is one that no program means to be negative: Triton's own compile of it
reads before the tensor. Such an offset is taken, and the output says so; one with a difference or a negative constant in it
is only taken where it is proved.
"""

from __future__ import annotations

import ast

from translator.rewrite.emission import Emission
from translator.facts.signs import obligations_of, sign_of


def offset_not_negative(rw: Emission, offset: ast.expr) -> bool:
    """Whether the data mover may take `offset`; what that assumes is recorded."""
    sign = sign_of(rw.facts, offset, indices=True)
    if not sign.holds:
        return False
    rw.record.obligations |= obligations_of(rw.facts, offset, sign, "a tile of the data mover")
    return True
