"""What the parts that write a function's Gluon text ask of the whole, and tell it.

Handlers of calls, of pointers and of pipelined loops know each other only through this interface: the rewriter that has it
(`translator.rewrite.function`) is put together from them.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from typing import Any, Protocol

from translator.facts.function import FunctionFacts
from translator.facts.webs import Web
from translator.gluon.holes import Holes
from translator.gluon.tree import Node, Place
from translator.gluon.written import Assigned, Written
from translator.layout.names import LayoutNames
from translator.rewrite.addresses import Addressing
from translator.rewrite.edits import Edits
from translator.rewrite.fresh_names import FreshNames, LoopNames
from translator.rewrite.helpers import Helpers
from translator.rewrite.unit import Record, Unit
from translator.rewrite.variables import WebState
from translator.rewrite.writing import Writing
from translator.ttgir.layouts import Layout


class TileRead(Protocol):
    """How a tile in LDS is read; tile: where it lies, by default its slot."""

    def text(self, rw: Emission, layout: Layout, tile: Place | None = None) -> Written: ...


class Emission(Protocol):
    """One function while it is written. Layouts are demanded by uses: what adds a demand sets `changed`, and all is written once
    more.

    staged, held, pipelined_statements, pipelined_loops, plans: what stands for the loads, statements and iterators of pipelined
    loops. pushed: computed in the wanted layout even where a conversion looks cheaper. loops: those around what is written.
    """

    unit: Unit
    facts: FunctionFacts
    record: Record
    writing: Writing
    names: LayoutNames
    states: dict[int, WebState]
    wants: Any
    argument_homes: dict[str, Any]
    changed: bool
    edits: Edits
    loops: tuple[ast.AST, ...]
    holes: Holes
    locals: set[str]
    fresh: FreshNames
    plans: list[Any]
    staged: dict[ast.Call, Any]
    held: dict[ast.Call, Any]
    pipelined_statements: dict[ast.stmt, Any]
    pipelined_loops: dict[ast.For, Any]
    written_loops: list[Any]
    whole: dict[ast.For, str]
    pushed: set[ast.AST]
    addressing: Addressing
    helpers: Helpers
    clips: dict[ast.AST, Any]
    dropped: frozenset[ast.stmt]
    hoisted: dict[ast.AST, dict[str, str]]
    loop_names: LoopNames
    added_parameters: dict[str, str]

    # Where values lie, and what it costs to have them elsewhere.
    def home(self, node: ast.AST) -> Any: ...
    def web_home(self, web: Web) -> Any: ...
    def settle_home(self, web: Web, layout: Layout) -> None: ...
    def state(self, web: Web) -> WebState: ...
    def cheap(self, node: ast.AST) -> bool: ...
    def make_cheap(self, web: Web, cheap: bool = True) -> None: ...
    def rebound(self, name: str) -> bool: ...

    # A tile of a pipelined loop, read at its one use; None for other values.
    def tile_read_at_use(self, data: ast.expr) -> TileRead | None: ...

    # Text.
    def emit(self, node: ast.AST, want: Any = None) -> Written: ...
    def convert(self, text: Written, layout: Layout) -> Written: ...
    def splice(self, node: ast.AST, children: dict[ast.AST, Written], more: Sequence[str] = ()) -> Written: ...
    def variant_name(self, state: WebState, layout: Layout) -> str: ...
    def block(self, statements: list[ast.stmt], condition: str = "") -> None: ...
    def plain_statement(self, s: ast.stmt) -> None: ...
    def statement_text(self, s: ast.stmt) -> str: ...
    def moves(self, s: ast.AugAssign) -> list[Assigned]: ...
    def conversions_after(self, s: ast.stmt, target: ast.AST) -> list[str]: ...

    # What passes over a pipelined loop look into: nodes in its text. Elsewhere a node is its text.
    @property
    def in_pipelined_loop(self) -> bool: ...
    def hole(self, node: Node, *parts: str) -> Written: ...
    def reads(self, node: ast.AST, without: Collection[ast.AST] = ()) -> frozenset[str]: ...
