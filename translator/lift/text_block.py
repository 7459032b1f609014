"""Lines of a lifted kernel's text that stand at one indentation, and what is known by name in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from translator.lift.index import Index
from translator.lift.scalars import Expr


@dataclass(eq=False)
class Block:
    """Lines of one indentation. variables: those that exist in it; guarded: whether a branch decides that it runs."""

    outer: "Block | None" = None
    variables: frozenset[Expr] = frozenset()
    guarded: bool = False
    lines: list[str] = field(default_factory=list)
    names: dict[object, str] = field(default_factory=dict)
    indices: dict[Expr, Index] = field(default_factory=dict)

    def known(self, key: object) -> str | None:
        block: Block | None = self
        while block is not None:
            if key in block.names:
                return block.names[key]
            block = block.outer
        return None

    def index(self, variable: Expr) -> Index:
        block: Block | None = self
        while block is not None:
            if variable in block.indices:
                return block.indices[variable]
            block = block.outer
        raise AssertionError(f"{variable} belongs to no loop")
