"""Stores by asynchronous copies out of LDS: lanes write a product as they hold it, and whole rows leave.

    buffer_store(c, c_ptr, offs, mask=mask)    ->    store_by_copy(c_ptr + offs, c, mask, c_rows)

The rows need no registers. Only after the loops: a copy more would change what their waits count.
"""

from __future__ import annotations

import ast

from translator.facts.function import FunctionFacts
from translator.frontend.trace import TensorFact
from translator.layout.names import LayoutNames
from translator.rewrite.emission import Emission, added
from translator.rewrite.gluon_modules import async_module
from translator.rewrite.pointers import Access
from translator.rewrite.splice import operand
from translator.rewrite.unit import Record, Synthesized
from translator.ttgir.elements import bits_of
from translator.ttgir.layouts import Blocked, Wmma
from translator.ttgir.shared_layouts import Padded

WIDEST = 128  # bits that a lane copies at once
_STORE = '''@gluon.jit
def store_by_copy(pointers, value, mask, shared: gl.constexpr):
    """Store a tile out of LDS, in the rows that `pointers` has, whatever the layout of `value`."""
    smem = gl.allocate_shared_memory(value.dtype, value.shape, shared, value)
    async_copy.shared_to_global(pointers, smem, mask=mask)
    async_copy.commit_group()
    async_copy.wait_group(0)
'''


def rows_of(rw: Emission, value: ast.expr, fact: TensorFact) -> Blocked | None:
    """The layout in which copies store `value` through the tensor of pointers `fact`; None where lanes store it."""
    if (
        not rw.unit.decided.choices.asks("stores", "copied")
        or not rw.facts.kernel.target.copies_to_global
        or rw.facts.kernel.num_ctas > 1
        or rw.facts.path
        or rw.loops
    ):
        return None
    if any(loop.specialized for loop in rw.pipelined_loops.values()):
        return None
    own = rw.facts.tensor(value)
    if own is None or own.shape != fact.shape or fact.rank != 2 or not isinstance(rw.home(value), Wmma):
        return None
    columns = fact.shape[1]
    vector = WIDEST // bits_of(fact.pointee)
    if columns < vector:
        return None
    lanes = min(rw.facts.kernel.target.warp_size, columns // vector)
    return Blocked(
        (1, vector), (rw.facts.kernel.target.warp_size // lanes, lanes), (rw.facts.kernel.num_warps, 1), (1, 0)
    )


def store_text(
    facts: FunctionFacts, names: LayoutNames, record: Record, text: str, access: Access, mask: str, fact: TensorFact
) -> str:
    """The store of `text`, a value in the type that the pointers point to; mask: "" for none."""
    async_module(record)
    name = added(facts, record, Synthesized("store_by_copy", _STORE))
    columns = fact.shape[1]
    shared = Padded(((columns, WIDEST // bits_of(fact.pointee)),), (), (1, 0), fact.shape)
    names.suggest(shared, f"{access.root.removesuffix('_ptr').lower()}_rows", 3)
    pointers = f"{operand(access.base)} + {operand(access.offsets)}"
    return f"{name}({pointers}, {text}, {mask or 'None'}, {names.spell(shared)})"
