"""Layouts whose entries follow from the sizes of a launch, found from the layouts of several launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gluonize.decide.layouts.base_runs import BasesFormula, fit_runs
from gluonize.decide.layouts.formulas import Formula, Sizes, fit
from gluonize.trace.model.layouts import Bases, Blocked, DotOperand, Layout, Linear, Mfma, Wmma
from gluonize.trace.model.shared_layouts import Padded, SharedLinear, Swizzled

# The fields that follow from sizes: numbers, or lists of them. All others have to be the same in every launch.
_FIELDS: dict[type[Layout], tuple[str, ...]] = {
    Blocked: ("size_per_thread", "threads_per_warp", "warps_per_cta"),
    Linear: ("shape",),
    Mfma: ("instr_shape", "warps_per_cta", "tiles_per_warp"),
    Wmma: ("instr_shape",),
    DotOperand: ("k_width",),
    Swizzled: ("vec", "per_phase", "max_phase"),
    Padded: ("shape",),
}
# Those that are lists of bases, and those that are lists of pairs of numbers.
_BASES: dict[type[Layout], tuple[str, ...]] = {
    Linear: ("register", "lane", "warp"),
    Wmma: ("warp_bases", "reg_bases"),
    Padded: ("offsets",),
    SharedLinear: ("offsets",),
}
_PAIRS: dict[type[Layout], tuple[str, ...]] = {Padded: ("pairs",)}


class Entry(int):
    """An entry of the layout of one launch that is written as the formula for every launch."""

    text: str

    def __new__(cls, value: int, text: str) -> Entry:
        entry = super().__new__(cls, value)
        entry.text = text
        return entry

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__


class EntryBases(tuple):
    """The bases of one launch that are written as the formula for every launch."""

    text: str

    def __new__(cls, bases: Bases, text: str) -> EntryBases:
        entry = super().__new__(cls, bases)
        entry.text = text
        return entry

    def __repr__(self) -> str:
        return self.text


AnyFormula = Formula | BasesFormula


@dataclass(frozen=True)
class ParametricLayout:
    """formulas: of the entries of `layout` that follow from sizes, field by field, those of its parent first."""

    layout: Layout
    formulas: tuple[AnyFormula, ...]

    @property
    def functions(self) -> frozenset[str]:
        """The functions that entries call."""
        return frozenset().union(*(formula.functions for formula in self.formulas))

    @property
    def sizes(self) -> frozenset[str]:
        return frozenset().union(*(formula.sizes for formula in self.formulas))

    @property
    def rules(self) -> tuple:
        """None: it is spelled by its constructor."""
        return ()

    def at(self, sizes: Sizes) -> Layout | None:
        """The layout of a launch with these sizes; None where an entry would be less than 1."""
        entries = [formula.at(sizes) for formula in self.formulas]
        return None if 0 in entries else _with_entries(self.layout, entries)

    def written(self, spelled: Callable[[str], str]) -> Layout:
        """The layout, whose entries are spelled as formulas. spelled: how a size is written."""
        texts = [_written(e, f, spelled) for e, f in zip(entries_of(self.layout), self.formulas)]
        return _with_entries(self.layout, texts)


def _written(entry: int | Bases, formula: AnyFormula, spelled: Callable[[str], str]) -> int | Bases:
    if not formula.sizes:
        return entry
    return (EntryBases if isinstance(formula, BasesFormula) else Entry)(entry, formula.text(spelled))


def parametric(samples: Sequence[tuple[Sizes, Layout]]) -> ParametricLayout | None:
    """The layout that every sample is an instance of; None where none is found. The first sample is what it is written from."""
    first = samples[0][1]
    if len({frame_of(layout) for _, layout in samples}) != 1:
        return None
    rows = [entries_of(layout) for _, layout in samples]
    formulas: list[AnyFormula] = []
    for i in range(len(rows[0])):
        if (formula := _fit([(sizes, row[i]) for (sizes, _), row in zip(samples, rows)])) is None:
            return None
        formulas.append(formula)
    return ParametricLayout(first, tuple(formulas))


def _fit(samples: Sequence[tuple[Sizes, int | Bases]]) -> AnyFormula | None:
    return fit_runs(samples) if isinstance(samples[0][1], tuple) else fit(samples)


def entries_of(layout: Layout) -> list[int | Bases]:
    """What in a layout may follow from sizes: numbers, and lists of bases."""
    out = entries_of(layout.parent) if isinstance(layout, DotOperand) else []
    for name in _FIELDS.get(type(layout), ()):
        value = getattr(layout, name)
        out += value if isinstance(value, tuple) else [value]
    for name in _PAIRS.get(type(layout), ()):
        out += [number for pair in getattr(layout, name) for number in pair]
    return out + [getattr(layout, name) for name in _BASES.get(type(layout), ())]


def _with_entries(layout: Layout, entries: Sequence[int | Bases]) -> Layout:
    left = list(entries)

    def rebuilt(part: Layout) -> Layout:
        changed: dict = {"parent": rebuilt(part.parent)} if isinstance(part, DotOperand) else {}
        for name in _FIELDS.get(type(part), ()):
            value = getattr(part, name)
            changed[name] = tuple(left.pop(0) for _ in value) if isinstance(value, tuple) else left.pop(0)
        for name in _PAIRS.get(type(part), ()):
            changed[name] = tuple((left.pop(0), left.pop(0)) for _ in getattr(part, name))
        for name in _BASES.get(type(part), ()):
            changed[name] = left.pop(0)
        return replace(part, **changed) if changed else part

    return rebuilt(layout)


def frame_of(layout: Layout) -> tuple:
    """What has to be the same in every launch: the layout with its entries blotted out, how many these are, and whether there are
    bases where a layout may do without."""
    entries = entries_of(layout)
    blank = [() if isinstance(e, tuple) else 0 for e in entries]
    return _with_entries(layout, blank), len(entries), isinstance(layout, Padded) and bool(layout.offsets)


__all__ = ["Entry", "EntryBases", "ParametricLayout", "entries_of", "frame_of", "parametric"]
