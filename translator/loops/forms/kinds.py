"""The form of each schedule, and a loop with its names."""

from __future__ import annotations

from gluonize.gluon.written import literal, name
from gluonize.loops.forms.branch import Branch
from gluonize.loops.forms.held import HeldTiles
from gluonize.loops.forms.partitioned import SplitWarps
from gluonize.loops.forms.refilled import RefilledSlot
from gluonize.loops.forms.ring import CopiedRing, StoredRing
from gluonize.loops.loop.loop import LoopForm, PipelinedLoop
from gluonize.loops.loop.trips import Rolled, WrittenOut
from gluonize.loops.plan.partition_schedule import Partitions
from gluonize.loops.plan.plan import PipelinePlan
from gluonize.loops.plan.schedule import Copied, Held, Once, Refilled, Stored
from gluonize.write.state.fresh_names import LoopNames

FORMS = {
    Copied: CopiedRing,
    Stored: StoredRing,
    Refilled: RefilledSlot,
    Held: HeldTiles,
    Once: Branch,
    Partitions: SplitWarps,
}


def named_loop(loop_names: LoopNames, added_parameters: dict[str, str], plan: PipelinePlan) -> PipelinedLoop:
    """The loop of a plan with names that nothing else has."""
    kind = FORMS[type(plan.schedule)]
    ascending = plan.range.low is None and plan.range.dtype == "int32" and not plan.range.descending
    counted = kind.one_slot or plan.written_out is not None or ascending
    counter = "" if counted else loop_names.fresh("tile", plan.loop)
    stem = plan.range.index.strip("_") or "tile"
    names = [loop_names.fresh(own, plan.loop) for own in (f"{stem}_ahead", "slot", "free_slot", kind.tile)]
    buffers = literal(1) if kind.one_slot else name(_buffers_parameter(loop_names, added_parameters, plan))
    trips = Rolled() if plan.written_out is None else WrittenOut()
    form = _split(loop_names, plan) if kind.splits else kind()
    return form.placed(PipelinedLoop(plan, form, trips, buffers, *names, counter))


def _split(loop_names: LoopNames, plan: PipelinePlan) -> LoopForm:
    phase = loop_names.fresh("phase", plan.loop)
    groups = plan.schedule.groups
    stems = [f"{'_'.join(group)}_" if len(groups) > 1 else "" for group in groups]
    barriers = tuple(tuple(loop_names.fresh(stem + end, plan.loop) for end in ("ready", "empty")) for stem in stems)
    return SplitWarps(groups, barriers, phase)


def _buffers_parameter(loop_names: LoopNames, added_parameters: dict[str, str], plan: PipelinePlan) -> str:
    """The constexpr parameter that holds the number of buffers; loops of one depth share it."""
    depth = plan.schedule.buffers
    for name, value in added_parameters.items():
        if value == str(depth) and name.startswith("NUM_BUFFERS"):
            return name
    name, n = loop_names.fresh("NUM_BUFFERS"), 2
    while name in added_parameters:
        name, n = loop_names.fresh(f"NUM_BUFFERS_{n}"), n + 1
    added_parameters[name] = str(depth)
    return name
