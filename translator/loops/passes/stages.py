"""The stages of a pipelined loop that two groups of warps alternate in.

Ping-pong, for two waves on each SIMD: one group of warps is a stage behind the other, so that one moves data while the
other multiplies. A compute stage is a run of matrix instructions and nothing else (`gluonize.loops.passes.dot_parts` takes
statements apart); what lies between, reads of tiles, copies ahead and vector arithmetic, is a memory stage. What follows
the last matrix instruction stays with it. Memory stages have the higher priority: the other group waits for them.

One group reads a tile a stage before the other passes its own wait, so the wait has to cover the tile that the *next*
iteration reads. It stands before the last stage, when the copies of this iteration are under way:

    wait for tile 0
    loop k:  memory (copy k + N - 1, read k) | compute ... wait for tile k + 1 | compute
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from gluonize.gluon.code import text_of
from gluonize.gluon.nodes import ElementType, Node, Permuted, Read, Stage, binds, mapped, reads, walk
from gluonize.gluon.printer import printed
from gluonize.loops.loop.loop import PipelinedLoop
from gluonize.loops.passes.dot_parts import dot_parts
from gluonize.loops.plan.schedule import Held, Schedule, Stored

FEWEST_STORED = 2  # slots of tiles that travel through registers: one group of warps reads while the other stores
MEMORY_PRIORITY, COMPUTE_PRIORITY = 1, 0


@dataclass(frozen=True)
class StagePlan:
    """One stage: `memory` or `compute`, and its statements by index in the loop's body."""

    kind: str
    statements: tuple[int, ...]

    @property
    def priority(self) -> int:
        return MEMORY_PRIORITY if self.kind == "memory" else COMPUTE_PRIORITY


def plan_stages(
    reads: list[bool], dots: list[bool], schedule: Schedule, fewest: int = FEWEST_STORED
) -> tuple[StagePlan, ...]:
    """Stages of a body whose statements read tiles and multiply where `reads` and `dots` say so; () when there are none.

    Tiles that travel through registers are stored in a stage of their own (one statement more than the body has): in the
    one before, the other group may still read the slot. fewest: slots that they need; one is not enough for that.
    """
    stored = isinstance(schedule, Stored)
    if not any(reads) or not any(dots) or stored and schedule.buffers < fewest:
        return ()
    last = len(dots) - 1 - dots[::-1].index(True)
    if any(reads[last + 1 :]) or True not in reads[: dots.index(True) + 1]:
        return ()
    kinds = ["compute" if dot or i > last else "memory" for i, dot in enumerate(dots)]
    stages: list[StagePlan] = []
    for i, kind in enumerate(kinds):
        if stages and stages[-1].kind == kind:
            stages[-1] = StagePlan(kind, (*stages[-1].statements, i))
        else:
            stages.append(StagePlan(kind, (i,)))
    if stages[0].kind != "memory":
        return ()
    return (*stages, StagePlan("memory", (len(reads),))) if stored else tuple(stages)


def why_not_alternating(schedule: Schedule) -> str:
    """Why a pipelined loop that `plan_stages` found no stages in has none."""
    if isinstance(schedule, Stored) and schedule.buffers < FEWEST_STORED:
        why = "LDS has no room for a second slot, which one group of warps stores to while the other reads"
        return f"{why}; one is enough with --choose accumulator-slices=4x1 --choose refill=after-read"
    if isinstance(schedule, Held):
        return "its tiles wait in registers"
    return "its reads of tiles and its products do not follow one another"


def reads_tiles(loop: PipelinedLoop, statement: ast.stmt) -> bool:
    inside = set(ast.walk(statement))
    return any(load.statement in inside for load in loop.plan.loads)


Statements = tuple[Node, ...]  # what one of the author's has become


def stage_contents(
    steps: list[Statements], stages: tuple[StagePlan, ...], tiles: dict[str, str], fresh: Callable[[str], str]
) -> list[list[Statements]]:
    """What each stage holds, with the statements that have a matrix instruction taken apart.

    Operands are made in the stage before: converted as early as possible, read from LDS last. What is done with a product
    opens the next stage, but stays with the last product. tiles: the ring of each tile.
    """
    contents: list[list[Statements]] = []
    left: list[Statements] = []
    last = [stage for stage in stages if stage.kind == "compute"][-1]
    for stage in stages:
        own, left = left, []
        for i in stage.statements:
            parts = dot_parts(steps[i], fresh) if stage.kind == "compute" else None
            if parts is None or not contents:
                own.append(steps[i])
                continue
            for operand in parts.operands:
                _place(_before_tiles(operand, tiles), own, contents[-1])
            own.append(parts.matrix)
            if parts.after is not None:
                following = left if stage is not last and i == stage.statements[-1] else own
                following.append((parts.after,))
        contents.append(own)
    return contents


def _before_tiles(node: Node, tiles: dict[str, str]) -> Node:
    """`node` with the element types of tiles taken from their rings, so that it may stand before the tiles are read."""
    if isinstance(node, ElementType):
        return ElementType(tiles.get(node.name, node.name))
    return mapped(node, lambda part: _before_tiles(part, tiles))


def _place(operand: Node, own: list[Statements], before: list[Statements]) -> None:
    """Put an operand into the stage `before` the one that it is used in, which holds `own` so far."""
    # What this stage makes itself cannot be an operand of the stage before.
    if _after_definitions(operand, own):
        own.append((operand,))
    elif any(isinstance(n, Read) for n in walk(operand)):
        before.append((operand,))
    else:
        before.insert(_after_definitions(operand, before), (operand,))


def _after_definitions(node: Node, steps: list[Statements]) -> int:
    """Where `node` may stand at the earliest: behind the last step that binds what it reads."""
    used = reads(node)
    return max((i for i, step in enumerate(steps, 1) if binds(step) & used), default=0)


def late_read(contents: list[list[Statements]], stages: tuple[StagePlan, ...]) -> str:
    """A read of LDS in a compute stage, where the other group may already refill the slot; empty when there is none."""
    for stage, steps in zip(stages, contents):
        for node in walk(tuple(steps)) if stage.kind == "compute" else ():
            if isinstance(node, Read):
                place = node.place
                while isinstance(place, Permuted):
                    place = place.place
                return text_of(printed(place))
    return ""


def alternating(contents: list[list[Statements]], stages: tuple[StagePlan, ...], waits: Statements) -> list[Node]:
    """The stages; the waits stand before the last one."""
    made = [
        Stage(stage.kind, stage.priority, tuple(s for step in steps for s in step))
        for stage, steps in zip(stages, contents)
    ]
    return [*made[:-1], *waits, made[-1]]
