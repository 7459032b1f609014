"""Bases of layouts as functions of a launch's sizes: runs of powers of two along a dimension, between bounds that are formulas.

The bases `[0, 1], [0, 2], [0, 4], [4, 0], [8, 0]` are the columns from 1 up to 8 and the rows from 4 up to 16. `fit_runs` finds one
list of runs whose bounds follow from the sizes; a run of a launch with small tiles may be empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gluonize.decide.layouts.formulas import Formula, Sizes, fit
from gluonize.trace.model.layouts import Bases

ROWS, COLUMNS, ALONG = "rows", "columns", "along"
DOWN = "_down"


@dataclass(frozen=True)
class Run:
    """The bases first, 2 * first, ... below end along a dimension; down: the greatest comes first."""

    dim: int
    first: int
    end: int
    down: bool = False


@dataclass(frozen=True)
class RunFormula:
    """A run whose bounds follow from sizes; empty where end is not above first."""

    dim: int
    first: Formula
    end: Formula
    down: bool

    def at(self, sizes: Sizes, rank: int) -> Bases:
        first, end = self.first.at(sizes), self.end.at(sizes)
        steps = [first << i for i in range(max(end, 1).bit_length() - first.bit_length())] if first else []
        return tuple(
            tuple(step if d == self.dim else 0 for d in range(rank)) for step in steps[:: -1 if self.down else 1]
        )


@dataclass(frozen=True)
class BasesFormula:
    """Runs one after the other; rank: of the tensor. constant: bases of any kind that are the same for all sizes, without runs."""

    runs: tuple[RunFormula, ...]
    rank: int
    constant: Bases = ()

    def at(self, sizes: Sizes) -> Bases:
        return self.constant or tuple(basis for run in self.runs for basis in run.at(sizes, self.rank))

    @property
    def sizes(self) -> frozenset[str]:
        return frozenset().union(*(f.sizes for run in self.runs for f in (run.first, run.end)))

    @property
    def functions(self) -> frozenset[str]:
        """The functions that the text calls."""
        if not self.sizes:
            return frozenset()
        bounds = {name for run in self.runs for f in (run.first, run.end) for name in f.functions}
        return frozenset(bounds | {self._function(run) for run in self.runs})

    def text(self, spelled: Callable[[str], str] = str) -> str:
        """As Python: `columns(1, 8) + rows(4, BLOCK_M // 8)`."""
        parts = []
        for run in self.runs:
            bounds = f"{run.first.text(spelled)}, {run.end.text(spelled)}"
            whole = bounds if self.rank == 2 else f"{run.dim}, {bounds}, {self.rank}"
            parts.append(f"{spelled(self._function(run))}({whole})")
        return " + ".join(parts)

    def _function(self, run: RunFormula) -> str:
        name = (ROWS, COLUMNS)[run.dim] if self.rank == 2 else ALONG
        return name + DOWN * run.down


def runs_of(bases: Bases) -> tuple[Run, ...] | None:
    """The longest runs that give `bases`; None where a basis goes along several dimensions, or is none at all."""
    out: list[Run] = []
    for basis in bases:
        steps = [(d, step) for d, step in enumerate(basis) if step]
        if len(steps) != 1:
            return None
        dim, step = steps[0]
        last = out[-1] if out else None
        alone = last is not None and last.dim == dim and last.end == 2 * last.first
        if last is not None and last.dim == dim and step == last.end and (alone or not last.down):
            out[-1] = Run(dim, last.first, 2 * step)
        elif last is not None and last.dim == dim and 2 * step == last.first and (alone or last.down):
            out[-1] = Run(dim, step, last.end, True)
        else:
            out.append(Run(dim, step, 2 * step))
    return tuple(out)


def fit_runs(samples: Sequence[tuple[Sizes, Bases]]) -> BasesFormula | None:
    """Runs that give the bases of every sample; None where none are found. The samples are of one rank."""
    if len({bases for _, bases in samples}) == 1:
        return BasesFormula((), 0, samples[0][1])
    found = [(sizes, runs_of(bases)) for sizes, bases in samples]
    rank = max((len(basis) for _, bases in samples for basis in bases), default=0)
    if any(runs is None for _, runs in found):
        return None
    shapes = Counter(tuple((run.dim, run.down) for run in runs) for _, runs in found)
    for shape in sorted(shapes, key=lambda shape: (-len(shape), -shapes[shape], shape)):
        placed = [(sizes, _placed(runs, shape)) for sizes, runs in found]
        formula = _fitted([(sizes, runs) for sizes, runs in placed if runs is not None], shape, rank)
        if formula is not None and all(formula.at(sizes) == bases for sizes, bases in samples):
            return formula
    return None


def _placed(runs: tuple[Run, ...], shape: tuple[tuple[int, bool], ...]) -> tuple[Run | None, ...] | None:
    """The runs of a sample at the places of `shape`, None at those that are empty in it; the first way to do so."""
    if not shape:
        return None if runs else ()
    dim, down = shape[0]
    if runs and runs[0].dim == dim and (runs[0].down == down or runs[0].end == 2 * runs[0].first):
        if (rest := _placed(runs[1:], shape[1:])) is not None:
            return (runs[0], *rest)
    rest = _placed(runs, shape[1:])
    return None if rest is None else (None, *rest)


def _fitted(samples: Sequence[tuple[Sizes, tuple[Run | None, ...]]], shape, rank: int) -> BasesFormula | None:
    """The runs with bounds for all samples; one that is empty in a sample ends where it starts, or before."""
    out = []
    for i, (dim, down) in enumerate(shape):
        there = [(sizes, runs[i]) for sizes, runs in samples if runs[i] is not None]
        first = fit([(sizes, run.first) for sizes, run in there])
        if first is None:
            return None
        end = fit([(sizes, runs[i].end if runs[i] is not None else first.at(sizes)) for sizes, runs in samples])
        end = end or fit([(sizes, run.end) for sizes, run in there])
        if end is None:
            return None
        out.append(RunFormula(dim, first, end, down))
    return BasesFormula(tuple(out), rank)


__all__ = ["ALONG", "BasesFormula", "COLUMNS", "DOWN", "ROWS", "Run", "RunFormula", "fit_runs", "runs_of"]
