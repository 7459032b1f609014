"""The body of a pipelined loop in pieces: the text of each statement, and the stages that two groups of warps alternate in.

Ping-pong, for two waves on each SIMD: one group of warps is a stage behind the other, so that one moves data while the
other multiplies. A compute stage is a run of matrix instructions and nothing else (`translator.pipeline.dot_parts` takes
statements apart); what lies between, reads of tiles, copies ahead and vector arithmetic, is a memory stage. What follows
the last matrix instruction stays with it. Memory stages have the higher priority: the other group waits for them.

One group reads a tile a stage before the other passes its own wait, so the wait has to cover the tile that the *next*
iteration reads. It stands before the last stage, when the copies of this iteration are under way:

    wait for tile 0
    loop k:  memory (copy k + N - 1, read k) | compute ... wait for tile k + 1 | compute
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from translator.rewrite.emission import Emission
from translator.pipeline.dot_parts import after_definitions, dot_parts, own_dtype
from translator.pipeline.loop import PipelinedLoop
from translator.pipeline.schedule import Schedule
from translator.facts.source_text import replace_spans
from translator.facts.refusals import refuse

LDS_READ = re.compile(r"(\w+(?:\.index\([^)]*\))?)(?:\.permute\([^)]*\))?\.load\(|load_shared_relaxed\((\w+)")
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


def plan_stages(reads: list[bool], dots: list[bool], schedule: Schedule) -> tuple[StagePlan, ...]:
    """Stages of a body whose statements read tiles and multiply where `reads` and `dots` say so; () when there are none.

    Tiles that travel through registers are stored in a stage of their own (one statement more than the body has): in the
    one before, the other group may still read the slot. One slot is not enough for that.
    """
    stored = schedule.mechanism == "registers"
    if not any(reads) or not any(dots) or stored and schedule.buffers < FEWEST_STORED:
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
    if schedule.mechanism == "registers" and schedule.buffers < FEWEST_STORED:
        return "LDS has no room for a second slot, which one group of warps stores to while the other reads"
    if schedule.mechanism == "held":
        return "its tiles wait in registers"
    return "its reads of tiles and its products do not follow one another"


def statement_texts(rw: Emission, s: ast.For, start: int) -> list[str]:
    """The rewritten lines of each statement of the body, comments above it included; the body begins at `start`."""
    outer, rw.edits = rw.edits, []
    rw.block(s.body)
    edits, rw.edits = rw.edits, outer
    texts, used = [], 0
    for statement in s.body:
        end = rw.facts.source.line_end(statement)
        # What is inserted at the end of a line belongs to the statement before.
        own = [e for e in edits if start <= e[0] and e[1] <= end and (e[1] > start or not texts)]
        used += len(own)
        texts.append(replace_spans(rw.facts.source.text, start, end, own).removeprefix("\n"))
        start = end
    if used != len(edits):
        raise refuse(rw.facts.frame, s, "ping-pong", "statements of this loop share a line", help="put each on its own")
    return texts


def late_read(contents: list[list[str]], stages: tuple[StagePlan, ...]) -> str:
    """A read of LDS in a compute stage, where the other group may already refill the slot; empty when there is none."""
    for stage, texts in zip(stages, contents):
        for text in texts if stage.kind == "compute" else ():
            if found := LDS_READ.search(text):
                return found.group(1) or found.group(2)
    return ""


def reads_tiles(loop: PipelinedLoop, statement: ast.stmt) -> bool:
    inside = set(ast.walk(statement))
    return any(load.statement in inside for load in loop.plan.loads)


def stage_contents(
    texts: list[str], stages: tuple[StagePlan, ...], tiles: dict[str, str], fresh: Callable[[str], str]
) -> list[list[str]]:
    """The statements of each stage, those with a matrix instruction taken apart.

    Operands are made in the stage before: converted as early as possible, read from LDS last. What is done with a product
    opens the next stage, but stays with the last product. tiles: the ring of each tile.
    """
    contents: list[list[str]] = []
    left: list[str] = []
    last = [stage for stage in stages if stage.kind == "compute"][-1]
    for stage in stages:
        own, left = left, []
        for i in stage.statements:
            parts = dot_parts(texts[i], fresh) if stage.kind == "compute" else None
            if parts is None or not contents:
                own.append(texts[i])
                continue
            for _, line in parts.operands:
                line = own_dtype(line, tiles)
                # What this stage makes itself cannot be an operand of the stage before.
                if after_definitions(line, own):
                    own.append(line)
                elif LDS_READ.search(line):
                    contents[-1].append(line)
                else:
                    contents[-1].insert(after_definitions(line, contents[-1]), line)
            own.append(parts.matrix)
            if parts.after:
                following = left if stage is not last and i == stage.statements[-1] else own
                following.append(parts.after)
        contents.append(own)
    return contents


def alternating(contents: list[list[str]], stages: tuple[StagePlan, ...], indent: str, waits: list[str]) -> list[str]:
    """The lines of the stages; the waits stand before the last one."""
    lines: list[str] = []
    for stage, texts in zip(stages, contents):
        if stage is stages[-1]:
            lines += [indent + line if line else "" for line in waits]
        lines.append(f'{indent}with gl.amd.warp_pipeline_stage("{stage.kind}", priority={stage.priority}):')
        for text in texts:
            lines += textwrap.indent(textwrap.dedent(text), indent + "    ").splitlines()
    return lines
