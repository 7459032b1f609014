"""Which offsets of a tensor data mover's tiles count as not negative.

The data mover fills with zeros beyond a tensor's end, not before its start. An offset that is not proved, and not made sure of by
what is checked before the launch, is not given to it: its tile is loaded by pointers, masked by the bounds.
"""

from __future__ import annotations

import ast

from translator.facts.function import FunctionFacts
from translator.facts.signs import obligations_of, sign_of
from translator.rewrite.unit import Record


def offset_not_negative(facts: FunctionFacts, record: Record, offset: ast.expr) -> bool:
    """Whether the data mover may take `offset`; what that assumes is recorded."""
    sign = sign_of(facts, offset, exactly=True)
    if not sign.holds:
        return False
    record.obligations |= obligations_of(facts, offset, sign, "a tile of the data mover")
    return True
