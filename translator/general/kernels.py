"""One text for every tile size and number of warps near those of a kernel's launches: layouts become formulas.

The kernel is translated for the neighbours of its launches too. Where a neighbour has the same text but for layouts, and one formula
per entry gives the layouts of all, the text with the formulas is the kernel; the range in which that holds is extended as long as
translations that the formulas were not made from agree with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from translator.general.box import Box, Point, corners, holds, largest_box, neighbours, points, sample
from translator.layout.complete import is_complete
from translator.layout.parametric import ParametricLayout, parametric
from translator.layout.size_range import SizeRange
from translator.rewrite.emitted import EmittedKernel
from translator.rewrite.merge import merge_plain
from translator.source.launch_spec import LaunchSpec

WARPS = "num_warps"
MOST_LANES = 1024  # of a workgroup
LARGEST_TILE = 65536  # elements along one dimension
NO_FORMULA = "no formula gives its layouts for other sizes"
MOST_DOUBTS = 24  # translations for sizes at which formulas give no layout
EXTENSIONS = 3  # how often a range is doubled each way beyond the neighbours


@dataclass(frozen=True)
class Given:
    """A launch that is asked for, translated. widths: bits of the elements of pointers, by argument."""

    spec: LaunchSpec
    emitted: EmittedKernel
    num_warps: int
    widths: tuple[tuple[str, int], ...] = ()


Trial = Callable[[LaunchSpec], EmittedKernel | None]
Layouts = dict[str, ParametricLayout]


def general_layouts(
    given: Sequence[Given], tiles: Sequence[str], lanes: int, trial: Trial
) -> tuple[Box, Layouts] | str:
    """(the sizes that it holds for, formulas for the layouts) of launches that share a text; or why there are none.

    tiles: the constexpr parameters that are tile sizes. lanes: of a warp. trial: translates a launch; None where it is refused.
    """
    if given[0].emitted.kernel.laid_out is None:
        return "its loops are split between warps"
    search = _Search(given, tiles, lanes, trial)
    found = search.near()
    return found if isinstance(found, str) else search.settled(*search.extended(*found))


def alike(one: EmittedKernel, other: EmittedKernel, joined: bool = False) -> bool:
    """Whether two translations differ in nothing but what their layouts are; joined: and in what one text can say for both."""
    mine, theirs = one.kernel.laid_out, other.kernel.laid_out
    if mine is None or theirs is None or mine.added != theirs.added:
        return False
    if mine.function.text != theirs.function.text and not (
        joined and merge_plain(mine.function, theirs.function) is not None
    ):
        return False
    if [name for name, _ in mine.constants] != [name for name, _ in theirs.constants]:
        return False
    helpers = [[(h.name, h.text) for h in emitted.helpers] for emitted in (one, other)]
    checks = [
        {(o.kind, o.arguments, o.condition) for o in emitted.record.obligations if o.discharge == "launch"}
        for emitted in (one, other)
    ]
    return helpers[0] == helpers[1] and checks[0] == checks[1]


class _Search:
    """Translations for other sizes, each made once, by the number of the launch. names: of the sizes, the number of warps last."""

    def __init__(self, given: Sequence[Given], tiles: Sequence[str], lanes: int, trial: Trial):
        self.given, self.trial, self.lanes = given, trial, lanes
        self.names = (*tiles, WARPS)
        self.points: list[Point] = [(*(g.spec.constexprs[name] for name in tiles), g.num_warps) for g in given]
        self.limits = [(2, LARGEST_TILE)] * len(tiles) + [(1, MOST_LANES // lanes)]
        self.found: dict[tuple[int, Point], EmittedKernel | None] = {
            (i, point): g.emitted for i, (g, point) in enumerate(zip(given, self.points))
        }

    def at(self, i: int, point: Point) -> EmittedKernel | None:
        """The translation of a launch for other sizes; None where it has another text."""
        if (i, point) not in self.found:
            emitted = self.trial(with_sizes(self.given[i].spec, dict(zip(self.names, point))))
            same = emitted is not None and alike(self.given[i].emitted, emitted)
            self.found[i, point] = emitted if same else None
        return self.found[i, point]

    def good(self, point: Point) -> bool:
        return all(self.at(i, point) is not None for i in range(len(self.given)))

    def near(self) -> tuple[Box, Layouts] | str:
        """The largest ranges around the launches whose layouts formulas give."""
        tried = list(dict.fromkeys(p for point in self.points for p in neighbours(point, self.limits)))
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
        for number, (name, _) in enumerate(self.given[0].emitted.kernel.laid_out.constants):
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


def with_sizes(spec: LaunchSpec, sizes: dict[str, int]) -> LaunchSpec:
    """The launch with other tile sizes and another number of warps, and no values: those are of the given sizes."""
    tiles = {name: value for name, value in sizes.items() if name != WARPS}
    return replace(spec, constexprs=spec.constexprs | tiles, options=spec.options | {WARPS: sizes[WARPS]}, values={})


def _up(size: SizeRange, limits: tuple[int, int]) -> SizeRange | None:
    return replace(size, most=size.most * 2) if size.most * 2 <= limits[1] else None


def _down(size: SizeRange, limits: tuple[int, int]) -> SizeRange | None:
    return replace(size, least=size.least // 2) if size.least // 2 >= limits[0] else None


__all__ = ["Given", "NO_FORMULA", "WARPS", "alike", "general_layouts", "with_sizes"]
