"""Stores by asynchronous copies out of LDS: lanes write a product as they hold it, and whole rows leave.

    buffer_store(c, c_ptr, offs, mask=mask)    ->    store_by_copy(c_ptr + offs, c, mask, c_rows)

The rows need no registers. Only after the loops: a copy more would change what their waits count.
"""

from __future__ import annotations

import ast

from gluonize.facts.refusals import refuse
from gluonize.gluon.written import Written, binary, call, operand
from gluonize.trace.front.trace import TensorFact
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.layouts import Blocked, Wmma
from gluonize.trace.model.shared_layouts import Padded
from gluonize.write.accesses.pointers import Access
from gluonize.write.state.gluon_modules import async_module
from gluonize.write.state.unit import Synthesized
from gluonize.write.state.writing import Writing

WIDEST = 128  # bits that a lane copies at once
_STORE = '''@gluon.jit
def store_by_copy(pointers, value, mask, shared: gl.constexpr):
    """Store a tile out of LDS, in the rows that `pointers` has, whatever the layout of `value`."""
    smem = gl.allocate_shared_memory(value.dtype, value.shape, shared, value)
    async_copy.shared_to_global(pointers, smem, mask=mask)
    async_copy.commit_group()
    async_copy.wait_group(0)
'''


def rows_of(writing: Writing, value: ast.expr, fact: TensorFact) -> Blocked | None:
    """The layout in which copies store `value` through the tensor of pointers `fact`; None where lanes store it."""
    facts = writing.facts
    if (
        not writing.decided.choices.asks("stores", "copied")
        or not facts.kernel.target.copies_to_global
        or facts.kernel.num_ctas > 1
        or facts.path
    ):
        return None
    own = facts.tensor(value)
    if own is None or own.shape != fact.shape or fact.rank != 2 or not isinstance(writing.home(value), Wmma):
        return None
    if any(sum(n != 0 for n in base) > 1 for base in writing.home(value).warp_bases):
        what = "a product whose warps are spread for `lds-partitions=two` cannot leave by `stores=copied`"
        why = "the compiler writes no tile to LDS out of a layout in which a warp is apart in both dimensions"
        raise refuse(facts.frame, value, "strategy", what, why, "leave one of the two choices out")
    columns = fact.shape[1]
    vector = WIDEST // bits_of(fact.pointee)
    if columns < vector:
        return None
    lanes = min(facts.kernel.target.warp_size, columns // vector)
    return Blocked((1, vector), (facts.kernel.target.warp_size // lanes, lanes), (facts.kernel.num_warps, 1), (1, 0))


def store_text(writing: Writing, text: Written, access: Access, mask: Written | None, fact: TensorFact) -> Written:
    """The store of `text`, a value in the type that the pointers point to."""
    async_module(writing.record)
    name = writing.added(Synthesized("store_by_copy", _STORE))
    columns = fact.shape[1]
    shared = Padded(((columns, WIDEST // bits_of(fact.pointee)),), (), (1, 0), fact.shape)
    writing.names.suggest(shared, f"{access.root.removesuffix('_ptr').lower()}_rows", 3)
    pointers = binary(operand(access.base), "+", operand(access.offsets))
    return call(name, pointers, text, mask or "None", writing.names.spell(shared))
