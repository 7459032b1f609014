"""The demands from which layouts of variables follow: each use wants its variable in one. A function is walked until no use adds another.

The first layout that is wanted, by the place of its use, is the one that keeps the author's name. A use that asks again changes nothing;
a round in which nothing is new has found the layouts. What asks anew in every round contradicts itself: two uses are named.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gluonize.decide.layouts.constructors import constructor
from gluonize.trace.model.layouts import Layout

Place = tuple[int, int]  # line and column of a use, in the function


@dataclass
class Wanted:
    """The layouts in which the uses of one variable want it. variants: it is computed in each of them. converted: those that it is
    moved to behind its definition. first_use: of each the earliest place."""

    variants: list[Layout] = field(default_factory=list)
    converted: list[Layout] = field(default_factory=list)
    first_use: dict[Layout, Place] = field(default_factory=dict)

    def demand(self, layout: Layout, place: Place) -> bool:
        """Record that the use at `place` needs `layout`; True when that is new."""
        earliest = self.first_use.get(layout)
        if earliest is None or place < earliest:
            self.first_use[layout] = place
        if layout in self.variants:
            return self.first_use[layout] != earliest and len(self.variants) > 1
        self.variants.append(layout)
        return True

    def demand_converted(self, layout: Layout, place: Place) -> bool:
        """Record that the use at `place` reads the variable moved to `layout`; True when that layout is new."""
        self.first_use[layout] = min(place, self.first_use.get(layout, place))
        if layout in self.converted:
            return False
        self.converted.append(layout)
        return True

    def settle(self) -> None:
        """Order the variants by first use: the first one keeps the author's name."""
        self.variants.sort(key=self.first_use.__getitem__)


@dataclass(frozen=True)
class Demand:
    """One use of a variable that wants what was not known."""

    variable: str
    wanted: Wanted
    layout: Layout
    place: Place


@dataclass
class Round:
    """What going through a function once has added. again: something else than a use asks for one more."""

    added: list[Demand] = field(default_factory=list)
    again: bool = False

    @property
    def settled(self) -> bool:
        """Whether everything was known before."""
        return not self.added and not self.again

    def demand(self, variable: str, wanted: Wanted, layout: Layout, place: Place) -> None:
        """The use of `variable` at `place` needs it in `layout`."""
        if wanted.demand(layout, place):
            self.added.append(Demand(variable, wanted, layout, place))

    def demand_converted(self, variable: str, wanted: Wanted, layout: Layout, place: Place) -> None:
        """The use of `variable` at `place` needs it moved to `layout`."""
        if wanted.demand_converted(layout, place):
            self.added.append(Demand(variable, wanted, layout, place))

    def unforeseen(self, first_line: int = 1) -> str:
        """The first use, where layouts were settled, that wants another one all the same; "" for none. first_line: as below."""
        for found in self.added:
            place = f"line {found.place[0] + first_line - 1}"
            return f"`{found.variable}`: {place} wants it in {constructor(found.layout)}, which was not found before: a bug in gluonize"
        return "something else than a use asks for another layout: a bug in gluonize" if self.again else ""

    def contradiction(self, first_line: int = 1) -> str:
        """Two uses that want one variable in different layouts, in a round that should have added nothing; "" for none.

        first_line: of the function in its file.
        """
        for found in self.added:
            others = [layout for layout in found.wanted.first_use if layout != found.layout]
            if others:
                other = min(others, key=found.wanted.first_use.__getitem__)
                lines = [place[0] + first_line - 1 for place in (found.place, found.wanted.first_use[other])]
                uses = zip(lines, (found.layout, other))
                wants = [f"line {line} wants it in {constructor(layout)}" for line, layout in uses]
                return f"`{found.variable}`: {', '.join(wants)}, and every round asks for another one"
        return ""
