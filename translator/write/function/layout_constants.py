"""The layouts of a function as named constants at the top of its body."""

from __future__ import annotations

import functools

import libcst as cst

from gluonize.decide.layouts.constructors import Called, constructor
from gluonize.decide.layouts.names import definition
from gluonize.decide.layouts.parametric import Entry, EntryBases
from gluonize.gluon.function import LINE_LENGTH, GluonFunction, Statement, code, first_after_gap, statements, wrapped
from gluonize.gluon.walk import mapped
from gluonize.trace.model.layouts import Blocked, DotOperand, Layout, Linear, Mfma, SharedLayout, Slice, Wmma
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


def describe(layout: Layout) -> str:
    """One line for the reader: what the layout spreads over what."""
    if isinstance(layout, Called):
        return layout.about
    if isinstance(layout, SharedLayout):
        return layout.described()
    if isinstance(layout, Mfma):
        if any(isinstance(n, Entry) for n in (*layout.instr_shape, *layout.warps_per_cta)):
            return "Matrix cores: MFMA and warps as the tile has room for them."
        shape, warps = "x".join(map(str, layout.instr_shape)), " x ".join(map(str, layout.warps_per_cta))
        return f"Matrix cores: {shape} MFMA, warps {warps} over the tile."
    if isinstance(layout, Wmma):
        return f"Matrix cores: {'x'.join(map(str, layout.instr_shape))} WMMA."
    if isinstance(layout, DotOperand):
        return ""
    if isinstance(layout, Blocked):
        fastest = layout.order[0]
        n = layout.size_per_thread[fastest]
        where = f" along dimension {fastest}" if layout.rank > 1 else ""
        if isinstance(n, Entry):
            return f"Consecutive elements per lane{where}, as many as there are and a load takes."
        return f"{n} consecutive element{'s' if n > 1 else ''} per lane{where}."
    if isinstance(layout, Linear):
        if isinstance(layout.register, EntryBases):
            return ""
        n = 1
        fastest = next((i for i, x in enumerate(layout.register[0]) if x), 0) if layout.register else 0
        for basis in layout.register:
            if basis[fastest] == n and sum(basis) == n:
                n *= 2
        where = f" along dimension {fastest}" if layout.rank > 1 else ""
        return f"{n} consecutive element{'s' if n > 1 else ''} per lane{where}."
    return ""
