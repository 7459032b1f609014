"""One text for every tile size and number of warps near those of a kernel's launches: layouts become formulas.

The kernel is translated for the neighbours of its launches too. Where a neighbour has the same text but for layouts, and formulas or
rules give the layouts of all, the text with these is the kernel; the range in which that holds is extended as long as
translations that they were not made from agree with them. Where neighbours have another text, bounds of several sizes are found
that exclude them.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gluonize.decide.layouts.formulas import Product, fit
from gluonize.decide.layouts.size_range import Bound
from gluonize.facts.obligations import Obligation
from gluonize.general.bounds import bounds_between
from gluonize.general.box import (
    Box,
    Point,
    Region,
    corners,
    doubled,
    far_alone,
    halved,
    holds,
    largest_box,
    limits_of,
    smaller,
    some,
    within,
)
from gluonize.general.either_moves import with_either
from gluonize.general.launches.ring_depth import STAGES_TRIED
from gluonize.general.launches.trials import WARPS, Given, Key, Loose, State, Tools, Trials, joinable
from gluonize.general.launches.wanted import Rank, Sought, Wanted
from gluonize.general.layout_roles import ring_bytes, without_twin
from gluonize.general.rules.sampled import Layouts, SampledLayouts
from gluonize.general.rules.search import same_layout
from gluonize.read.spec.launch import LaunchSpec
from gluonize.write.state.emitted import EmittedKernel

DEPTH_DIFFERS = "its rings have other depths for other launches"
NO_FORMULA = "no formula gives its layouts for other sizes"
NEW_CORNERS, NEW_INSIDE = 3, 1  # what is tried of a range that is doubled, at its ends and anywhere in it
MOST_BOUNDINGS = 4  # how often bounds are found anew for a range that is doubled
OF_OTHER_TYPES = 2  # what is tried of another element type, anywhere in a range
EXTENSIONS = 3  # how often a range of `EXTENDED` sizes is doubled each way beyond the neighbours; one of fewer as many times in all
EXTENDED = 4  # tile sizes of a product, and its warps


@dataclass(frozen=True)
class GeneralLayouts:
    """emitted: a launch that is asked for, in the words that it shares with others. layouts: what gives them, by the name of the
    constant, those that others are made of first. rings: the bytes of each tile that is in LDS several times, where these give its depth.
    unlike: sizes for which Triton's passes choose layouts of another form.
    """

    emitted: EmittedKernel
    layouts: Layouts
    rings: tuple[Product, ...] = ()
    unlike: tuple[Point, ...] = ()


def general_layouts(
    given: Sequence[Given],
    tiles: Sequence[str],
    tools: Tools,
    beside: Sequence[Given] = (),
    sought: Sought = Sought(),
) -> tuple[Region, dict[str, GeneralLayouts]] | str:
    """(the sizes that it holds for, what gives the layouts of each launch by its id) of launches that share a text; or why there are none.

    tiles: the constexpr parameters that are tile sizes. tools: what traces and translates other launches. beside: launches with other
    element types or flags, which are among those of the answer where text and formulas do for them too.
    """
    if given[0].emitted.kernel.laid_out is None:
        return "its loops are split between warps"
    search = _Search(given, tiles, tools, sought.elsewhere)
    found = search.near(sought.tried(search.points, search.limits), sought.starts, far=not sought.brief)
    if isinstance(found, str):
        return found
    # Several sizes at once mostly break a bound of two of them.
    together = len(search.names) < EXTENDED
    found = search.settled([found] if sought.brief else search.extended(*found, together), together)
    if isinstance(found, str):
        return found
    region = found[0].trimmed()
    search.layouts.forget()
    layouts = search.layouts.fitted(region) or found[1]  # the most readable, now that all samples are known
    for other in beside:
        layouts = search.joined_by(other, region) or layouts
    rings = () if tools.depth is None else search.rings()
    if tools.depth is not None and not (rings and search.holds_deeper(region, layouts)):
        return DEPTH_DIFFERS
    ids = [g.spec.id for g in search.given]
    unlike = tuple(point for _, point in sorted(search.layouts.unlike) if region.holds(point))
    checked = [search.checked(i, region) for i in range(len(ids))]
    every = with_either(checked, search.trials, region)
    return region, {id: GeneralLayouts(emitted, layouts, rings, unlike) for id, emitted in zip(ids, every)}


class _Search:
    """Translations for other sizes, by the number of the launch. names: of the sizes, the number of warps last."""

    def __init__(
        self,
        given: Sequence[Given],
        tiles: Sequence[str],
        tools: Tools,
        elsewhere: tuple[Region, ...] = (),
    ):
        lanes = given[0].traced.target.warp_size
        self.elsewhere = elsewhere
        self.names = (*tiles, WARPS)
        self.trials = Trials(given, self.names, tools)
        self.given, self.points = self.trials.given, tuple(self.trials.points)
        self.limits = limits_of(len(tiles), lanes)
        self.first = self.trials.state
        self.bad: Counter[Point] = Counter()  # for how many kinds of translations: looked at first for the next kind
        self.layouts = SampledLayouts(self.trials, tiles, lanes)

    @property
    def found(self) -> dict[Key, EmittedKernel | None]:
        return self.trials.found

    def good(self, point: Point) -> bool:
        return self.trials.good(point)

    def checked(self, i: int, region: Region) -> EmittedKernel:
        """A launch that is asked for, with all that some launch in the region has checked before it."""
        own = self.trials.own[i]
        record = copy.copy(own.record)
        record.obligations = self._obligations(own, (i, self.trials.points[i]))
        for key, emitted in self._asking_more(region):
            if key[0] == i:
                record.obligations |= {o for o in self._obligations(emitted, key) if o.discharge == "launch"}
        return replace(own, record=record)

    def _asking_more(self, region: Region) -> list[tuple[Key, EmittedKernel]]:
        """The translations in the region that rest on what that of the launch itself does not."""
        inside = [(key, e) for key, e in self.found.items() if e is not None and region.holds(key[1])]
        return [(key, e) for key, e in inside if not e.record.obligations <= self.trials.own[key[0]].record.obligations]

    def _obligations(self, emitted: EmittedKernel, key: Key) -> set[Obligation]:
        """What a translation rests on; where the depth of its rings follows from `num_stages`, with the deepest ones."""
        depth = self.trials.tools.depth
        deepest = self.trials.staged(*key) if depth is not None and depth.ranges else None
        return set((deepest or emitted).record.obligations)

    def holds_deeper(self, region: Region, layouts: Layouts) -> bool:
        """Whether translations for other `num_stages` have the same text and the same layouts, as far as some are tried."""
        if not self.trials.tools.depth.ranges:  # type: ignore[union-attr]
            return True
        if any(self.trials.staged(*key) is None for key, _ in self._asking_more(region)):
            return False
        ends = some([point for point in corners(region.box) if region.holds(point)], NEW_CORNERS)
        tried = [(point, STAGES_TRIED) for point in self.points]
        tried += [(point, STAGES_TRIED[-1:]) for point in (*ends, *some(region.points(), NEW_INSIDE))]
        keys = [((i, point), n) for i in range(len(self.points)) for point, stages in tried for n in stages]
        for key, stages in keys:
            emitted = self.trials.staged(*key, stages)
            if emitted is None:
                return False
            sample = {name: without_twin(layout) for name, layout in emitted.kernel.laid_out.constants}  # type: ignore[union-attr]
            if not all(same_layout(found.at(self.trials.sizes(key)), sample[name]) for name, found in layouts.items()):
                return False
        return True

    def near(self, around: Sequence[Point], starts: Sequence[Loose | None], far: bool) -> tuple[Region, Layouts] | str:
        """The largest region that has the launches and points `around` them whose layouts are given, of translations that do without
        ever more of what sizes decide, as `starts` say.

        Those count that have most of what is around in their region, and then most that is good up to a factor of four away in one
        size, if `far` sizes are looked at.
        """
        tried = list(dict.fromkeys([*self.points, *around]))
        distant = (p for point in self.points for p in far_alone(point, self.limits)) if far else ()
        every = list(dict.fromkeys([*tried, *distant]))
        taken = [p for p in every if all(self.trials.trace(i, p) is not None for i in range(len(self.given)))]
        wanted = Wanted(tried, taken, [(i, point) for i in range(len(self.given)) for point in every])
        best: tuple[Rank, State, tuple[Region, Layouts]] | None = None
        missing = ""
        # Where something is bad without doing without anything, what does without most says what can be had.
        for number in (0, len(starts) - 1, *range(len(starts) - 1)):
            least = best[0] if best else wanted.perfect if number == 0 and len(starts) > 1 else None
            found = self._ranked(starts[number], number, wanted, least)
            missing = missing or self.layouts.missing
            if found is not None and (best is None or found[0] > best[0]):
                best = found[0], self.trials.state, found[1]
            if best is not None and best[0] >= wanted.perfect or len(starts) == 1:
                break
        if best is None:
            return NO_FORMULA if not missing else f"{NO_FORMULA} ({missing})"
        self.trials.state = best[1]
        self.layouts.forget()
        return best[2]

    def _ranked(
        self, start: Loose | None, number: int, wanted: Wanted, least: Rank | None
    ) -> tuple[Rank, tuple[Region, Layouts]] | None:
        """(the rank of a region, itself and its layouts) of translations of one kind, the one with this number; None where there is
        none of the rank `least`, or of any, or as soon as there can be none."""
        self.trials.state = self.first if start is None else self.trials.state
        if start is not None:
            self.trials.start(wanted.keys, start)
        self.layouts.forget()
        around, good = len(wanted.around), len(wanted.taken)
        for point in sorted(wanted.taken, key=lambda point: -self.bad[point]):
            if not self.good(point):
                self.bad[point] += 1
                around, good = around - (point in wanted.around), good - 1
            if least is not None and (around, good, -number) < least:
                return None
        found = self._near(wanted.tried)
        return None if found is None else ((sum(map(found[0].holds, wanted.around)), good, -number), found)

    def _near(self, tried: Sequence[Point]) -> tuple[Region, Layouts] | None:
        bounds, box = self._bounded(tried)
        while box is not None:
            if (layouts := self.layouts.fitted(region := Region(box, bounds, self.elsewhere))) is not None:
                return region, layouts
            box = smaller(box, self.points)
        return None

    def _bounded(self, tried: Sequence[Point]) -> tuple[tuple[Bound, ...], Box | None]:
        """(bounds, the largest box in which all that was tried and keeps to them is good); of a text for the rest, none where a box
        without bounds has as much."""
        good = set(filter(self.good, tried))
        found = []
        for bounds in ((), self._bounds(tried)) if self.trials.loose is Loose.LOOPS else (self._bounds(tried),):
            inside = [point for point in tried if within(bounds, self.names, point)]
            box = largest_box(self.names, self.points, inside, good & set(inside))
            found.append((0 if box is None else sum(holds(box, point) for point in inside), bounds, box))
        _, bounds, box = max(found, key=lambda one: one[0])
        return bounds, box

    def _bounds(self, tried: Sequence[Point]) -> tuple[Bound, ...]:
        good = {point for point in tried if self.good(point)}
        bad = [point for point in tried if point not in good]
        room = self.given[0].traced.target.lds_bytes
        return bounds_between(self.names, good, bad, self.points, self.rings(), room) if bad else ()

    def rings(self) -> tuple[Product, ...]:
        """The bytes of each tile that is in LDS several times; () where no product gives them."""
        known = [
            (self.trials.sizes(key), ring_bytes(t))
            for key, t in self.trials.traced.items()
            if t and self.found.get(key)
        ]
        if len({len(rings) for _, rings in known}) != 1:
            return ()
        formulas = [fit([(sizes, rings[i]) for sizes, rings in known]) for i in range(len(known[0][1]))]
        return tuple(f.value for f in formulas if f) if all(f and not f.is_bounded for f in formulas) else ()

    def joined_by(self, other: Given, region: Region) -> Layouts | None:
        """What gives all layouts of a launch with other element types or flags too, whose text was compared at some sizes of the region;
        None where nothing does, its text is another one, or more would be asked of all launches."""
        number = self.trials.add(other)
        first, own = self.trials.own[0], self.trials.own[number]
        same = joinable(first, own) and _asks_no_more(own, first, self.given[0].spec)
        ends = some([point for point in corners(region.box) if region.holds(point)], NEW_CORNERS)
        tried = dict.fromkeys([*ends, *some(region.points(), OF_OTHER_TYPES)])
        if same and all([self.trials.at(number, point) is not None for point in tried]) and self._deep_too(number):
            self.layouts.forget()
            if (found := self.layouts.fitted(region)) is not None:
                return found
        self.trials.drop()
        self.layouts.forget()
        return None

    def _deep_too(self, number: int) -> bool:
        """Whether the text of a launch is the same with the deepest rings, where their depth follows from `num_stages`."""
        depth = self.trials.tools.depth
        deepens = depth is not None and bool(depth.ranges)
        return not deepens or self.trials.staged(number, self.trials.points[number]) is not None

    def extended(self, region: Region, layouts: Layouts, together: bool) -> list[tuple[Region, Layouts]]:
        """The region, and ever wider ones: doubled each way while formulas give what is translated for some of the new sizes.

        All sizes grow by turns, at once if `together` where that is possible: one at its far end may have layouts that let no other size grow. Fewer sizes take more turns, for as many translations.
        """
        out = [(region, layouts)]
        ways = [(i, grow) for i in range(len(region.box)) for grow in (doubled, halved)]
        for _ in range(max(EXTENSIONS, EXTENSIONS * EXTENDED // len(region.box))):
            grown = self._grown(out[-1][0].box, ways) if together else None
            if grown is not None and (found := self._wider(out[-1][0], grown)) is not None:
                out.append(found)
                continue
            together = False
            for way in list(ways):
                grown = self._grown(out[-1][0].box, [way])
                found = None if grown is None else self._wider(out[-1][0], grown)
                if found is None:
                    ways.remove(way)
                else:
                    out.append(found)
        return out

    def _grown(self, box: Box, ways: Sequence[tuple[int, Callable]]) -> Box | None:
        """A box that is greater in some ways, where limits let it; None where they let it in none."""
        sizes = list(box)
        for i, grow in ways:
            sizes[i] = grow(sizes[i], self.limits[i]) or sizes[i]
        return tuple(sizes) if tuple(sizes) != box else None

    def _wider(self, region: Region, box: Box) -> tuple[Region, Layouts] | None:
        """The region with a wider box; None where nothing good is added, or nothing gives the layouts there."""
        tried = Region(box, region.bounds)
        new = some([point for point in corners(box) if tried.holds(point) and not region.holds(point)], NEW_CORNERS)
        for _ in range(MOST_BOUNDINGS):
            new += some([point for point in tried.points() if not region.holds(point)], NEW_INSIDE)
            if all([self.good(point) for point in new]) and self._adds(region, tried):
                if (layouts := self.layouts.fitted(tried)) is not None:
                    return tried, layouts
                if self.layouts.missing:  # else formulas asked for sizes that have another text
                    return None
            before, tried = tried, Region(box, self._bounds([p for p in self._known() if holds(box, p)]))
            if tried == before:
                return None
            new = []
        return None

    def _adds(self, region: Region, wider: Region) -> bool:
        """Whether a region has good points that another has not, and no others that were tried."""
        added = [p for p in self._known() if wider.holds(p) and not region.holds(p)]
        return bool(added) and all(map(self.good, added))

    def _bad(self) -> set[Point]:
        """The points for which some launch has another text."""
        return {point for (_, point), emitted in self.found.items() if emitted is None}

    def _known(self) -> list[Point]:
        """The points that were tried."""
        return list(dict.fromkeys(point for _, point in self.found))

    def settled(self, regions: list[tuple[Region, Layouts]], together: bool) -> tuple[Region, Layouts] | str:
        """The widest of regions, each wider than the last, or one that is smaller still, throughout which translations agree with its
        formulas too. together: whether sizes have grown at once, so that what grew apart from each other may be wider.
        """
        bad = self._bad()
        (region, layouts), left = regions[-1], regions[:-1]
        tried = {region}
        self.layouts.missing = ""
        # What is known already is looked at before more is translated.
        while (
            self.layouts.fitted(region) is None
            or not self._good_inside(region)
            or (layouts := self.layouts.fitted(region)) is None
        ):
            other = replace(region, bounds=self._bounds([p for p in self._known() if holds(region.box, p)]))
            if other not in tried and self.layouts.missing == "":
                tried.add(region := other)
            elif left and self._bad() > bad:  # others may grow where this one cannot
                return self.settled(self.extended(*regions[0], together), together)
            elif left:
                region = left.pop()[0]
            elif (box := smaller(region.box, self.points)) is not None:
                region = replace(region, box=box)
            else:
                return NO_FORMULA
            self.layouts.missing = ""
        return region, layouts

    def _good_inside(self, region: Region) -> bool:
        """Whether translations agree where they were tried, and all over the region."""
        known = [point for point in self._known() if region.holds(point)]
        return all(map(self.good, known)) and all(map(self.good, region.sample(len(known))))


def alike(one: Given, other: Given, tiles: Sequence[str]) -> bool:
    """Whether a launch has the sizes of another one, and asks for no more: it is compared with the text of that when its range is known."""
    same = [one.spec.constexprs[name] == other.spec.constexprs[name] for name in tiles]
    return all(same) and one.num_warps == other.num_warps and _asks_no_more(one.emitted, other.emitted, other.spec)


def _asks_no_more(other: EmittedKernel, than: EmittedKernel, spec: LaunchSpec) -> bool:
    """Whether no more is checked before a launch of a translation than of another one, that of `spec`, but for arguments that are
    None in that."""
    known = {(o.kind, o.condition, o.arguments) for o in than.record.obligations}
    there = {name for name, kind in spec.signature.items() if kind != "constexpr"}
    asked = [o for o in other.record.obligations if o.discharge == "launch" and there.issuperset(o.arguments)]
    return all((o.kind, o.condition, o.arguments) in known for o in asked)


__all__ = ["DEPTH_DIFFERS", "GeneralLayouts", "NO_FORMULA", "alike", "general_layouts"]
