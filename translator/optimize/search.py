"""A search over combinations of choices, judged by predicted cycles.

The rows of `candidates.py` first. Then, from the best so far, each row's choices on top of it, until nothing is better or the budget
of trials is used up. A trial is one set of choices for one kernel, compiled for all of its launches; one that gives the text of an earlier one
is none, and a row that does so is not put on top of anything. What is tried depends on costs alone, never on time, so the same budget
gives the same result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from translator.choices.chosen import Choices
from translator.optimize.choose import Tried, best, rows_for, try_candidates
from translator.request import TranslateRequest
from translator.source.launch_spec import LaunchSpec

if TYPE_CHECKING:
    from translator.lowering.worker import WorkerPool


def search_choices(request: TranslateRequest, pool: "WorkerPool") -> TranslateRequest:
    """`request` with its launches planned and the best choices that were found for each kernel."""
    from translator.optimize.planning import planned

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
    found: Choices | None = None
    pending = rows
    while batch := pending[: max(0, request.budget - len(compiled(tried)))]:
        for spec in launches:
            tried += try_candidates(request, spec, pool, batch)
        pending = pending[len(batch) :]
        if pending:
            continue  # what made the text of another one was no trial
        better = next(iter(best(tried).values()))
        if better == found:
            break
        found = better
        seen, changing = {t.choices for t in tried}, {t.choices for t in tried if t.lowered is not None}
        pending = tuple(x for x in combinations(found, tuple(x for x in rows if x in changing)) if x not in seen)
    return next(iter(best(tried).values()), Choices()), tried


def compiled(tried: list[Tried]) -> set[Choices]:
    """The choices that made a text of their own for a launch, or were refused."""
    return {t.choices for t in tried if not t.same_as}


def combinations(found: Choices, rows: tuple[Choices, ...]) -> tuple[Choices, ...]:
    """`found` with the choices of each row on top."""
    return tuple(x for x in dict.fromkeys(row.over(found) for row in rows) if x != found)
