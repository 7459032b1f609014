"""A search over combinations of choices, judged by predicted cycles.

The rows of `candidates.py` first. Then, from the best so far, each row's choices on top of it, until nothing is better or the budget
of trials is used up. A trial is one set of choices for one kernel, compiled for all of its launches. What is tried depends on costs
alone, never on time, so the same budget gives the same result.
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
    seen: dict[Choices, None] = {}
    found: Choices | None = None
    pending = rows
    while pending := tuple(x for x in pending if x not in seen)[: max(0, request.budget - len(seen))]:
        seen.update(dict.fromkeys(pending))
        for spec in launches:
            tried += try_candidates(request, spec, pool, pending)
        better = next(iter(best(tried).values()))
        if better == found:
            break
        found = better
        pending = combinations(found, rows)
    return found or Choices(), tried


def combinations(found: Choices, rows: tuple[Choices, ...]) -> tuple[Choices, ...]:
    """`found` with the choices of each row on top."""
    return tuple(x for x in dict.fromkeys(row.over(found) for row in rows) if x != found)
