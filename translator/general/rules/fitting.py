"""Layouts of several launches, for each of which is sought what gives it in all of them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gluonize.decide.layouts.complete import is_complete
from gluonize.decide.layouts.formulas import Formula, Product, Sizes, fit
from gluonize.decide.layouts.gluon_values import same_places
from gluonize.general.rules.layouts import BITS, GeneralLayout, Numbers
from gluonize.trace.model.layouts import Layout, Linear
from gluonize.trace.model.shared_layouts import Padded, SharedLinear

Found = dict[str, GeneralLayout]


@dataclass(frozen=True)
class Sample:
    """The layouts of one launch by the names of constants."""

    sizes: Sizes
    layouts: Mapping[str, Layout]


@dataclass(frozen=True)
class Fitting:
    """tiles: the names of tile sizes; warps: that of their number; lanes: of a warp. beside: sizes for which layouts have to be given too,
    whichever. most: whether a rule will do that is right in the first sample and in most others."""

    samples: Sequence[Sample]
    tiles: Sequence[str]
    warps: str
    lanes: int
    beside: Sequence[Sizes] = ()
    most: bool = False

    def of(self, name: str) -> list[Layout]:
        return [sample.layouts[name] for sample in self.samples]

    def gives(self, layout: GeneralLayout, name: str, samples: Sequence[Sample] | None = None) -> bool:
        """Whether a layout is right in every sample, or in some."""
        some = self.samples if samples is None else samples
        return all(same_layout(layout.at(sample.sizes), sample.layouts[name]) for sample in some)

    def stands_at(self, layout: GeneralLayout) -> Callable[[Sizes], bool]:
        """Whether a layout is one for a launch with some sizes."""

        def stands(sizes: Sizes) -> bool:
            found = layout.at(sizes)
            return found is not None and is_complete(found, self.lanes, sizes[self.warps])

        return stands

    def fit(self, values: Sequence[int]) -> Formula | None:
        return fit([(sample.sizes, value) for sample, value in zip(self.samples, values)])

    def shape(self, name: str) -> Numbers | None:
        """The shape of a tile, of those samples whose layout says it."""
        known = [(s.sizes, shape) for s in self.samples if (shape := shape_of(s.layouts[name]))]
        if not known or len({len(shape) for _, shape in known}) > 1:
            return None
        rank = len(known[0][1])
        formulas = [fit([(sizes, shape[d]) for sizes, shape in known]) for d in range(rank)]
        return None if None in formulas else Numbers(tuple(formulas))  # type: ignore[arg-type]

    def pointers(self, name: str) -> list[str]:
        """The names of the bits that pointers point to, that of the pointer most like `name` first."""
        bits = [size for size in self.samples[0].sizes if size.endswith(BITS)]
        return sorted(bits, key=lambda size: -len(os.path.commonprefix([size.lower(), name.lower()])))

    def shapes(self, rank: int) -> list[tuple[str, ...]]:
        """Tile sizes that a tile may have, those of different ones first: these are seldom the same by chance."""
        return sorted(itertools.product(self.tiles, repeat=rank), key=lambda sizes: -len(set(sizes)))

    @property
    def num_warps(self) -> Numbers:
        return number(self.warps)


def number(size: str) -> Numbers:
    """A size itself."""
    return Numbers((Formula(Product(0, ((size, 1),))),), False)


def sized(shape: Sequence[str]) -> Numbers:
    """The shape of a tile with these sizes."""
    return Numbers(tuple(Formula(Product(0, ((size, 1),))) for size in shape))


def shape_of(layout: Layout) -> tuple[int, ...]:
    """The shape of a tile, of a layout that says it; else ()."""
    if isinstance(layout, SharedLinear):
        steps = zip(*layout.offsets)
        return tuple(1 << max(step).bit_length() for step in steps)
    return layout.shape if isinstance(layout, (Linear, Padded)) else ()


def same_layout(found: Layout | None, wanted: Layout) -> bool:
    """Whether a layout is the one that is wanted, perhaps by another class."""
    if found is None or found == wanted:
        return found is not None
    return same_places(found, wanted)


__all__ = ["Fitting", "Found", "Sample", "number", "same_layout", "shape_of", "sized"]
