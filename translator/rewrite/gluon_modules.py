"""Gluon's modules that a function uses: each puts its import into the output, and gives its name."""

from __future__ import annotations

from translator.rewrite.emission import Emission


def async_module(rw: Emission) -> str:
    return rw.record.amd("async_copy", rw.facts.kernel.target.gluon_module)


def barrier_module(rw: Emission) -> str:
    return rw.record.amd("mbarrier", rw.facts.kernel.target.gluon_module)


def all_workgroups(rw: Emission) -> list[str]:
    """Statements at which the workgroups of a cluster wait for each other; one warp of each arrives."""
    cluster = rw.record.amd("cluster", rw.facts.kernel.target.gluon_module)
    return [f"{cluster}.arrive()", f"{cluster}.wait()"]
