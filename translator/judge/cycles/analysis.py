"""Cycles of every loop of a compiled kernel: efficiency of the matrix cores, bounds, and where the time goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gluonize.judge.cycles.code.assembly import Line, Program, read_program
from gluonize.judge.cycles.code.executed_paths import Flow, LoopPath, Path, Step, follow_all
from gluonize.judge.cycles.code.stream import (  # fmt: skip
    ARRIVE,
    BARRIER,
    LDS,
    MATRIX,
    MEET,
    MEMORY,
    TILE,
    VECTOR,
    Operation,
    Translator,
)
from gluonize.judge.cycles.losses import Loss, by_cause, matrix_losses, wave_losses
from gluonize.judge.cycles.prediction import KernelCycles, LineLoss, LoopCycles, hottest
from gluonize.judge.cycles.timeline import lanes_of
from gluonize.judge.cycles.walk import MOST_ITERATIONS, Deadlock, Walk, Wave
from gluonize.judge.lower.amdgcn import comment_number, metadata_number
from gluonize.rules.targets import Target
from gluonize.rules.targets import target as target_row
from gluonize.rules.timing import Timing

# The steady state of a loop that all waves of a compute unit walk.

FEWEST_ITERATIONS = 8  # also of a loop that is so long that MOST_OPERATIONS would allow fewer
MOST_OPERATIONS = 80_000
STEADY = 0.002  # iterations that differ by less than this part, in the mean of a third of them, are steady enough
_TRACED = 3  # the last of the most iterations, which are walked anyway


@dataclass(frozen=True)
class Steady:
    """A loop in its steady state. cycles: of one iteration of a wave, in the mean. period: traced iterations per wave.

    waves: with their events of the traced iterations, if any. repeats: whether iterations come back exactly after `period`.
    """

    cycles: float
    period: int
    waves: tuple[Wave, ...]
    repeats: bool


def walk_loop(waves: list[Wave], timing: Timing, simds: int, traced: bool = True) -> Steady:
    """Iterate until iterations repeat or hardly differ, at most MOST_ITERATIONS times, tracing as many as repeat where they are to be `traced`.

    Raises: Deadlock.
    """
    walk = Walk(waves, timing, simds)
    affordable = MOST_OPERATIONS // sum(len(w.stream) for w in waves)
    most = max(FEWEST_ITERATIONS, min(affordable, MOST_ITERATIONS))
    iterations = period = 0
    first_traced = most - _TRACED
    while not period and iterations < most and not _settled(waves, iterations):
        walk.tracing = traced and iterations >= first_traced
        iterations += 1
        walk.advance(iterations)
        if any(len(w.starts) <= iterations for w in waves):
            raise Deadlock
        period = next((p for p in (1, 2, 3) if all(_repeats(w.starts[: iterations + 1], p) for w in waves)), 0)
    repeats, period = bool(period), period or 1
    if traced:
        walk.tracing = True
        # An iteration that is under way is not traced whole: the next ones are, and one more so that each has its end.
        walk.advance(min(iterations, first_traced) + 2 * period + 1)
        for wave in waves:
            del wave.events[period:]
    first = iterations - iterations // 3 if not repeats else iterations - period
    spans = [(w.starts[iterations] - w.starts[first]) / (iterations - first) for w in waves]
    return Steady(sum(spans) / len(spans), period, tuple(waves), repeats)


def _settled(waves: list[Wave], iterations: int) -> bool:
    """Whether the last third of the iterations took as long as the third before, but for STEADY."""
    third = iterations // 3
    if iterations < 2 * FEWEST_ITERATIONS or iterations % 3:
        return False
    ends = [sum(w.starts[n * third] for w in waves) for n in (1, 2, 3)]
    before, after = ends[1] - ends[0], ends[2] - ends[1]
    return abs(after - before) < STEADY * before


def _repeats(starts: list[float], period: int) -> bool:
    """Whether the last `period` iterations took exactly as long as those before, and those before them."""
    if len(starts) < 3 * period + 2:
        return False
    spans = [starts[-1 - n * period] - starts[-1 - (n + 1) * period] for n in range(3)]
    return spans[0] == spans[1] == spans[2]


def walk_once(waves: list[Wave], timing: Timing, simds: int) -> float:
    """Clocks until the last wave is through its stream once. Raises: Deadlock."""
    walk = Walk(waves, timing, simds, loop=False)
    walk.advance(1)
    if any(len(w.starts) < 2 for w in waves):
        raise Deadlock
    return max(w.starts[1] for w in waves)


MOST_WAVES = 32  # of a compute unit: more of them repeat what these do


def analyze(
    assembly: str,
    target: str,
    num_warps: int,
    lds_bytes: int = 0,
    timing: Timing | None = None,
    tiles: Mapping[str, float] | None = None,
    hottest_with: Mapping[str, int] | None = None,
    most: int = 0,
) -> KernelCycles:
    """Walk the loops of an assembly text. lds_bytes: of one workgroup, for how many share a compute unit. tiles: bytes of a workgroup that
    a copy of the tensor data mover moves, by its place. hottest_with: how often the launch has a loop go round, by label; then only the
    hottest loop is walked, for what it costs. most: workgroups that are launched for a compute unit, 0 for as many as it holds.
    """
    row = target_row(target)
    timing = timing or row.timing
    program = read_program(assembly)
    flow = Flow(program)
    paths = follow_all(flow, num_warps, row.warp_size)
    vgprs = max(metadata_number(assembly, "vgpr_count"), comment_number(assembly, "TotalNumVgprs"))
    waves = row.occupancy(vgprs, lds_bytes, num_warps) * row.simds
    workgroups = max(1, min(waves, MOST_WAVES) // num_warps)
    workgroups = min(workgroups, most or workgroups)
    view = _Kernel(program, row, timing, paths, workgroups, _shares(program, paths, tiles or {}))
    if hottest_with is None:
        loops = tuple(found for loop in view.loops() if (found := view.walked(loop)) is not None)
    else:
        loops = view.hottest(hottest_with)
    return KernelCycles(target, num_warps, loops, view.outside(), timing.error, tuple(view.notes))


@dataclass(frozen=True, eq=False)
class _Waves:
    """The waves of a compute unit that execute a loop, before they walk. matrix, instructions: as of `LoopCycles`."""

    header: int
    label: str
    translator: Translator
    waves: list[Wave]
    matrix: float
    instructions: int


class _Kernel:
    """The streams of one kernel's waves."""

    def __init__(
        self,
        program: Program,
        target: Target,
        timing: Timing,
        paths: list[Path],
        workgroups: int,
        tiles: dict[int, float],
    ):
        self.program, self.target, self.timing = program, target, timing
        self.paths, self.workgroups, self.tiles = paths, workgroups, tiles
        self.translator = Translator(program.lines, target, timing, tiles)
        self.notes: list[str] = []
        if any(_is_tile(line) and n not in tiles for n, line in enumerate(program.lines)):
            self._note("tiles whose size is not known, which the tensor data mover copies, have a latency and no cost")
        if any(line.op == "s_barrier_wait" and line.of_cluster for line in program.lines):
            self._note("what a workgroup waits for others of its cluster is not modelled")

    def headers(self) -> list[int]:
        """Headers of innermost loops, in the order they are reached."""
        found = [x.header for path in self.paths for x in _innermost(path)]
        return list(dict.fromkeys(found))

    def loops(self) -> list[_Waves]:
        return [self._waves(header) for header in self.headers()]

    def hottest(self, trips: Mapping[str, int]) -> tuple[LoopCycles, ...]:
        """The hottest loop that can be walked; none without loops."""
        loops = self.loops()
        while (hot := hottest(loops, trips)) is not None:
            if (found := self.walked(hot, traced=False)) is not None:
                return (found,)
            loops = [x for x in loops if x is not hot]
        return ()

    def _waves(self, header: int) -> _Waves:
        translator = Translator(self.program.lines, self.target, self.timing, self.tiles)
        members = [(n, x) for n, path in enumerate(self.paths) for x in _innermost(path) if x.header == header]
        members = list({n: (n, x) for n, x in reversed(members)}.values())[::-1]
        label = self.program.lines[header].label
        if len(members) < len(self.paths):
            self._note(
                f"{label}: only {len(members)} of {len(self.paths)} waves run it; what it waits for others is not modelled"
            )
        once = {id(x): translator.operations(x.body) for _, x in members}
        streams = [once[id(x)] for _, x in members]
        leads = [_barriers_before(self.paths[n], header, self.program) for n, _ in members]
        if not any(o.kind in (BARRIER, ARRIVE, MEET) for stream in once.values() for o in stream):
            leads = [0] * len(members)  # waves that do not meet are as far apart as they like
        waves = []
        for group in range(self.workgroups):
            for (n, _), lead, stream in zip(members, leads, streams):
                order = group * len(self.paths) + n
                waves.append(Wave(order, order % self.target.simds, group, stream, lead=lead - min(leads)))
        return _Waves(header, label, translator, waves, self._per_simd(waves, MATRIX), len(waves[0].stream))

    def walked(self, loop: _Waves, traced: bool = True) -> LoopCycles | None:
        """The loop in its steady state, and where its time goes if `traced`; None where its waves wait for each other for ever."""
        try:
            steady = walk_loop(loop.waves, self.timing, self.target.simds, traced)
            alone = self._alone(loop) if self.workgroups > 1 else steady.cycles
        except Deadlock:
            self._note(f"{loop.label}: its waves do not meet at the same barriers, so it was not walked")
            return None
        return self._result(loop, steady, alone, traced)

    def _alone(self, loop: _Waves) -> float:
        """Clocks of an iteration with one workgroup on the compute unit. Raises: Deadlock."""
        waves = [Wave(w.order, w.simd, w.group, w.stream, lead=w.lead) for w in loop.waves if w.group == 0]
        return walk_loop(waves, self.timing, self.target.simds, False).cycles

    def _result(self, loop: _Waves, steady: Steady, alone: float, traced: bool) -> LoopCycles:
        lines, waves, matrix, translator = self.program.lines, loop.waves, loop.matrix, loop.translator
        losses: tuple[Loss, ...] = ()
        if traced:
            losses = matrix_losses(waves, self.target.simds) if matrix else wave_losses(waves)
        if translator.inexact:
            self._note(f"no published cycles for {', '.join(sorted(translator.inexact))}: in proportion to others")
        bounds = self._bounds(waves)
        least, needs = max((clk, name) for name, clk in bounds.items())
        if steady.cycles < least:
            self._note(f"{loop.label}: waves could go round in {steady.cycles:.0f} clk, but {needs} takes {least:.0f}")
        conflicts = [(lines[n].op, lines[n].statement, factor) for n, factor in sorted(translator.conflicts.items())]
        stream = [o for o in waves[0].stream if o.kind == MATRIX] or waves[0].stream
        places = [_where(lines[o.line]) for o in stream]
        return LoopCycles(
            label=loop.label,
            place=max(sorted(set(places)), key=places.count),
            instructions=loop.instructions,
            waves=len(waves),
            workgroups=self.workgroups,
            cycles=max(steady.cycles, least),
            alone=max(alone, least / self.workgroups),
            matrix=matrix,
            work=sum(o.work for w in waves for o in w.stream) // self.workgroups,
            bounds=bounds,
            causes=by_cause(losses),
            losses=tuple(self._named(x) for x in losses),
            conflicts=tuple(conflicts),
            unknown=len(translator.unknown),
            repeats=steady.repeats,
            lanes=lanes_of(waves, lines) if traced else (),
        )

    def _named(self, loss: Loss) -> LineLoss:
        line = self.program.lines[loss.line]
        return LineLoss(f"{line.op} {line.operands}".strip(), line.statement, loss.cause, loss.clk)

    def _per_simd(self, waves: Sequence[Wave], kind: int) -> float:
        """Clocks of a unit that each SIMD has, of the SIMD that needs most."""
        sums = [0.0] * self.target.simds
        for wave in waves:
            sums[wave.simd] += sum(o.clk for o in wave.stream if o.kind == kind)
        return max(sums)

    def _bounds(self, waves: Sequence[Wave]) -> dict[str, float]:
        timing = self.timing
        matrix, vector = self._per_simd(waves, MATRIX), self._per_simd(waves, VECTOR)
        every: list[Operation] = [o for w in waves for o in w.stream]
        moves = [o for o in every if o.kind in (MEMORY, TILE)]
        found = {
            "matrix": matrix,
            "vector": vector + (0 if self.target.separate_matrix_pipe else matrix),
            "issue": float(max(sum(o.issue for o in w.stream) for w in waves)),
            "LDS": sum(o.clk for o in every if o.kind == LDS),
            "memory unit": sum(o.clk for o in moves),
            "bytes in flight": sum(o.size for o in moves)
            * timing.memory_latency
            / (timing.in_flight + timing.memory_queue),
        }
        return {name: clk for name, clk in found.items() if clk or name == "issue"}

    def outside(self) -> float:
        """Clocks of what is outside of innermost loops, walked once by one workgroup."""
        once = {id(path): self.translator.operations(list(_outside(path))) for path in self.paths}
        streams = [once[id(path)] for path in self.paths]
        waves = [Wave(n, n % self.target.simds, 0, stream) for n, stream in enumerate(streams)]
        try:
            return walk_once(waves, self.timing, self.target.simds) if all(streams) else 0.0
        except Deadlock:
            self._note("the waves do not meet at the same barriers outside of loops: only loops are timed")
            return 0.0

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _where(line: Line) -> str:
    """The statement, and for one in a helper the call that it is of: a helper's loop may be there several times."""
    file, _, number = line.place.rpartition(":")
    if line.statement == line.place:
        return line.place
    return f"{line.statement} (call {number if line.statement.startswith(f'{file}:') else line.place})"


