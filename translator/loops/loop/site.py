"""A pipelined loop's place in a function while it is written: statements that are written as ever come from here."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gluonize.gluon.code import replaced
from gluonize.gluon.nodes import Code, Line
from gluonize.gluon.written import Assigned
from gluonize.trace.model.layouts import Layout
from gluonize.write.accesses.addresses import Addressing
from gluonize.write.state.fresh_names import LoopNames
from gluonize.write.state.site import Site
from gluonize.write.state.variables import WebState


class Plain(Protocol):
    """Writes statements as outside of pipelined loops."""

    def plain_statement(self, s: ast.stmt) -> None:
        """Into the edits of the function."""

    def statement_code(self, s: ast.stmt) -> Code:
        """One that stands elsewhere."""

    def block(self, statements: list[ast.stmt]) -> None:
        """Statements of a block, those that pipelining changes among them."""

    def moves(self, s: ast.AugAssign) -> list[Assigned]:
        """What `x += c` becomes."""

    def conversions_after(self, s: ast.stmt, target: ast.AST) -> list[Code]:
        """The lines in which what a statement binds is moved to the layouts that are wanted of it."""

    def variant_name(self, state: WebState, layout: Layout) -> str:
        """What a variable is called in a layout."""


@dataclass(frozen=True)
class LoopSite(Site):
    """plain: what writes the statements that pipelining leaves as they are."""

    addressing: Addressing
    loop_names: LoopNames
    plain: Plain

    def line_ahead(self, ahead_of: Mapping[ast.stmt, ast.stmt], s: ast.stmt) -> Line:
        """The statement that stands for `s` where a tile ahead is fetched, at no indentation of its own."""
        return Line(replaced(self.plain.statement_code(ahead_of[s]), "\n" + self.facts.source.indent(s), "\n"))
