"""Gathers and scatters of the tensor data mover: rows of a tensor, through LDS.

One instruction moves 8 rows by 32-bit numbers, or 16 by 16-bit ones, which all lanes of a warp know: the layout of the row
numbers, Triton's, gives each warp as many. The column is the descriptor's position.
"""

from __future__ import annotations

import ast

from gluonize.decide.readback.staging import Rows
from gluonize.facts.function import FunctionFacts
from gluonize.facts.numbers.signs import Signs, obligation_at
from gluonize.gluon.written import Part, Written, attribute, call, method
from gluonize.trace.model.layouts import Layout
from gluonize.write.descriptors import tdm
from gluonize.write.state.relations import Wants
from gluonize.write.state.unit import Record, Synthesized
from gluonize.write.state.writing import Writing, added

_UNSIGNED = "rows that the data mover takes as unsigned numbers"


def access(
    writing: Writing,
    node: ast.Call,
    owner: ast.expr,
    indices: list[ast.expr],
    value: ast.expr | None,
    layout: Layout | None,
) -> Written:
    """A gather into `layout`, or a scatter of `value`."""
    facts = writing.facts
    rows, column = indices
    found, proof = _rows_of(facts, node), Signs(facts, _UNSIGNED)
    assert found is not None and _rows_fit(
        facts, proof, rows
    ), "bug in gluonize: rows that the data mover does not take"
    writing.record.obligations |= proof.assumed
    tdm.rests_on(facts, writing.record, [column])
    writing.record.obligations.add(obligation_at(facts, rows, "outside", _UNSIGNED, "proven"))
    writing.names.suggest(found.indices, "rows_per_warp", 1, node.lineno)
    writing.names.suggest(found.shared, "rows_shared", 1, node.lineno)
    shared = writing.names.spell(found.shared)
    arguments = [writing.emit(owner), writing.emit(rows, found.indices), tdm.index_text(facts, writing.emit, column)]
    if value is None:
        return _gather(facts, writing.record, [*arguments, shared, writing.names.spell(layout)])
    text = writing.emit(value, writing.home(value))
    element = owner_element(facts, owner)
    if facts.fact(value).dtype != element:
        text = method(text, "to", attribute(writing.emit(owner), "dtype"))
    return _scatter(facts, writing.record, [*arguments, text, shared])


def why_not(facts: FunctionFacts, node: ast.Call, indices: list[ast.expr]) -> str:
    """Why the data mover does not move these rows; "" where it does."""
    rows, column = indices
    found = _rows_of(facts, node)
    if found is None:
        return "Triton gathers or scatters these rows in another way"
    if not tdm.fits(found.shared):
        return "the data mover does not write the LDS layout of these rows"
    if not _rows_fit(facts, Signs(facts, _UNSIGNED), rows):
        return "its row numbers are signed 16-bit numbers"
    return tdm.why_not_at(facts, [column])


def _rows_fit(facts: FunctionFacts, proof: Signs, rows: ast.expr) -> bool:
    """Whether row numbers are right as unsigned ones: of 16 bits, -1 would be a row that may be there."""
    return facts.tensor(rows).dtype != "int16" or proof.holds(rows)


def wants(facts: FunctionFacts, node: ast.Call, indices: list[ast.expr]) -> Wants:
    """In which layout the data mover wants its row numbers."""
    found = _rows_of(facts, node)
    return {} if found is None else {indices[0]: found.indices}


def owner_element(facts: FunctionFacts, owner: ast.expr) -> str:
    return str(facts.fact(owner).detail.block_type.element_ty)


def _rows_of(facts: FunctionFacts, node: ast.Call) -> Rows | None:
    for visit in facts.visits(node):
        if (found := facts.kernel.rows.get((*facts.path, visit))) is not None:
            return found
    return None


def _gather(facts: FunctionFacts, record: Record, arguments: list[Part]) -> Written:
    module = tdm.module(record)
    text = f'''@gluon.jit
def gather_rows(desc, rows, column, shared: gl.constexpr, layout: gl.constexpr):
    """Gather rows through LDS; elements outside of the tensor read as zero."""
    smem = gl.allocate_shared_memory(desc.dtype, [rows.shape[0], desc.block_shape[1]], shared)
    {module}.async_gather({module}.update_tensor_descriptor(desc, add_offsets=[0, column], clamp_bounds=True), rows, smem)
    {module}.async_wait(0)
    return smem.load(layout)
'''
    return call(added(facts, record, Synthesized("gather_rows", text)), *arguments)


def _scatter(facts: FunctionFacts, record: Record, arguments: list[Part]) -> Written:
    module = tdm.module(record)
    text = f'''@gluon.jit
def scatter_rows(desc, rows, column, value, shared: gl.constexpr):
    """Scatter rows through LDS; elements outside of the tensor are left out."""
    smem = gl.allocate_shared_memory(desc.dtype, value.shape, shared, value)
    {module}.async_scatter({module}.update_tensor_descriptor(desc, add_offsets=[0, column], clamp_bounds=True), rows, smem)
    {module}.async_wait(0)
'''
    return call(added(facts, record, Synthesized("scatter_rows", text)), *arguments)
