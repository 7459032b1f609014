"""What the parts that write a function's Gluon text ask of the whole, and tell it.

Handlers of calls, of pointers and of pipelined loops know each other only through this interface: the rewriter that has it
(`translator.rewrite.function`) is put together from them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from typing import Any, Protocol

from translator.facts.function import FunctionFacts
from translator.facts.webs import Web
from translator.frontend.trace import Frame, TensorFact
from translator.gluon.holes import Holes
from translator.gluon.tree import Node, Place
from translator.layout.names import LayoutNames
from translator.numbered import numbered
from translator.rewrite.fresh_names import FreshNames, LoopNames
from translator.rewrite.gluon_function import GluonFunction
from translator.rewrite.unit import Record, Synthesized, Unit
from translator.rewrite.variables import WebState
from translator.ttgir.layouts import Layout


class Emit(Protocol):
    """Writes an expression: the Gluon text of `node`, a tensor in the layout `want`."""

    def __call__(self, node: ast.AST, want: Any = None) -> str: ...


HomeOf = Callable[[ast.AST], Any]  # the layout in which a value lies, of a tuple those of its elements
StateOf = Callable[[Web], WebState]  # what is known so far of a variable in the output
Rebound = Callable[[str], bool]  # whether the author uses a name for several variables
Cheap = Callable[[ast.AST], bool]  # whether a value is made anew in each layout that its uses want
Splice = Callable[[ast.AST, dict[ast.AST, str]], str]  # writes an expression with other text for parts of it
Convert = Callable[[str, Layout], str]  # writes a tensor in another layout


class TileRead(Protocol):
    """How a tile in LDS is read; tile: where it lies, by default its slot."""

    def text(self, rw: Emission, layout: Layout, tile: Place | None = None) -> str: ...


class Emission(Protocol):
    """One function while it is written. Layouts are demanded by uses: what adds a demand sets `changed`, and all is written once
    more.

    staged, held, pipelined_statements, pipelined_loops, plans: what stands for the loads, statements and iterators of pipelined
    loops. pushed: computed in the wanted layout even where a conversion looks cheaper. loops: those around what is written.
    edits: (start, end, text) in the source.
    """

    unit: Unit
    facts: FunctionFacts
    record: Record
    names: LayoutNames
    states: dict[int, WebState]
    wants: Any
    argument_homes: dict[str, Any]
    changed: bool
    edits: list[tuple[int, int, str]]
    held_fills: list[tuple[int, int, str]]
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
    recomputed: dict[ast.expr, tuple[ast.AST, bool]]
    uniform: dict[ast.expr, tuple[ast.AST, bool]]
    guards: dict[ast.Call, Any]
    clips: dict[ast.AST, Any]
    dropped: frozenset[ast.stmt]
    hoisted: dict[ast.AST, dict[str, str]]
    instance_layouts: dict[tuple[Layout, ast.stmt], str]
    loop_names: LoopNames
    added_parameters: dict[str, str]

    # Where values lie, and what it costs to have them elsewhere.
    def home(self, node: ast.AST) -> Any: ...
    def web_home(self, web: Web) -> Any: ...
    def found_home(self, web: Web) -> Any: ...
    def settle_home(self, web: Web, layout: Layout) -> None: ...
    def state(self, web: Web) -> WebState: ...
    def cheap(self, node: ast.AST) -> bool: ...
    def make_cheap(self, web: Web, cheap: bool = True) -> None: ...
    def lies_anywhere(self, node: ast.expr) -> bool: ...
    def rebound(self, name: str) -> bool: ...
    def reader(self, frame: Frame, path: tuple[int, ...], argument_homes: dict[str, Any]) -> Emission: ...
    def writer(self, frame: Frame, path: tuple[int, ...], wants: Any, argument_homes: dict[str, Any]) -> Emission: ...

    # Tiles of pipelined loops: read with their dimensions permuted, and at their one use. None for other values.
    def permuted_tile(self, data: ast.expr, order: tuple[int, ...], layout: Layout) -> str | None: ...
    def tile_read_at_use(self, data: ast.expr) -> TileRead | None: ...

    # Text.
    def emit(self, node: ast.AST, want: Any = None) -> str: ...
    def operand_in(self, child: ast.expr, fact: TensorFact | None, want: Layout | None) -> str: ...
    def convert(self, text: str, layout: Layout) -> str: ...
    def splice(self, node: ast.AST, children: dict[ast.AST, str]) -> str: ...
    def variant_name(self, state: WebState, layout: Layout) -> str: ...
    def block(self, statements: list[ast.stmt], condition: str = "") -> None: ...
    def plain_statement(self, s: ast.stmt) -> None: ...
    def conversions_after(self, s: ast.stmt, target: ast.AST) -> list[str]: ...
    def replace(self, node: ast.AST, text: str) -> None: ...
    def insert_before(self, s: ast.stmt, *lines: str) -> None: ...
    def append_lines(self, s: ast.stmt, lines: list[str]) -> None: ...
    def rewrite(self) -> GluonFunction: ...

    # What passes over a pipelined loop look into: nodes in its text. Elsewhere a node is its text.
    @property
    def in_pipelined_loop(self) -> bool: ...
    def hole(self, node: Node) -> str: ...
    def shown(self, text: str) -> str: ...
    def reads(self, node: ast.AST, without: Collection[ast.AST] = ()) -> frozenset[str]: ...


def added(facts: FunctionFacts, record: Record, function: Synthesized) -> str:
    """Put a function into the output, for calls in the one of `facts`; -> its name, which is none of the source's."""
    own = function.called(numbered(function.name, facts.kernel.words.__contains__))
    record.need(own, facts.frame.fn)
    return own.name
