"""The layouts of a function as named constants at the top of its body."""

from __future__ import annotations

from gluonize.decide.layouts.constructors import Called, constructor
from gluonize.decide.layouts.described import describe
from gluonize.gluon.layout_names import definition
from gluonize.gluon.trees.function import GluonFunction, Statement, first_after_gap, statements, wrapped
from gluonize.gluon.trees.long_lines import bases_in_lines
from gluonize.trace.model.layouts import DotOperand, Layout, Slice
from gluonize.write.state.emitted import LaidOut


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
            wrapped(f"{text}{bases_in_lines(definition(name, layout, _named_parts(layout, names)))}\n", function.indent)
        )
    for line in (*laid_out.added, *(depth.text for depth in laid_out.depths)):
        block += statements(wrapped(f"{line}\n", function.indent))
    return function.with_statements(block, first_after_gap(function.body))


def _named_parts(layout: Layout, names: dict[str, str]) -> dict[Layout, str]:
    """The names of what a layout is made of. names: of constructors: layouts that are equal in one launch may follow from other sizes."""
    out = {}
    while isinstance(layout, (Slice, DotOperand)):
        layout = layout.parent
        if (name := names.get(constructor(layout))) is not None:
            out[layout] = name
    return out
