"""What gives the layouts of all translations in a region, and layouts everywhere in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gluonize.decide.layouts.complete import is_complete
from gluonize.decide.layouts.parametric import frame_of
from gluonize.general.box import Point, Region
from gluonize.general.launches.trials import WARPS, Key, Loose, Trials
from gluonize.general.layout_roles import without_twin
from gluonize.general.rules.layouts import GeneralLayout
from gluonize.general.rules.search import Before, Fitting, Sample, fitted_layouts, same_layout
from gluonize.trace.model.layouts import Layout, Mfma, Wmma

MOST_DOUBTS = 24  # translations for sizes at which formulas give no layout

Layouts = dict[str, GeneralLayout]


class SampledLayouts:
    """tiles: the names of the tile sizes; lanes: of a warp."""

    def __init__(self, trials: Trials, tiles: Sequence[str], lanes: int):
        self.trials, self.tiles, self.lanes = trials, tiles, lanes
        self.layouts: Layouts = {}  # those found last
        self.compared: set[Key] = set()  # what they were compared with
        self.complete: set[Key] = set()  # where they are known to give layouts
        self.unlike: set[Key] = set()  # translations whose layouts formulas need not give
        self.missing = ""  # the layout that nothing gave

    def forget(self) -> None:
        """Forget the layouts that were found."""
        self.layouts, self.compared, self.complete = {}, set(), set()

    def fitted(self, region: Region) -> Layouts | None:
        """What gives all layouts of translations in the region, and layouts everywhere in it; None where one is given by nothing.

        Where it would give none, the kernel is translated for these sizes, and the formulas are found anew.
        """
        self.missing = ""
        for _ in range(MOST_DOUBTS):
            layouts = self._fitted(region)
            doubt = None if layouts is None else next((p for p in region.points() if self._doubtful(layouts, p)), None)
            if doubt is None:
                return layouts
            if not self.trials.good(doubt):
                return None
        return None

    def _doubtful(self, layouts: Layouts, point: Point) -> bool:
        """Whether the formulas give no layout for some launch with these sizes, which the kernel was not translated for."""
        keys = [(i, point) for i in range(len(self.trials.given)) if (i, point) not in self.trials.found]
        keys = [key for key in keys if key not in self.complete]
        if not all(self._complete(layouts, key) for key in keys):
            return True
        self.complete.update(keys)
        return False

    def _complete(self, layouts: Layouts, key: Key) -> bool:
        """Whether each formula gives a layout there, of an instruction that the target has."""
        found = [layout.at(self.trials.sizes(key)) for layout in layouts.values()]
        if not all(layout is not None and is_complete(layout, self.lanes, key[1][-1]) for layout in found):
            return False
        return {shape for layout in found if (shape := _instruction(layout))} <= self._instructions()

    def _for_most(self, fitting: Fitting, names: Sequence[str], keys: Sequence[Key]) -> Layouts | None:
        """Rules that are right in most of the translations, where layouts need not be those of Triton's passes; the others are left out."""
        found = fitted_layouts(replace(fitting, most=True), names) if self.trials.loose is Loose.LOOPS else ()
        if isinstance(found, tuple):
            return None
        for key, sample in zip(keys, fitting.samples):
            if not all(same_layout(layout.at(sample.sizes), sample.layouts[name]) for name, layout in found.items()):
                self.unlike.add(key)
        return found

    def _leaves_out(self, names: Sequence[str], keys: Sequence[Key]) -> bool:
        """Whether translations are left out in which one of the layouts is of another form than in the launch, the one of which these are
        fewest, where layouts need not be those of Triton's passes: nothing is copied to LDS, so that any layout is right.
        """
        if self.trials.loose is not Loose.LOOPS:
            return False
        own = 0, self.trials.points[0]
        every = {key: dict(self.trials.found[key].kernel.laid_out.constants) for key in keys}  # type: ignore[union-attr]
        forms = {name: {key: frame_of(without_twin(layouts[name])) for key, layouts in every.items()} for name in names}
        others = [{key for key, form in found.items() if form != found[own]} for found in forms.values()]
        fewest = min(filter(None, others), key=len, default=set())
        self.unlike |= fewest
        return bool(fewest)

    def _instructions(self) -> set[tuple[int, ...]]:
        """The shapes of matrix instructions that translations have: a rule may give others, which the target lacks."""
        every = (emitted.kernel.laid_out.constants for emitted in self.trials.found.values() if emitted is not None)
        return {shape for constants in every for _, layout in constants if (shape := _instruction(layout))}

    def _fitted(self, region: Region) -> Layouts | None:
        inside = [
            (key, emitted) for key, emitted in self.trials.found.items() if emitted is not None and region.holds(key[1])
        ]
        inside = [(key, emitted) for key, emitted in inside if key not in self.unlike]
        samples = [
            Sample(self.trials.sizes(key), {name: without_twin(x) for name, x in emitted.kernel.laid_out.constants})
            for key, emitted in inside
        ]
        names = [name for name, _ in self.trials.own[0].kernel.laid_out.constants]
        new = [sample for (key, _), sample in zip(inside, samples) if key not in self.compared]
        unlike = [key for key in sorted(self.unlike) if region.holds(key[1])]
        fitting = Fitting(samples, self.tiles, WARPS, self.lanes, list(map(self.trials.sizes, unlike)))
        found = fitted_layouts(fitting, names, Before(self.layouts, new))
        if isinstance(found, tuple):
            self.missing = found[0]
            if self._leaves_out(found, [key for key, _ in inside]):
                return self._fitted(region)
            found = self._for_most(fitting, names, [key for key, _ in inside])
            if found is None:
                return None
        if not all(self._complete(found, key) for key in unlike):
            return None
        if found != self.layouts:
            self.forget()
        self.layouts = found
        self.compared.update(key for key, _ in inside)
        return found


def _instruction(layout: Layout | None) -> tuple[int, ...]:
    return layout.instr_shape if isinstance(layout, (Mfma, Wmma)) else ()


__all__ = ["Layouts", "SampledLayouts"]
