"""The loops of a translation as they were planned: what a page draws where the text under review is the translator's own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from gluonize.loops.plan.partition_schedule import Partitions
from gluonize.loops.plan.schedule import Copied, Once, Schedule
from gluonize.product.project.output.layout_free import same_code
from gluonize.product.project.output.provenance import without_line
from gluonize.product.report.explain.function_view import FunctionView
from gluonize.product.report.explain.job import views_of_launch
from gluonize.product.report.loops.hazards import events_of, hazards
from gluonize.product.report.loops.replay import Replay
from gluonize.product.report.loops.timeline import LoopTimeline, Ring
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest

_DOTS = ("dot", "dot_scaled")


def planned_loops(request: TranslateRequest, text: str | None) -> tuple[LoopTimeline, ...] | None:
    """The loops of every launch of a request that were considered for pipelining, lines of the source file, each once.

    text: the translation under review; None is answered when it is not what the request gives, because someone has tuned it or it
    was made another way. Call it in a child process.
    Raises: TranslationError when the request is refused.
    """
    from gluonize.translation import translate_kernel

    if text is not None:
        made = translate_kernel(request).text
        if made is None or not same_code(made, without_line(text)):
            return None
    return tuple(dict.fromkeys(loop for spec in request.launches for loop in _of_launch(request, spec)))


def _of_launch(request: TranslateRequest, spec: LaunchSpec) -> Iterator[LoopTimeline]:
    for view in views_of_launch(request, spec):
        for plan, node in view.planned():
            index = ast.unparse(node.target) if isinstance(node, ast.For) else "while"
            line = view.line(node)
            calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
            computes = any(isinstance(c.func, ast.Attribute) and c.func.attr in _DOTS for c in calls)
            bare = LoopTimeline(view.function, line, index, (), None, computes, 0, planned=True)
            if not hasattr(plan, "schedule"):
                yield replace(bare, reason=plan.reason)
                continue
            schedule = plan.schedule
            rings = tuple(Ring(load.name, schedule.buffers, _shape(view, load.call), line) for load in plan.loads)
            yield replace(bare, rings=rings, loads=len(rings), **_drawn(schedule))


def _shape(view: FunctionView, call: ast.Call) -> str:
    """`128 x 64 fp16` of the tile that a call loads."""
    fact = view.written.facts.tensor(call)
    return f"{' x '.join(map(str, fact.shape))} {fact.dtype}" if fact is not None else "a tile"


def _drawn(schedule: Schedule | Partitions) -> dict:
    """The fields of a timeline that show a schedule."""
    if isinstance(schedule, Partitions):
        buffers = schedule.buffers
        # The copying warps are as far ahead as there are slots, once they have filled them.
        shown = Copied(buffers, buffers, buffers, wait=buffers - 1)
        how = f"warp-specialized: {schedule.producer_warps} more warps copy, at most {buffers} tiles ahead; waits at mbarriers"
        return {"replay": replay_of_schedule(shown), "how": how, "hazards": (), "checked": 0}
    checked = 1 if isinstance(schedule, Once) else schedule.buffers + 4
    found = dict.fromkeys(
        problem for trips in range(checked + 1) for problem in hazards(events_of(schedule, trips), trips)
    )
    by_tensor = schedule.tensor_loads and not schedule.grouped
    how = "pipelined by the tensor data mover" if by_tensor else _WORDS[schedule.mechanism]
    if schedule.tensor_loads and schedule.grouped:
        how += ", some tiles by the tensor data mover"
    if schedule.stored:
        how += ", some tiles through registers"
    return {"replay": replay_of_schedule(schedule), "how": how, "hazards": tuple(found), "checked": checked}


_WORDS = {
    "copies": "pipelined by asynchronous copies",
    "registers": "pipelined through registers",
    "held": "the next tile is held in registers, without LDS",
}


def replay_of_schedule(schedule: Schedule) -> Replay:
    """What a schedule does in the first iterations, as `replay.py` reads it from a text."""

    def before_end(trips: int) -> list[tuple]:
        return [event for event in events_of(schedule, trips) if event[0] != "drain"]

    first, iterations = before_end(0), []
    for trips in range(schedule.buffers + 8):
        iterations.append(tuple(before_end(trips + 1)[len(before_end(trips)) :]))
    last = tuple(event for event in events_of(schedule, 0) if event[0] == "drain")
    wait = schedule.waits[0][1] if schedule.waits else 0
    return Replay(schedule.mechanism, schedule.buffers, schedule.prologue, wait, tuple(first), tuple(iterations), last)
