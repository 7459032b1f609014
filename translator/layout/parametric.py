"""Layouts whose entries follow from the sizes of a launch, found from the layouts of several launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from translator.layout.formulas import Formula, Sizes, fit
from translator.ttgir.layouts import Blocked, DotOperand, Layout, Mfma
from translator.ttgir.shared_layouts import Swizzled

# The fields that follow from sizes: numbers, or lists of them. All others have to be the same in every launch.
_FIELDS: dict[type[Layout], tuple[str, ...]] = {
    Blocked: ("size_per_thread", "threads_per_warp", "warps_per_cta"),
    Mfma: ("instr_shape", "warps_per_cta", "tiles_per_warp"),
    DotOperand: ("k_width",),
    Swizzled: ("vec", "per_phase", "max_phase"),
}


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


@dataclass(frozen=True)
class ParametricLayout:
    """formulas: of the entries of `layout` that follow from sizes, field by field, those of its parent first."""

    layout: Layout
    formulas: tuple[Formula, ...]

    @property
    def functions(self) -> frozenset[str]:
        """The functions that keep entries within bounds."""
        return frozenset(formula.function for formula in self.formulas) - {""}

    @property
    def sizes(self) -> frozenset[str]:
        return frozenset().union(*(formula.sizes for formula in self.formulas))

    def at(self, sizes: Sizes) -> Layout:
        """The layout of a launch with these sizes."""
        return _with_entries(self.layout, [formula.at(sizes) for formula in self.formulas])

    def written(self, spelled: Callable[[str], str]) -> Layout:
        """The layout, whose entries are spelled as formulas. spelled: how a size is written."""
        own = entries_of(self.layout)
        texts = [Entry(e, f.text(spelled)) if f.sizes else e for e, f in zip(own, self.formulas)]
        return _with_entries(self.layout, texts)


def parametric(samples: Sequence[tuple[Sizes, Layout]]) -> ParametricLayout | None:
    """The layout that every sample is an instance of; None where none is found. The first sample is what it is written from."""
    first = samples[0][1]
    if len({_frame(layout) for _, layout in samples}) != 1:
        return None
    rows = [entries_of(layout) for _, layout in samples]
    formulas = [fit([(sizes, row[i]) for (sizes, _), row in zip(samples, rows)]) for i in range(len(rows[0]))]
    return None if None in formulas else ParametricLayout(first, tuple(formulas))


def entries_of(layout: Layout) -> list[int]:
    """The numbers in a layout that may follow from sizes."""
    out = entries_of(layout.parent) if isinstance(layout, DotOperand) else []
    for name in _FIELDS.get(type(layout), ()):
        value = getattr(layout, name)
        out += value if isinstance(value, tuple) else [value]
    return out


def _with_entries(layout: Layout, entries: Sequence[int]) -> Layout:
    left = list(entries)

    def rebuilt(part: Layout) -> Layout:
        changed: dict = {"parent": rebuilt(part.parent)} if isinstance(part, DotOperand) else {}
        for name in _FIELDS.get(type(part), ()):
            value = getattr(part, name)
            changed[name] = tuple(left.pop(0) for _ in value) if isinstance(value, tuple) else left.pop(0)
        return replace(part, **changed) if changed else part

    return rebuilt(layout)


def _frame(layout: Layout) -> tuple[Layout, int]:
    """What has to be the same in every launch: the layout with its entries blotted out, and how many these are."""
    count = len(entries_of(layout))
    return _with_entries(layout, [0] * count), count


__all__ = ["Entry", "ParametricLayout", "entries_of", "parametric"]
