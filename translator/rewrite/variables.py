"""The layout state of one function's variables: a home layout, or one variant per demanded layout.

A web whose values are cheap to recompute (index arithmetic) exists once per layout that its uses demand: the first
keeps the author's name, the others get a suffix. A web that holds loaded or reduced data lives in one home layout and
is converted where another one is needed: at the use, or once after the definition where the use is in a deeper loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from translator.layout.model import Layout
from translator.rewrite.webs import Web


@dataclass
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


@dataclass
class WebState:
    web: Web
    cheap: bool
    home: Layout | None = None
    variants: list[Layout] = field(default_factory=list)
    converted: list[Layout] = field(default_factory=list)
    split: SplitPointer | None = None

    def demand(self, layout: Layout) -> bool:
        """Record that a use needs `layout`; True when that is new."""
        if layout in self.variants:
            return False
        self.variants.append(layout)
        return True

    def demand_converted(self, layout: Layout) -> bool:
        if layout in self.converted:
            return False
        self.converted.append(layout)
        return True
