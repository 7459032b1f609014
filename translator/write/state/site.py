"""One place of a function: what those need who ask what matrix products, their operands and tiles in LDS want, and who write them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gluonize.facts.webs import Web
from gluonize.gluon.nodes import Code, Node, Place, Read
from gluonize.gluon.printer import spelled, written
from gluonize.gluon.written import Does, Part, Written, doing
from gluonize.trace.model.layouts import Layout
from gluonize.write.state.edits import Edits
from gluonize.write.state.fresh_names import FreshNames
from gluonize.write.state.writing import Asking, StateOf, Writing


class TileRead(Protocol):
    """How a tile in LDS is read; tile: where it lies, by default its slot."""

    def text(self, site: Site, layout: Layout, tile: Place | None = None) -> Written: ...


class Reads(Protocol):
    """The variables that an expression reads as rewritten, outside of `without`."""

    def __call__(self, node: ast.AST, without: Collection[ast.AST] = ()) -> frozenset[str]: ...


@dataclass(frozen=True)
class Spot(Asking):
    """A place between the statements of a function that is walked through.

    loops: those around it, the outermost first; pipelined: whether one of them is software-pipelined. staged, held: loads
    whose tiles are read from LDS, and those whose tiles wait in registers. partitioned: some loop is split between warps. tile_at_use: a tile that
    is read where it is used, None for other values. load_in: has the load of a variable made in a layout. demand_more: one more walk is
    needed. is_moved: whether a chain of casts and transposes of a variable, wanted in a layout, moves it.
    """

    loops: tuple[ast.AST, ...]
    pipelined: bool
    fresh: FreshNames
    staged: Mapping[ast.Call, Any]
    held: Mapping[ast.Call, Any]
    partitioned: bool
    state: StateOf
    web_home: Callable[[Web], Any]
    tile_at_use: Callable[[ast.expr], TileRead | None]
    load_in: Callable[[ast.Call, Web, Layout], None]
    demand_more: Callable[[], None]
    is_moved: Callable[[ast.expr, Layout], bool]

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
