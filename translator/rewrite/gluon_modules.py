"""Gluon's modules that a function uses: each puts its import into the output, and gives its name."""

from __future__ import annotations

from translator.rewrite.emission import Emission


def async_module(rw: Emission) -> str:
    rw.record.imports.add(
        f"from triton.experimental.gluon.language.amd.{rw.facts.kernel.target.gluon_module} import async_copy"
    )
    return "async_copy"


def barrier_module(rw: Emission) -> str:
    rw.record.imports.add(
        f"from triton.experimental.gluon.language.amd.{rw.facts.kernel.target.gluon_module} import mbarrier"
    )
    return "mbarrier"


def all_workgroups(rw: Emission) -> list[str]:
    """Statements at which the workgroups of a cluster wait for each other; one warp of each arrives."""
    rw.record.imports.add(
        f"from triton.experimental.gluon.language.amd.{rw.facts.kernel.target.gluon_module} import cluster"
    )
    return ["cluster.arrive()", "cluster.wait()"]
