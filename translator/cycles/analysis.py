"""Cycles of every loop of a compiled kernel: efficiency of the matrix cores, bounds, and where the time goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rules.targets import Target, target as target_row
from rules.timing import TIMINGS, Timing
from translator.cycles.assembly import Program, read_program
from translator.cycles.losses import Loss, by_cause, matrix_losses, wave_losses
from translator.cycles.paths import Flow, LoopPath, Path, Step, follow_all
from translator.cycles.stream import LDS, MATRIX, MEMORY, VECTOR, Operation, Translator
from translator.cycles.timeline import Lane, lanes_of
from translator.cycles.walk import Deadlock, Wave, walk_loop, walk_once
from translator.lowering.amdgcn import comment_number, metadata_number

if TYPE_CHECKING:
    from translator.cycles.estimate import Estimate

MOST_LOSSES = 20
MOST_WAVES = 32  # of a compute unit: more of them repeat what these do


@dataclass(frozen=True)
class LineLoss:
    """`clk` per iteration lost at one instruction; place: "kernel.py:12", or ""."""

    instruction: str
    place: str
    cause: str
    clk: float


@dataclass(frozen=True)
class LoopCycles:
    """One innermost loop in its steady state, with `workgroups` on a compute unit.

    cycles: of one iteration of a wave. matrix: of these, the matrix pipe of a SIMD is busy, for all its waves. work: matrix operations of one workgroup. bounds: clk
    that each resource needs for one iteration of all waves. causes, losses: what the idle time of the matrix pipe goes to, or
    without matrix instructions the waves' time; largest first. conflicts: accesses to LDS that take longer, (instruction, place,
    factor). unknown: accesses whose addresses are not known. repeats: iterations come back exactly.
    """

    label: str
    place: str
    instructions: int
    waves: int
    workgroups: int
    cycles: float
    matrix: float
    work: int
    bounds: dict[str, float]
    causes: dict[str, float]
    losses: tuple[LineLoss, ...]
    conflicts: tuple[tuple[str, str, float], ...]
    unknown: int
    repeats: bool
    lanes: tuple[Lane, ...]

    @property
    def efficiency(self) -> float | None:
        """Part of the time that matrix pipes are busy, 0 to 1; None without matrix instructions."""
        return self.matrix / self.cycles if self.matrix else None

    @property
    def bound(self) -> str:
        """The resource that needs most of the time."""
        return max(self.bounds, key=lambda name: self.bounds[name])

    @property
    def distance(self) -> float:
        """How many times longer an iteration takes than its bound allows."""
        return self.cycles / self.bounds[self.bound]

    @property
    def per_workgroup(self) -> float:
        """Clocks of the compute unit per iteration of one workgroup."""
        return self.cycles / self.workgroups

    def as_json(self) -> dict:
        """Losses are the twenty largest; clocks with one digit after the point."""
        efficiency = self.efficiency
        return {
            "loop": self.label,
            "place": self.place,
            "instructions": self.instructions,
            "waves": self.waves,
            "workgroups": self.workgroups,
            "cycles": round(self.cycles, 1),
            "per_workgroup": round(self.per_workgroup, 1),
            "efficiency": None if efficiency is None else round(efficiency, 4),
            "bound": self.bound,
            "distance": round(self.distance, 3),
            "bounds": {name: round(clk, 1) for name, clk in self.bounds.items()},
            "lost": {cause: round(clk, 1) for cause, clk in self.causes.items()},
            "losses": [
                {"instruction": x.instruction, "place": x.place, "cause": x.cause, "clk": round(x.clk, 1)}
                for x in self.losses[:MOST_LOSSES]
            ],
            "conflicts": [{"instruction": op, "place": place, "factor": x} for op, place, x in self.conflicts],
            "unknown_addresses": self.unknown,
            "repeats": self.repeats,
        }


@dataclass(frozen=True)
class KernelCycles:
    """All innermost loops of a kernel, `hot` the one with most matrix work. outside: clk of what one wave set does once.

    error: what is known of the model's error on this target. notes: what was not modelled. estimate: of the whole launch, or why there
    is none; None where there is no launch.
    """

    target: str
    num_warps: int
    loops: tuple[LoopCycles, ...]
    outside: float
    error: str
    notes: tuple[str, ...] = ()
    estimate: Estimate | str | None = None

    @property
    def hot(self) -> LoopCycles | None:
        """The loop that most is spent in: that with most matrix work, else the longest."""
        return max(self.loops, key=lambda x: (x.matrix, x.instructions), default=None)

    def as_json(self) -> dict:
        hot = self.hot
        return {
            "hot": hot.label if hot else None,
            "loops": [x.as_json() for x in self.loops],
            "outside": round(self.outside, 1),
            "error": self.error,
            "notes": list(self.notes),
            "estimate": self.estimate.as_json() if self.estimate and not isinstance(self.estimate, str) else None,
        }


def analyze(
    assembly: str, target: str, num_warps: int, lds_bytes: int = 0, timing: Timing | None = None
) -> KernelCycles:
    """Walk the loops of an assembly text. lds_bytes: of one workgroup, for how many share a compute unit."""
    row = target_row(target)
    timing = timing or TIMINGS[target]
    program = read_program(assembly)
    flow = Flow(program)
    paths = follow_all(flow, num_warps, row.warp_size)
    vgprs = max(metadata_number(assembly, "vgpr_count"), comment_number(assembly, "TotalNumVgprs"))
    waves = row.occupancy(vgprs, lds_bytes, num_warps) * row.simds
    workgroups = max(1, min(waves, MOST_WAVES) // num_warps)
    view = _Kernel(program, row, timing, paths, workgroups)
    loops = tuple(found for header in view.headers() if (found := view.loop(header)) is not None)
    return KernelCycles(target, num_warps, loops, view.outside(), timing.error, tuple(view.notes))


class _Kernel:
    """The streams of one kernel's waves."""

    def __init__(self, program: Program, target: Target, timing: Timing, paths: list[Path], workgroups: int):
        self.program, self.target, self.timing = program, target, timing
        self.paths, self.workgroups = paths, workgroups
        self.translator = Translator(program.lines, target, timing)
        self.notes: list[str] = []

    def headers(self) -> list[int]:
        """Headers of innermost loops, in the order they are reached."""
        found = [x.header for path in self.paths for x in _innermost(path)]
        return list(dict.fromkeys(found))

    def loop(self, header: int) -> LoopCycles | None:
        translator = Translator(self.program.lines, self.target, self.timing)
        members = [(n, x) for n, path in enumerate(self.paths) for x in _innermost(path) if x.header == header]
        members = list({n: (n, x) for n, x in reversed(members)}.values())[::-1]
        label = self.program.lines[header].label
        if len(members) < len(self.paths):
            self._note(
                f"{label}: only {len(members)} of {len(self.paths)} waves run it; what it waits for others is not modelled"
            )
        leads = [_barriers_before(self.paths[n], header, self.program) for n, _ in members]
        once = {id(x): translator.operations(x.body) for _, x in members}
        streams = [once[id(x)] for _, x in members]
        waves = []
        for group in range(self.workgroups):
            for (n, _), lead, stream in zip(members, leads, streams):
                order = group * len(self.paths) + n
                waves.append(Wave(order, order % self.target.simds, group, stream, lead=lead - min(leads)))
        try:
            steady = walk_loop(waves, self.timing, self.target.simds)
        except Deadlock:
            self._note(f"{label}: its waves do not meet at the same barriers, so it was not walked")
            return None
        return self._result(header, translator, waves, steady.cycles, steady.repeats)

    def _result(
        self, header: int, translator: Translator, waves: list[Wave], cycles: float, repeats: bool
    ) -> LoopCycles:
        lines = self.program.lines
        matrix = self._per_simd(waves, MATRIX)
        losses = matrix_losses(waves, self.target.simds) if matrix else wave_losses(waves)
        if translator.inexact:
            self._note(f"no published cycles for {', '.join(sorted(translator.inexact))}: in proportion to others")
        conflicts = [(lines[n].op, lines[n].place, factor) for n, factor in sorted(translator.conflicts.items())]
        places = [lines[o.line].place for o in waves[0].stream if o.kind == MATRIX] or [
            lines[o.line].place for o in waves[0].stream
        ]
        return LoopCycles(
            label=lines[header].label,
            place=max(sorted(set(places)), key=places.count),
            instructions=len(waves[0].stream),
            waves=len(waves),
            workgroups=self.workgroups,
            cycles=cycles,
            matrix=matrix,
            work=sum(o.work for w in waves for o in w.stream) // self.workgroups,
            bounds=self._bounds(waves),
            causes=by_cause(losses),
            losses=tuple(self._named(x) for x in losses),
            conflicts=tuple(conflicts),
            unknown=len(translator.unknown),
            repeats=repeats,
            lanes=lanes_of(waves, lines),
        )

    def _named(self, loss: Loss) -> LineLoss:
        line = self.program.lines[loss.line]
        return LineLoss(f"{line.op} {line.operands}".strip(), line.place, loss.cause, loss.clk)

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
        kib = sum(o.size for o in every if o.kind == MEMORY)
        found = {
            "matrix": matrix,
            "vector": vector + (matrix if timing.matrix_alone else 0),
            "issue": float(max(sum(o.issue for o in w.stream) for w in waves)),
            "LDS": sum(o.clk for o in every if o.kind == LDS),
            "memory unit": sum(o.clk for o in every if o.kind == MEMORY),
            "bytes in flight": kib * timing.memory_latency / (timing.in_flight + timing.memory_queue),
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
        count += program.lines[item.line].op in ("s_barrier", "s_barrier_signal")
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
