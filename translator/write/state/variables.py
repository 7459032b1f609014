"""The layout state of one function's variables: a home layout, or one variant per demanded layout.

A web whose values are cheap to recompute (index arithmetic) exists once per layout that its uses demand: the first
keeps the author's name, the others get a suffix. A web that holds loaded or reduced data lives in one home layout and
is converted where another one is needed: at the use, or once after the definition where the use is in a deeper loop.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from gluonize.decide.layouts.demands import Place, Wanted
from gluonize.facts.obligations import Obligation
from gluonize.facts.webs import Web
from gluonize.trace.model.layouts import Layout

OperandRead = tuple[Layout, bool]  # the layout of a matrix operand, and whether it is the transposed value
# An LDS layout, the only read where Triton shares no allocation, and the layout to convert to before the store, if any.
OperandBuffer = tuple[Layout, OperandRead | None, Layout | None]


@dataclass(frozen=True)
class MovedOperand:
    """A matrix operand made of the value that `definition` gives a variable; dtype: of a cast, "" for none."""

    definition: ast.stmt
    layout: Layout
    transposed: bool
    dtype: str


@dataclass(frozen=True)
class SplitPointer:
    """A tensor of pointers kept as a scalar base and integer offsets.

    `base` is the expression of the base; `base_name` is set when the base moves and needs a variable of its own;
    `fold` says that scalar moves go into the offsets (they may be negative otherwise).
    """

    root: str
    base: str
    moves: bool
    fold: bool
    wide: bool
    node: ast.expr | None = None  # the parameter, for a split scalar pointer
    narrow: bool = False  # 64-bit offsets are cut to 32 bits where the variable gets its first value
    assumed: frozenset[Obligation] = frozenset()  # what this rests on
    of_any_storage: bool = False  # the offsets reach all that is accessed, be the storage within 2 GiB or not


@dataclass
class WebState:
    web: Web
    cheap: bool
    home: Layout | None = None
    wanted: Wanted = field(default_factory=Wanted)
    split: SplitPointer | None = None
    # Operands read through LDS: the buffer -> (operand layout, transposed) -> the uses.
    operands: dict[OperandBuffer, dict[OperandRead, set[ast.AST]]] = field(default_factory=dict)
    at_once: set[OperandBuffer] = field(default_factory=set)  # those that are read in full as soon as they are filled
    # Operands made of it -> {its use: (the operand's expression, the dot)}.
    moved: dict[MovedOperand, dict[ast.AST, tuple[ast.expr, ast.Call]]] = field(default_factory=dict)

    @property
    def variants(self) -> list[Layout]:
        """The layouts in which it is computed; of a value that is not cheap, those in which a parameter is wanted."""
        return self.wanted.variants

    @property
    def converted(self) -> list[Layout]:
        """The layouts that it is moved to behind its definition."""
        return self.wanted.converted

    @property
    def first_use(self) -> dict[Layout, Place]:
        """Where each layout is wanted first."""
        return self.wanted.first_use

    def settle(self) -> None:
        """Order the variants by first use: the first one keeps the author's name."""
        self.wanted.settle()
