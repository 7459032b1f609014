"""The plan of one pipelined loop: which loads run ahead, what they need, and in which order everything happens."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gluonize.decide.readback.staging import Staged
from gluonize.facts.loops.span import Span
from gluonize.facts.obligations import Obligation
from gluonize.facts.syntax import unparsed
from gluonize.facts.webs import Web
from gluonize.loops.plan.partition_schedule import Partitions
from gluonize.loops.plan.schedule import Once, Schedule
from gluonize.loops.plan.tiles.descriptors import DescriptorTile
from gluonize.loops.plan.tiles.strided import StridedTile


@dataclass(frozen=True)
class NotPipelined:
    """Why a loop stays as it is; `wanted` when Triton does pipeline it."""

    line: int
    reason: str
    wanted: bool = False

    def __str__(self) -> str:
        return f"line {self.line}: not pipelined: {self.reason}"


@dataclass(frozen=True)
class PipelinedLoad:
    """name: of the tile; covered: its own mask excludes tiles past the end; shrinking: what makes sure that its lanes only get
    fewer, None where nothing does."""

    name: str
    line: int
    call: ast.Call
    statement: ast.stmt
    staged: Staged
    covered: bool
    shrinking: frozenset[Obligation] | None
    tile: DescriptorTile | StridedTile | None = None  # how the tensor data mover fetches it; None: another way

    @property
    def held(self) -> bool:
        """Whether the tile waits in registers until its iteration."""
        return self.tile is None and self.staged.copy == "held"

    @property
    def stored(self) -> bool:
        """Whether the tile goes through registers to LDS."""
        return self.tile is None and self.staged.copy == "registers"

    @property
    def copied(self) -> bool:
        """Whether an asynchronous copy of a commit group brings the tile to LDS."""
        return self.tile is None and not self.held and not self.stored


@dataclass(frozen=True)
class LoopRange:
    """`range(low, high, step)`, whose index is of the type `dtype`; low and step are None where they are 0 and 1.

    descending: the step is negative. span: `high - low` where that is known at compile time and they are not. asks_start: nothing
    bounds the start of the loop before the launch, so that tiles of a loop that does not run are left out by comparing it with the end.
    asks_rest: nothing bounds the index of a tile ahead, so that what is left of the loop is compared with its distance, as a number of
    this type; "" where it is bounded.
    """

    index: str
    dtype: str
    low: ast.expr | None
    high: ast.expr
    step: ast.expr | None
    descending: bool = False
    span: Span | None = None
    asks_start: bool = False
    asks_rest: str = ""


@dataclass(frozen=True)
class RunsAhead:
    """producer: the statements that addresses and masks need, which run ahead, in source order; shared: what they compute that the
    consumer computes for itself as well; carried: what moves from tile to tile; rolled_back: the moves to undo because the value is used
    after the loop; guarded: loads of the producer that would read past the loop's end; doubled: what moves that the consumer moves
    for itself as well.
    """

    producer: tuple[ast.stmt, ...]
    shared: tuple[Web, ...]
    carried: tuple[Web, ...]
    rolled_back: tuple[ast.AugAssign, ...]
    guarded: tuple[ast.Call, ...] = ()
    doubled: tuple[Web, ...] = ()

    @property
    def on_both_sides(self) -> tuple[Web, ...]:
        """What the producer and the consumer compute, each for its tile."""
        return (*self.shared, *self.doubled)


@dataclass(frozen=True)
class PipelinePlan:
    """One pipelined loop. atoms: the statements that each iteration runs. assumed: what its addresses and masks rest on. not_tiles: lines of
    loads that a tensor data mover does not fetch, with the reason. asked: the buffers that num_stages asks for. written_out: the number
    of iterations where it is known and so small that the loop is a prologue and an epilogue.
    """

    loop: ast.For
    range: LoopRange
    schedule: Schedule | Partitions
    loads: tuple[PipelinedLoad, ...]
    atoms: tuple[ast.stmt, ...]
    runs: RunsAhead
    assumed: frozenset[Obligation]
    not_tiles: tuple[tuple[int, str], ...] = ()
    asked: int = 0
    written_out: int | None = None

    @property
    def shallower(self) -> str:
        """That there are fewer buffers than num_stages asks for, and why; "" where there are as many."""
        has = self.schedule.buffers
        if has >= self.asked:
            return ""
        head = f"`for {self.range.index}` has {has} buffer{'s' * (has > 1)} where num_stages asks for {self.asked}"
        return f"{head}: {self.schedule.why_fewer}"

    def __str__(self) -> str:
        s = self.schedule
        lines = [f"line {self.loop.lineno}: `for {self.range.index}` pipelined, {s.mechanism}, {s.buffers} buffers"]
        for load in self.loads:
            tail = "tail masked by the load itself" if load.covered else "tail masked by the loop bound"
            how = " by the tensor data mover" if load.tile else ""
            where = "registers" if load.held else "LDS"
            how = " through registers" if s.mechanism == "copies" and load.stored else how
            lines.append(f"  line {load.line}: {load.name} {load.staged.shape} -> {where}{how}, {tail}")
        lines.append("  producer: " + ("; ".join(unparsed(p) for p in self.runs.producer) or "addresses only"))
        if self.runs.shared:
            lines.append("  computed twice: " + ", ".join(w.name for w in self.runs.shared))
        if self.runs.doubled:
            lines.append("  moved twice: " + ", ".join(w.name for w in self.runs.doubled))
        if self.runs.rolled_back:
            lines.append("  moved back after the loop: " + ", ".join(s.target.id for s in self.runs.rolled_back))
        if self.written_out is not None:
            lines.append(f"  written out: {self.written_out} tiles; only those that exist are fetched")
        lines += [f"  {line}" for line in s.described()]
        if self.written_out is None and not isinstance(s, Partitions | Once):
            lines.append("  epilogue: none; tiles past the end are masked out")
        return "\n".join(lines)


def run_of_loads(plan: PipelinePlan, s: ast.stmt) -> tuple[int, int]:
    """The first and the last of the consecutive load statements that `s` belongs to, as indices of the plan's atoms."""
    loading = [load.statement for load in plan.loads]
    first = last = plan.atoms.index(s)

    def belongs(atom: ast.stmt) -> bool:
        return atom in loading and atom.col_offset == s.col_offset  # of the same block

    while first and belongs(plan.atoms[first - 1]):
        first -= 1
    while last + 1 < len(plan.atoms) and belongs(plan.atoms[last + 1]):
        last += 1
    return first, last
