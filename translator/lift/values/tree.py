"""The lifted kernel as a tree: loops, branches and stores, with expressions that hold for every iteration."""

from __future__ import annotations

from dataclasses import dataclass, field

from gluonize.lift.values.scalars import Expr
from gluonize.lift.values.tensors import Node
from gluonize.trace.model.locations import UNKNOWN, Place


@dataclass(eq=False)
class LoopText:
    """`for variable in range(trips)`, the author's index being `low + variable * step`; name: of that index."""

    variable: Expr
    low: Expr
    step: Expr
    trips: Expr
    name: str
    body: list["Text"] = field(default_factory=list)
    place: Place = UNKNOWN


@dataclass(eq=False)
class BranchText:
    """`if condition` (or, where `taken` is 1, `if not condition`)."""

    condition: Expr
    taken: int
    body: list["Text"] = field(default_factory=list)
    place: Place = UNKNOWN


@dataclass(eq=False)
class StoreText:
    """A store. kind: as `gluonize.lift.machine.machine.Effect` has it; operands: nodes and expressions."""

    kind: str
    operands: tuple[Node | Expr | None, ...]
    attrs: tuple
    place: Place = UNKNOWN


@dataclass(eq=False)
class Fold:
    """A sum of products over `variable` in `range(trips)`: the products of each step, in order, from `base` on.

    low, step: of the author's index, as in `LoopText`. name: of that index. steps: dots whose last operand, where they have one, is
    a node `carried`.
    """

    variable: Expr
    low: Expr
    step: Expr
    trips: Expr
    name: str
    base: Node | None
    products: tuple[Node, ...]


@dataclass(eq=False)
class Held:
    """A loop that carries tensors: `first` values and, per iteration, the `next` ones, by position; low, step, name as in `LoopText`.

    line: of the loop in its module, which nodes `carried` name with their position.
    """

    variable: Expr
    low: Expr
    step: Expr
    trips: Expr
    name: str
    line: int
    first: dict[int, Node] = field(default_factory=dict)
    next: dict[int, Node] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[Node, ...]:
        return (*self.first.values(), *self.next.values())


Text = LoopText | BranchText | StoreText
