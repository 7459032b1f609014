"""The layouts of a function as named constants at the top of its body."""

from __future__ import annotations

import functools

import libcst as cst

from gluonize.decide.layouts.constructors import Called, constructor
from gluonize.decide.layouts.described import describe
from gluonize.decide.layouts.names import definition
from gluonize.gluon.function import LINE_LENGTH, GluonFunction, Statement, code, first_after_gap, statements, wrapped
from gluonize.gluon.walk import mapped
from gluonize.trace.model.layouts import DotOperand, Layout, Slice
from gluonize.write.state.emitted import LaidOut

_FILLED = 104  # columns of a list of bases, behind the indentation of an argument in a branch


def with_constants(laid_out: LaidOut) -> GluonFunction:
    """The function with the layout constants at the top of the body."""
    function, constants = laid_out.function, laid_out.constants
    if not constants:
        return function
    names = {constructor(layout): name for name, layout in constants}
    block: list[Statement] = []
    before = ""
    for name, layout in constants:
        comment = describe(layout)
        said = isinstance(layout, Called) and comment == before  # of layouts that one function gives
        text, before = f"# {comment}\n" if comment and not said else "", comment
        block += statements(
            wrapped(f"{text}{_in_lines(definition(name, layout, _named_parts(layout, names)))}\n", function.indent)
        )
    for line in (*laid_out.added, *(depth.text for depth in laid_out.depths)):
        block += statements(wrapped(f"{line}\n", function.indent))
    return function.with_statements(block, first_after_gap(function.body))


def _in_lines(definition: str) -> str:
    """A definition whose long lists of bases are sums of lists that fill a line: black has each of these in one, not each basis."""
    return code(mapped(statements(definition)[0], _sum)).strip() if len(definition) > LINE_LENGTH else definition


def _sum(node: cst.CSTNode) -> cst.CSTNode | None:
    if not isinstance(node, cst.List) or len(code(node)) <= _FILLED:
        return None
    lines: list[list[cst.Element]] = [[]]
    for element in node.elements:
        if sum(len(code(e.value)) + 2 for e in (*lines[-1], element)) > _FILLED:
            lines.append([])
        lines[-1].append(element.with_changes(comma=cst.MaybeSentinel.DEFAULT))
    return functools.reduce(lambda a, b: cst.BinaryOperation(a, cst.Add(), b), map(cst.List, lines))


def _named_parts(layout: Layout, names: dict[str, str]) -> dict[Layout, str]:
    """The names of what a layout is made of. names: of constructors: layouts that are equal in one launch may follow from other sizes."""
    out = {}
    while isinstance(layout, (Slice, DotOperand)):
        layout = layout.parent
        if (name := names.get(constructor(layout))) is not None:
            out[layout] = name
    return out
