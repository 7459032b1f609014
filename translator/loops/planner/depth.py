"""How many buffers of a loop's tiles LDS has room for."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable
from dataclasses import replace

from gluonize.decide.readback.staging import Staged
from gluonize.facts.function import FunctionFacts
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.shared_layouts import slots_bytes


def fitting(facts: FunctionFacts, loads: Iterable[tuple[ast.Call, Staged]], buffers: int) -> int:
    """`buffers`, or as many as fit into the LDS of a workgroup, 0 where not even one does.

    Triton takes the depth that was asked for and fails where it does not fit. What else the kernel keeps in LDS at the
    same time is not counted, padding neither: it is a sixteenth at most, and `padded` leaves it out where it does not fit.
    """
    tile = sum(math.prod(staged.shape) * bits_of(facts.tensor(call).dtype) // 8 for call, staged in loads)
    return min(buffers, facts.kernel.target.lds_bytes // tile)


def padded(facts: FunctionFacts, ways: dict[ast.Call, Staged], buffers: int) -> dict[ast.Call, Staged]:
    """`ways`, without the padding that stands for an exchange of vectors where LDS has no room for it.

    What the kernel needs beside is taken to be what Triton's has beside its own tiles.
    """
    exchanged = {call: replace(staged, shared=staged.exchanged or staged.shared) for call, staged in ways.items()}
    size, least = _bytes(facts, ways, buffers), _bytes(facts, exchanged, buffers)
    beside = max(0, facts.kernel.lds_bytes - least)
    return ways if size + beside <= facts.kernel.target.lds_bytes else exchanged


def _bytes(facts: FunctionFacts, ways: dict[ast.Call, Staged], buffers: int) -> int:
    return sum(
        slots_bytes(staged.shared, staged.shape, bits_of(facts.tensor(call).dtype), buffers)
        for call, staged in ways.items()
        if staged.shared is not None
    )
