"""What is found of the layouts of a function's variables, as far as it is asked for."""

from __future__ import annotations

import ast
from typing import Any, Protocol

from gluonize.facts.webs import Web
from gluonize.gluon.nodes import Place
from gluonize.gluon.written import Written
from gluonize.trace.model.layouts import Layout
from gluonize.write.state.fresh_names import FreshNames
from gluonize.write.state.function_loops import FunctionLoops
from gluonize.write.state.variables import WebState


class TileRead(Protocol):
    """How a tile in LDS is read; tile: where it lies, by default its slot."""

    def text(self, spot: Any, layout: Layout, tile: Place | None = None) -> Written: ...


class Layouts(Protocol):
    """Found by `write/layouts/demand_walk.py`. fresh: names that the function does not use."""

    of_loops: FunctionLoops
    fresh: FreshNames

    def home(self, node: ast.AST) -> Any:
        """The layout in which a value lies, of a tuple those of its elements."""

    def cheap(self, node: ast.AST) -> bool:
        """Whether a value is made anew in each layout that its uses want."""

    def rebound(self, name: str) -> bool:
        """Whether the author uses a name for several variables."""

    def state(self, web: Web) -> WebState:
        """What is known so far of a variable in the output."""

    def web_home(self, web: Web) -> Any:
        """The layout of a variable when nobody asks for another."""

    def is_moved(self, node: ast.expr, want: Layout) -> bool:
        """Whether a chain of casts and transposes of a variable, wanted in a layout, moves it."""

    def load_in(self, load: ast.Call, web: Web, layout: Layout) -> None:
        """Have the load of a variable made in a layout."""

    def demand_more(self) -> None:
        """One more walk is needed."""

    def tile_read_at_use(self, data: ast.expr) -> TileRead | None:
        """A tile that is read where it is used; None for other values."""

    def permuted_tile(self, spot: Any, data: ast.expr, order: tuple[int, ...], layout: Layout) -> Written | None:
        """A tile of a pipelined loop with its dimensions permuted; None for other values."""


__all__ = ["Layouts", "TileRead"]
