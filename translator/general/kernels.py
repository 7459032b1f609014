"""One text for every tile size and number of warps near those of a kernel's launches: layouts become formulas.

The kernel is translated for the neighbours of its launches too. Where a neighbour has the same text but for layouts, and one formula
per entry gives the layouts of all, the text with the formulas is the kernel; the range in which that holds is extended as long as
translations that the formulas were not made from agree with them.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

from translator.general.box import Box, Point, corners, holds, largest_box, neighbours, points, sample
from translator.general.trials import WARPS, Given, Key, Tools, Trials
from translator.layout.complete import is_complete
from translator.layout.parametric import ParametricLayout, parametric
from translator.layout.size_range import SizeRange
from translator.rewrite.emitted import EmittedKernel

MOST_LANES = 1024  # of a workgroup
LARGEST_TILE = 65536  # elements along one dimension
NO_FORMULA = "no formula gives its layouts for other sizes"
MOST_DOUBTS = 24  # translations for sizes at which formulas give no layout
EXTENSIONS = 3  # how often a range is doubled each way beyond the neighbours


Layouts = dict[str, ParametricLayout]


@dataclass(frozen=True)
class GeneralLayouts:
    """emitted: a launch that is asked for, in the words that it shares with others. layouts: formulas, by the name of the constant."""

    emitted: EmittedKernel
    layouts: Layouts


def general_layouts(
    given: Sequence[Given], tiles: Sequence[str], lanes: int, tools: Tools
) -> tuple[Box, list[GeneralLayouts]] | str:
    """(the sizes that it holds for, formulas for the layouts of each launch) of launches that share a text; or why there are none.

    tiles: the constexpr parameters that are tile sizes. lanes: of a warp. tools: what traces and translates other launches.
    """
    if given[0].emitted.kernel.laid_out is None:
        return "its loops are split between warps"
    search = _Search(given, tiles, lanes, tools)
    found = search.near()
    if isinstance(found, str) or isinstance(found := search.settled(*search.extended(*found)), str):
        return found
    box, layouts = found
    return box, [GeneralLayouts(search.checked(i, box), layouts) for i in range(len(given))]


class _Search:
    """Translations for other sizes, by the number of the launch. names: of the sizes, the number of warps last."""

    def __init__(self, given: Sequence[Given], tiles: Sequence[str], lanes: int, tools: Tools):
        self.given, self.lanes = given, lanes
        self.names = (*tiles, WARPS)
        self.trials = Trials(given, self.names, tools)
        self.points = self.trials.points
        self.limits = [(2, LARGEST_TILE)] * len(tiles) + [(1, MOST_LANES // lanes)]

    @property
    def found(self) -> dict[Key, EmittedKernel | None]:
        return self.trials.found

    def good(self, point: Point) -> bool:
        return self.trials.good(point)

    def checked(self, i: int, box: Box) -> EmittedKernel:
        """A launch that is asked for, with all that some launch in the box has checked before it."""
        own = self.trials.own[i]
        record = copy.copy(own.record)
        record.obligations = set(record.obligations)
        for (number, point), emitted in self.found.items():
            if number == i and emitted is not None and holds(box, point):
                record.obligations |= {o for o in emitted.record.obligations if o.discharge == "launch"}
        return replace(own, record=record)

    def _told_apart(self, tried: Sequence[Point]) -> None:
        """Tell apart what has different layouts nearby, if more of what was tried is then good."""
        before = {point for point in tried if self.good(point)}
        if len(before) < len(tried):
            known = self.trials.state
            self.trials.start([(i, point) for i in range(len(self.given)) for point in tried])
            if sum(map(self.good, tried)) <= len(before):
                self.trials.state = known

    def near(self) -> tuple[Box, Layouts] | str:
        """The largest ranges around the launches whose layouts formulas give."""
        tried = list(dict.fromkeys(p for point in self.points for p in neighbours(point, self.limits)))
        self._told_apart(tried)
        good = {point for point in tried if self.good(point)}
        box = largest_box(self.names, self.points, tried, good)
        while box is not None:
            if (layouts := self.fitted(box)) is not None:
                return box, layouts
            box = self._smaller(box)
        return NO_FORMULA

    def fitted(self, box: Box) -> Layouts | None:
        """Formulas for all layouts, from translations in the box, that give layouts everywhere in it; None where one has none.

        Where they would give none, the kernel is translated for these sizes, and the formulas are found anew.
        """
        for _ in range(MOST_DOUBTS):
            layouts = self._fitted(box)
            doubt = None if layouts is None else next((p for p in points(box) if self._doubtful(layouts, p)), None)
            if doubt is None:
                return layouts
            if not self.good(doubt):
                return None
        return None

    def _doubtful(self, layouts: Layouts, point: Point) -> bool:
        """Whether the formulas give no layout for some launch with these sizes, which the kernel was not translated for."""
        keys = [(i, point) for i in range(len(self.given)) if (i, point) not in self.found]
        found = [layout.at(self._sizes(key)) for key in keys for layout in layouts.values()]
        return not all(is_complete(layout, self.lanes, point[-1]) for layout in found)

    def _fitted(self, box: Box) -> Layouts | None:
        inside = [key for key, emitted in self.found.items() if emitted is not None and holds(box, key[1])]
        out: Layouts = {}
        for number, (name, _) in enumerate(self.trials.own[0].kernel.laid_out.constants):
            samples = [(self._sizes(key), self.found[key].kernel.laid_out.constants[number][1]) for key in inside]
            if (layout := parametric(samples)) is None:
                return None
            out[name] = layout
        return out

    def extended(self, box: Box, layouts: Layouts) -> tuple[Box, Layouts]:
        """The box, doubled each way while all translations at its new corners are given by formulas."""
        for i in range(len(box)):
            for grow in (_up, _down):
                for _ in range(EXTENSIONS):
                    wider = grow(box[i], self.limits[i])
                    if wider is None:
                        break
                    tried = (*box[:i], wider, *box[i + 1 :])
                    if not all(map(self.good, corners(tried))) or (more := self.fitted(tried)) is None:
                        break
                    box, layouts = tried, more
        return box, layouts

    def settled(self, box: Box, layouts: Layouts) -> tuple[Box, Layouts] | str:
        """The box, made smaller until translations for sizes throughout it agree with its formulas too."""
        while not self._good_inside(box) or (layouts := self.fitted(box)) is None:
            if (box := self._smaller(box)) is None:
                return NO_FORMULA
        return box, layouts

    def _good_inside(self, box: Box) -> bool:
        """Whether translations agree where they were tried, and all over the box."""
        refused = any(emitted is None and holds(box, point) for (_, point), emitted in self.found.items())
        return not refused and all(map(self.good, sample(box)))

    def _sizes(self, key: tuple[int, Point]) -> dict[str, int]:
        return dict(zip(self.names, key[1])) | dict(self.given[key[0]].widths)

    def _smaller(self, box: Box) -> Box | None:
        """The box with fewer values of one size that has others than the launches' own."""
        for i in reversed(range(len(box))):
            size, own = box[i], [point[i] for point in self.points]
            if size.most > max(own):
                return (*box[:i], replace(size, most=size.most // 2), *box[i + 1 :])
            if size.least < min(own):
                return (*box[:i], replace(size, least=size.least * 2), *box[i + 1 :])
        return None


def _up(size: SizeRange, limits: tuple[int, int]) -> SizeRange | None:
    return replace(size, most=size.most * 2) if size.most * 2 <= limits[1] else None


def _down(size: SizeRange, limits: tuple[int, int]) -> SizeRange | None:
    return replace(size, least=size.least // 2) if size.least // 2 >= limits[0] else None


__all__ = ["GeneralLayouts", "NO_FORMULA", "general_layouts"]
