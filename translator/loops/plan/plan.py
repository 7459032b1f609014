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
from gluonize.loops.plan.schedule import Schedule
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
class PipelinePlan:
    """One pipelined loop over `range(low, high, step)`.

    producer: statements of the body that addresses and masks need, run ahead; shared: the producer's variables that
    the consumer computes for itself as well; carried: those that move from tile to tile; doubled: those of them that the
    consumer moves for itself; rolled_back: those that are used after the loop and have to be moved back by the tiles that
    were fetched ahead; not_tiles: lines of loads
    that a tensor data mover does not fetch, with the reason. written_out: the number of iterations where it is known and
    so small that the loop is a prologue and an epilogue. once: the loop is a branch (`gluonize.loops.forms.once`).
    descending: the step is negative. guarded: loads of the producer that get the loop's end as a mask. span: `high - low`
    where that is known at compile time and they are not. reads_early: no operand is read after the others, so that slots can
    be filled again. asked: the buffers that num_stages asks for. asks_start: nothing bounds the start of the loop before the launch,
    so that tiles of a loop that does not run are left out by comparing it with the end. asks_rest: nothing bounds the index of
    a tile ahead, so that what is left of the loop is compared with its distance, as a number of this type; "" where it is bounded.
    """

    loop: ast.For
    index: str
    index_dtype: str
    low: ast.expr | None
    high: ast.expr
    step: ast.expr | None
    schedule: Schedule | Partitions
    loads: tuple[PipelinedLoad, ...]
    atoms: tuple[ast.stmt, ...]
    producer: tuple[ast.stmt, ...]
    shared: tuple[Web, ...]
    carried: tuple[Web, ...]
    rolled_back: tuple[ast.AugAssign, ...]
    assumed: frozenset[Obligation]
    not_tiles: tuple[tuple[int, str], ...] = ()
    written_out: int | None = None
    once: bool = False
    descending: bool = False
    span: Span | None = None
    guarded: tuple[ast.Call, ...] = ()
    doubled: tuple[Web, ...] = ()
    reads_early: bool = False
    asked: int = 0
    asks_start: bool = False
    asks_rest: str = ""

    @property
    def shallower(self) -> str:
        """That there are fewer buffers than num_stages asks for, and why; "" where there are as many."""
        has = self.schedule.buffers
        if has >= self.asked:
            return ""
        head = f"`for {self.index}` has {has} buffer{'s' * (has > 1)} where num_stages asks for {self.asked}"
        return f"{head}: " + ("it is filled again after its last read" if self.refills else "LDS has no room for more")

    @property
    def on_both_sides(self) -> tuple[Web, ...]:
        """What the producer and the consumer compute, each for its tile."""
        return (*self.shared, *self.doubled)

    @property
    def refills(self) -> bool:
        """Whether its tiles have one slot each, which is filled again after the last read (`gluonize.loops.passes.refill`)."""
        return self.schedule.mechanism == "copies" and self.schedule.refills

    def __str__(self) -> str:
        s = self.schedule
        lines = [f"line {self.loop.lineno}: `for {self.index}` pipelined, {s.mechanism}, {s.buffers} buffers"]
        for load in self.loads:
            tail = "tail masked by the load itself" if load.covered else "tail masked by the loop bound"
            how = " by the tensor data mover" if load.tile else ""
            where = "registers" if load.held else "LDS"
            how = " through registers" if s.mechanism == "copies" and load.stored else how
            lines.append(f"  line {load.line}: {load.name} {load.staged.shape} -> {where}{how}, {tail}")
        lines.append("  producer: " + ("; ".join(unparsed(p) for p in self.producer) or "addresses only"))
        if self.shared:
            lines.append("  computed twice: " + ", ".join(w.name for w in self.shared))
        if self.doubled:
            lines.append("  moved twice: " + ", ".join(w.name for w in self.doubled))
        if self.rolled_back:
            lines.append("  moved back after the loop: " + ", ".join(s.target.id for s in self.rolled_back))
        if self.once:
            return "\n".join([*lines, "  runs at most once: a branch, its tiles fetched at the top"])
        if s.mechanism == "partitions":
            return "\n".join([*lines, str(s)])
        if self.written_out is not None:
            lines.append(f"  written out: {self.written_out} tiles; only those that exist are fetched")
        lines.append(f"  prologue: tiles 0 to {s.prologue - 1}" if s.prologue > 1 else "  prologue: tile 0")
        fetch = "copy" if s.mechanism == "copies" else "load"
        wait = f"wait for all but {s.wait} groups, " if s.mechanism == "copies" and s.grouped else ""
        wait += f"wait for all but {s.tensor_wait} tensor copies, " if s.tensor_loads else ""
        read = "take tile i" if s.mechanism == "held" else f"read tile i from slot i % {s.buffers}"
        if self.refills:
            lines.append("  steady state: wait for the tile, read it, copy tile i + 1 behind its last read")
        else:
            lines.append(f"  steady state: {wait}{fetch} tile i + {s.ahead}, {read}")
        if self.written_out is None:
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
