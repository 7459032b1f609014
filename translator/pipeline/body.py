"""The body of a pipelined loop in pieces: the text of each statement, and the stages that two groups of warps alternate in.

Ping-pong, for two waves on each SIMD: one group of warps is a stage behind the other, so that one moves data while the
other multiplies. Each run of statements that read tiles, with the copies ahead beside them, is a memory stage; what lies
between is a compute stage. Memory stages have the higher priority: they are short, and the other group waits for them.

One group reads a tile a stage before the other passes its own wait, so the wait has to cover the tile that the *next*
iteration reads. It stands before the last stage, when the copies of this iteration are under way:

    wait for tile 0
    loop k:  memory (copy k + N - 1, read k) | compute ... wait for tile k + 1 | compute
"""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from translator.pipeline.loop import PipelinedLoop
from translator.pipeline.schedule import Schedule
from translator.rewrite.splice import replace_spans
from translator.rewrite.unit import refuse

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter

MEMORY_PRIORITY, COMPUTE_PRIORITY = 1, 0


@dataclass(frozen=True)
class StagePlan:
    """One stage: `memory` or `compute`, and its statements by index in the loop's body."""

    kind: str
    statements: tuple[int, ...]

    @property
    def priority(self) -> int:
        return MEMORY_PRIORITY if self.kind == "memory" else COMPUTE_PRIORITY


def plan_stages(reads: list[bool], schedule: Schedule) -> tuple[StagePlan, ...]:
    """Stages of a body whose statements read tiles where `reads` says so; () when there is no work between reads.

    Statements before the first read belong to its stage: addresses and masks of what is read. Tiles that travel through
    registers are stored in a stage of their own (one statement more than the body has): in the one before, the other
    group may still read the slot. One slot is not enough for that.
    """
    stored = schedule.mechanism == "registers"
    if not any(reads) or stored and schedule.buffers < 2:
        return ()
    kinds = ["memory" if read else "compute" for read in reads]
    first = reads.index(True)
    kinds[:first] = ["memory"] * first
    stages: list[StagePlan] = []
    for i, kind in enumerate(kinds):
        if stages and stages[-1].kind == kind:
            stages[-1] = StagePlan(kind, (*stages[-1].statements, i))
        else:
            stages.append(StagePlan(kind, (i,)))
    if stages[-1].kind != "compute":
        return ()
    return (*stages, StagePlan("memory", (len(reads),))) if stored else tuple(stages)


def statement_texts(rw: "FunctionRewriter", s: ast.For, start: int) -> list[str]:
    """The rewritten lines of each statement of the body, comments above it included; the body begins at `start`."""
    outer, rw.edits = rw.edits, []
    rw.block(s.body)
    edits, rw.edits = rw.edits, outer
    texts, used = [], 0
    for statement in s.body:
        end = rw.source.line_end(statement)
        # What is inserted at the end of a line belongs to the statement before.
        own = [e for e in edits if start <= e[0] and e[1] <= end and (e[1] > start or not texts)]
        used += len(own)
        texts.append(replace_spans(rw.source.text, start, end, own).removeprefix("\n"))
        start = end
    if used != len(edits):
        raise refuse(rw.frame, s, "ping-pong", "statements of this loop share a line", help="put each on its own")
    return texts


def late_read(texts: list[str], stages: tuple[StagePlan, ...]) -> str:
    """A read of LDS in a compute stage, where the other group may already refill the slot; empty when there is none."""
    for stage in stages:
        for i in stage.statements if stage.kind == "compute" else ():
            if found := re.search(
                r"(\w+(?:\.index\([^)]*\))?)(?:\.permute\([^)]*\))?\.load\(|load_shared_relaxed\((\w+)", texts[i]
            ):
                return found.group(1) or found.group(2)
    return ""


def reads_tiles(loop: PipelinedLoop, statement: ast.stmt) -> bool:
    inside = set(ast.walk(statement))
    return any(load.statement in inside for load in loop.plan.loads)


def alternating(texts: list[str], stages: tuple[StagePlan, ...], indent: str, waits: list[str]) -> list[str]:
    """The lines of the stages; the waits stand before the last one."""
    lines: list[str] = []
    for stage in stages:
        if stage is stages[-1]:
            lines += [indent + line if line else "" for line in waits]
        lines.append(f'{indent}with gl.amd.warp_pipeline_stage("{stage.kind}", priority={stage.priority}):')
        for i in stage.statements:
            lines += textwrap.indent(texts[i], "    ").splitlines()
    return lines
