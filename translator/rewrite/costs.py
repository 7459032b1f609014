"""What costs less: moving a value between lanes, or making it where it is wanted."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from translator.frontend.trace import TensorFact
from translator.layout.elements import bits_of
from translator.layout.model import DotOperand, Layout, Mfma, Slice
from translator.rewrite.callees import bind, callee_of, cast_of

if TYPE_CHECKING:
    from translator.rewrite.homes import Homes

WIDEST_LOAD = 128  # bits per lane of one global load


def small_load(rw: "Homes", node: ast.Call) -> bool:
    """Whether a loop loads so little that loading again costs less than moving: less than an element per thread.

    The measure is Triton's own. Outside of loops a conversion is cheap, and reads better.
    """
    callee, fact = callee_of(rw, node), rw.tensor(node)
    if callee is None or callee.row is None or callee.row.kind != "load" or fact is None or callee.owner is not None:
        return False
    given = bind(rw, node, callee)
    if node not in rw.looped or set(given) - {"pointer", "mask", "other", "eviction_policy"}:
        return False
    small = math.prod(fact.shape) < rw.unit.num_warps * rw.unit.target.warp_size
    return small and all(rw.cheap(argument) for argument in given.values())


def many_loads(layout: Layout, fact: TensorFact) -> bool:
    """Whether a lane loads several times in the layout, which is that of a matrix operand or of it along K.

    Lanes then load what others have, and moving costs less.
    """
    if not (isinstance(layout, Slice) and isinstance(layout.parent, DotOperand)):
        return isinstance(layout, DotOperand)
    operand = layout.parent
    if layout.dim != operand.operand_index:
        return False
    if fact.rank != 1 or not isinstance(operand.parent, Mfma):
        return True
    instructions = max(1, fact.shape[0] // operand.parent.instr_shape[2])
    return instructions * operand.k_width * bits_of(fact.dtype) > WIDEST_LOAD


def narrowed_home(rw: "Homes", node: ast.AST, want: Layout) -> Layout | None:
    """The layout of what the cast `node` makes narrower, where less is moved to `want` after the cast than before it.

    What a reduction left in a slice is held by many lanes, each of which would cast its copies.
    """
    value = cast_of(rw, node)
    before = rw.tensor(value) if value is not None and not rw.cheap(node) else None
    if before is None or before.is_pointer or bits_of(before.dtype) <= bits_of(rw.tensor(node).dtype):
        return None
    home = rw.home(value)
    return None if isinstance(home, Slice) and not isinstance(want, Slice) else home
