"""Which offsets of a tensor data mover's tiles count as not negative.

The data mover fills with zeros beyond a tensor's end, not before its start. An offset made of indices that come from memory,
from a helper's caller or from a division by a count is one that no program means to be negative: Triton's own compile of it
reads before the tensor. Such an offset is taken, and the output says so; one with a difference or a negative constant in it
is only taken where it is proved.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from translator.facts.signs import obligations_of, sign_of

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter


def offset_not_negative(rw: "FunctionRewriter", offset: ast.expr) -> bool:
    """Whether the data mover may take `offset`; what that assumes is recorded."""
    sign = sign_of(rw, offset, indices=True)
    if not sign.holds:
        return False
    rw.record.obligations |= obligations_of(rw, offset, sign, "a tile of the data mover")
    return True
