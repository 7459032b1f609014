"""Tiles that workgroups of a cluster share: a copy brings one to all of them, and all agree before a slot is filled again.

    tdm.async_wait(...)     every warp of this workgroup is done with the slot
    cluster.arrive()
    cluster.wait()          so are those of the others
    tdm.async_load(...)     into the LDS of every workgroup that shares the tile

Which workgroups these are is said by the layout of the tile: a basis of zeros in its `cga_layout`. The barrier of a cluster is
one of workgroups, at which one warp arrives for each; so a barrier of the workgroup's own stands before.
"""

from __future__ import annotations

from gluonize.loops.loop.loop import PipelinedLoop
from gluonize.loops.plan.plan import PipelinedLoad
from gluonize.write.state.gluon_modules import all_workgroups
from gluonize.write.state.unit import Record


def multicasts(loop: PipelinedLoop) -> bool:
    """Whether a copy of the loop brings a tile to several workgroups."""
    return any(_is_shared(load) for load in loop.plan.loads)


def _is_shared(load: PipelinedLoad) -> bool:
    staged = load.staged
    if load.held or load.stored:
        return False
    layout = staged.shared if staged.shared is not None else staged.source
    return layout is not None and not all(map(any, layout.ctas))


def before_first(record: Record, loop: PipelinedLoop) -> list[str]:
    """What stands before the first copies: other workgroups may not have started, or use that LDS for something else."""
    if not multicasts(loop):
        return []
    return [
        "# Every workgroup of the cluster has started, and uses the LDS of the ring for nothing else any more.",
        "gl.barrier()",
        *all_workgroups(record),
    ]


def before_next(record: Record, loop: PipelinedLoop) -> list[str]:
    """What stands behind a barrier of the workgroup, before copies into a slot that has been read."""
    if not multicasts(loop):
        return []
    return ["# So is every workgroup of the cluster: a copy comes to all that share the tile.", *all_workgroups(record)]


def after_last(record: Record, loop: PipelinedLoop, waited: bool) -> list[str]:
    """What stands behind the loop; waited: whether it ends in a wait, which is a barrier of the workgroup too.

    Nothing where the barrier of the last iteration is behind the last copy: no tile past the end is copied.
    """
    past_the_end = any(_is_shared(load) and load.tile is not None and load.covered for load in loop.plan.loads)
    if not multicasts(loop) or not (past_the_end or loop.form.one_slot):
        return []
    return [
        "# Nothing that another workgroup copies is on its way to this one any more.",
        *([] if waited else ["gl.barrier()"]),
        *all_workgroups(record),
    ]


__all__ = ["after_last", "before_first", "before_next", "multicasts"]
