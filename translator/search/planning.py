"""The launches that candidates are tried for: those of the request, or what would be derived from the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest

if TYPE_CHECKING:
    from gluonize.judge.lower.children.worker import WorkerPool

PLAN = "gluonize.search.planning:launches_of"


def launches_of(request: TranslateRequest) -> tuple[LaunchSpec, ...]:
    """Reads the source with Triton's help: call it in a child."""
    from gluonize.planned_launches import planned_launches

    return planned_launches(request).launches


def planned(request: TranslateRequest, pool: "WorkerPool") -> tuple[LaunchSpec, ...]:
    return pool.call(PLAN, request, what=f"reading {request.source}")
