"""A pipelined loop's place in a function while it is written: statements that are written as ever come from here."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gluonize.gluon.code import replaced
from gluonize.gluon.nodes import Code, Line
from gluonize.gluon.written import Assigned
from gluonize.trace.model.layouts import Layout
from gluonize.write.accesses.addresses import Addressing
from gluonize.write.state.fresh_names import LoopNames
from gluonize.write.state.site import Site
from gluonize.write.state.variables import WebState


@dataclass(frozen=True)
class LoopSite(Site):
    """plain: writes a statement as outside of pipelined loops; statement_code: one that stands elsewhere; block: writes
    a block. moves: what `x += c` becomes; conversions_after: what a statement's value is moved to. variant_name: what a variable is
    called in a layout."""

    addressing: Addressing
    loop_names: LoopNames
    plain: Callable[[ast.stmt], None]
    statement_code: Callable[[ast.stmt], Code]
    block: Callable[[list[ast.stmt]], None]
    moves: Callable[[ast.AugAssign], list[Assigned]]
    conversions_after: Callable[[ast.stmt, ast.AST], list[Code]]
    variant_name: Callable[[WebState, Layout], str]

    def line_ahead(self, ahead_of: Mapping[ast.stmt, ast.stmt], s: ast.stmt) -> Line:
        """The statement that stands for `s` where a tile ahead is fetched, at no indentation of its own."""
        return Line(replaced(self.statement_code(ahead_of[s]), "\n" + self.facts.source.indent(s), "\n"))
