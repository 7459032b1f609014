"""One place in a function: what it takes to ask which layouts matrix products, their operands and tiles in LDS want, and to write them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gluonize.facts.webs import Web
from gluonize.gluon.nodes import Code, Node, Read
from gluonize.gluon.printer import spelled, written
from gluonize.gluon.written import Does, Part, Written, doing
from gluonize.trace.model.layouts import Layout
from gluonize.write.state.edits import Edits
from gluonize.write.state.fresh_names import FreshNames
from gluonize.write.state.layouts import TileRead
from gluonize.write.state.variables import WebState
from gluonize.write.state.writing import Asking, Writing


class Reads(Protocol):
    """The variables that an expression reads as rewritten, outside of `without`."""

    def __call__(self, node: ast.AST, without: Collection[ast.AST] = ()) -> frozenset[str]: ...


@dataclass(frozen=True)
class Spot(Asking):
    """A place between the statements of a function that is walked through.

    loops: those around it, the outermost first.
    """

    loops: tuple[ast.AST, ...]

    @property
    def pipelined(self) -> bool:
        """Whether a loop around is software-pipelined."""
        return not self.layouts.of_loops.pipelined.keys().isdisjoint(self.loops)

    @property
    def staged(self) -> Mapping[ast.Call, Any]:
        """Loads whose tiles are read from LDS."""
        return self.layouts.of_loops.staged

    @property
    def held(self) -> Mapping[ast.Call, Any]:
        """Loads whose tiles wait in registers."""
        return self.layouts.of_loops.held

    @property
    def partitioned(self) -> bool:
        """Whether some loop is split between warps."""
        return self.layouts.of_loops.partitioned

    @property
    def fresh(self) -> FreshNames:
        return self.layouts.fresh

    def state(self, web: Web) -> WebState:
        return self.layouts.state(web)

    def web_home(self, web: Web) -> Any:
        return self.layouts.web_home(web)

    def is_moved(self, node: ast.expr, want: Layout) -> bool:
        return self.layouts.is_moved(node, want)

    def load_in(self, load: ast.Call, web: Web, layout: Layout) -> None:
        self.layouts.load_in(load, web, layout)

    def demand_more(self) -> None:
        self.layouts.demand_more()

    def tile_at_use(self, data: ast.expr) -> TileRead | None:
        return self.layouts.tile_read_at_use(data)

    def permuted_tile(self, data: ast.expr, order: tuple[int, ...], layout: Layout) -> Written | None:
        return self.layouts.permuted_tile(self, data, order, layout)

    def expression(self, node: Node, *parts: Part) -> Written:
        """`node` as an expression: itself in pipelined loops, which passes look into; else its spelling.

        parts: expressions that it is made of, which say what it does.
        """
        does = doing(parts, Does.READS if isinstance(node, Read) and not node.relaxed else Does.NOTHING)
        if self.pipelined:
            return Written((node,), ast.Call, does=does)
        if isinstance(node, Read):
            return Written(spelled(node), ast.Call, does=does)
        plain = written(node)
        return Written(plain.code, plain.form, does=does)


@dataclass(frozen=True)
class Site(Spot, Writing):
    """A place that is written. edits: of the block that it is in. hoisted: loop -> variable -> its line before the loop. reads: what a
    statement of a pipelined loop reads as rewritten."""

    edits: Edits
    hoisted: dict[ast.AST, dict[str, Code]]
    reads: Reads

    def statement(self, node: Node) -> Code:
        """A statement: itself in pipelined loops, else its spelling."""
        return (node,) if self.pipelined else spelled(node)
