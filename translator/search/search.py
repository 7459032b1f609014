"""A search over combinations of choices, judged by predicted cycles.

The rows of `candidates.py` first, each alone. Then rows are put on top of the best choices so far, those first that made things
cheapest when they were tried last: what is better is the next to be built on, at once. Choices on which all rows were tried give way to
the next best ones, until the budget of trials is used up. So a row that costs more alone is tried beside those that it goes with, and
of rows that do not go together the better one comes first.

A trial is one set of choices for one kernel, compiled for all of its launches; one that gives the text of an earlier one is none, and a
row that does so alone is not put on top of anything. What is tried depends on costs alone, never on time or on the number of jobs, so
the same budget gives the same result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gluonize.decide.choices.chosen import Choices
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest
from gluonize.search.choose import Tried, best, mean_costs, rows_for, try_candidates

if TYPE_CHECKING:
    from gluonize.judge.lower.children.worker import WorkerPool

# Trials that do not know of each other: they keep a small machine busy, and few are made in vain when one of them is better.
AT_ONCE = 2


@dataclass(frozen=True)
class Step:
    """`row` on top of `base`."""

    base: Choices
    row: Choices

    @property
    def choices(self) -> Choices:
        return self.row.over(self.base)


def search_choices(request: TranslateRequest, pool: "WorkerPool") -> TranslateRequest:
    """`request` with its launches planned and the best choices that were found for each kernel."""
    from gluonize.search.planning import planned

    launches = planned(request, pool)
    found = {}
    for kernel in sorted({spec.kernel for spec in launches}):
        found[kernel] = search_kernel(request, [spec for spec in launches if spec.kernel == kernel], pool)
    return replace(request, chosen=tuple(found.items()))


def search_kernel(request: TranslateRequest, launches: list[LaunchSpec], pool: "WorkerPool") -> Choices:
    """The best choices for one kernel within the budget of trials."""
    return search_tried(request, launches, pool)[0]


def search_tried(
    request: TranslateRequest, launches: list[LaunchSpec], pool: "WorkerPool"
) -> tuple[Choices, list[Tried]]:
    """The best choices for one kernel, and all that was tried."""
    rows = tuple(dict.fromkeys(choices for spec in launches for choices in rows_for(request, spec)))
    tried: list[Tried] = []
    steps: list[Step] = []
    pending = rows
    while batch := pending[: max(0, request.budget - len(compiled(tried)))]:
        for spec in launches:
            tried += try_candidates(request, spec, pool, batch, tried, costs_only=True)
        pending = pending[len(batch) :]
        if not pending:  # what made the text of another one was no trial
            following = next_steps(tried, rows, steps)
            steps += following
            pending = tuple(step.choices for step in following)
    return next(iter(best(tried).values()), Choices()), tried


def next_steps(tried: list[Tried], rows: Sequence[Choices], steps: Sequence[Step]) -> list[Step]:
    """The next steps from the best choices that rows are left for, of which `steps` were made; none where all was tried."""
    costs = mean_costs(tried)
    seen, distinct = {t.choices for t in tried}, {t.choices for t in tried if t.lowered is not None}
    alone = costs.get(rows[0], next(iter(costs.values()), 1.0))
    latest = {row: costs.get(row, math.inf) / alone for row in rows if row in distinct}
    latest |= {step.row: costs.get(step.choices, math.inf) / costs[step.base] for step in steps}
    ordered = sorted(latest, key=lambda row: latest[row])
    for base in (x for x in costs if x in distinct):
        made: dict[Choices, Step] = {}
        for step in (Step(base, row) for row in ordered):
            if step.choices not in seen:
                made.setdefault(step.choices, step)
        if made:
            return list(made.values())[:AT_ONCE]
    return []


def compiled(tried: list[Tried]) -> set[Choices]:
    """The choices that made a text of their own for a launch, or were refused."""
    return {t.choices for t in tried if t.same_as is None}
