"""Gluon's modules that a function uses: each puts its import into the output, and gives its name."""

from __future__ import annotations

from gluonize.write.state.unit import Record


def async_module(record: Record) -> str:
    return record.of_target("async_copy")


def barrier_module(record: Record) -> str:
    return record.of_target("mbarrier")


def all_workgroups(record: Record) -> list[str]:
    """Statements at which the workgroups of a cluster wait for each other; one warp of each arrives."""
    cluster = record.of_target("cluster")
    return [f"{cluster}.arrive()", f"{cluster}.wait()"]