def _is_tile(line: Line) -> bool:
    return line.op in ("tensor_load_to_lds", "tensor_store_from_lds")


def _shares(program: Program, paths: list[Path], tiles: Mapping[str, float]) -> dict[int, float]:
    """Bytes that a copy of the tensor data mover moves for one wave, by its line: each wave that executes it has its part of the tile."""
    executed: Counter[int] = Counter()
    for path in paths if tiles else ():
        executed.update({x.line for x in _steps(path) if _is_tile(program.lines[x.line])})
    sizes = {n: tiles.get(program.lines[n].place, 0) / waves for n, waves in executed.items()}
    return {n: size for n, size in sizes.items() if size}


def _steps(path: Path) -> Iterator[Step]:
    for item in path:
        if isinstance(item, Step):
            yield item
        else:
            yield from _steps(item.body)


def _innermost(path: Path) -> Iterator[LoopPath]:
    for item in path:
        if isinstance(item, LoopPath):
            inner = list(_innermost(item.body))
            yield from inner or [item]


def _outside(path: Path) -> Iterator[Step]:
    for item in path:
        if isinstance(item, Step):
            yield item
        elif any(isinstance(x, LoopPath) for x in item.body):
            yield from _outside(item.body)


def _barriers_before(path: Path, header: int, program: Program) -> int:
    """Barriers that a wave passes before the loop, each loop on the way counted once."""
    count = 0
    for item in _flat_until(path, header):
        line = program.lines[item.line]
        count += line.op in ("s_barrier", "s_barrier_signal") and not line.of_cluster
    return count


def _flat_until(path: Path, header: int) -> Iterator[Step]:
    for item in path:
        if isinstance(item, Step):
            yield item
        elif item.header == header:
            return
        elif any(x.header == header for x in _innermost(item.body)):
            yield from _flat_until(item.body, header)
            return
        else:
            yield from _flat_until(item.body, -1)
