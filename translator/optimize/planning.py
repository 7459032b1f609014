"""The launches that candidates are tried for: those of the request, or what would be derived from the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from translator.request import TranslateRequest
from translator.source.launch_spec import LaunchSpec

if TYPE_CHECKING:
    from translator.lowering.worker import WorkerPool

PLAN = "translator.optimize.planning:launches_of"


def launches_of(request: TranslateRequest) -> tuple[LaunchSpec, ...]:
    """Reads the source with Triton's help: call it in a child."""
    from translator.planned_launches import planned_launches

    return planned_launches(request).launches


def planned(request: TranslateRequest, pool: "WorkerPool") -> tuple[LaunchSpec, ...]:
    return pool.call(PLAN, request, what=f"reading {request.source}")
