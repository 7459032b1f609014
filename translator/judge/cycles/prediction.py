"""What is predicted of a compiled kernel: the cycles of its loops, what they are lost to, and the time of a whole launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from gluonize.judge.cycles.timeline import Lane
from gluonize.judge.cycles.traffic import Traffic
from gluonize.judge.lower.compile import Lowered

MOST_LOSSES = 20


@dataclass(frozen=True)
class Estimate:
    """microseconds: at the data sheet's clock, launching not counted. rounds: how often the compute units take workgroups in. clk: of
    one round. bytes: of all tensors, once; bandwidth_bound: moving these takes longer than computing. fetch_bound: L2 caches fetch for longer than anything else takes
    in the hottest loop. accuracy: for people.
    """

    microseconds: float
    rounds: int
    clk: float
    trips: dict[str, int]
    bytes: int
    bandwidth_bound: bool
    accuracy: str
    fetch_bound: bool = False

    def as_json(self) -> dict:
        return {
            "microseconds": round(self.microseconds, 2),
            "rounds": self.rounds,
            "clk": round(self.clk),
            "trips": self.trips,
            "bytes": self.bytes,
            "bandwidth_bound": self.bandwidth_bound,
            "fetch_bound": self.fetch_bound,
            "accuracy": self.accuracy,
        }


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

    cycles: in which all workgroups do one iteration each. alone: the same with one workgroup on the compute unit. matrix: of these, the matrix pipe of a SIMD is busy, for all its waves. work: matrix operations of one workgroup. bounds: clk
    that each resource needs for one iteration of all waves. causes, losses: what the idle time of the matrix pipe goes to, or
    without matrix instructions the waves' time; largest first. conflicts: accesses to LDS that take longer, (instruction, place,
    factor). unknown: accesses whose addresses are not known. repeats: iterations come back exactly. Where only the hottest loop was asked for,
    causes, losses and lanes are empty.
    """

    label: str
    place: str
    instructions: int
    waves: int
    workgroups: int
    cycles: float
    alone: float
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

    @property
    def of_one(self) -> LoopCycles:
        """The loop with all clocks but those of its lanes per iteration of one workgroup: what is shown, since kernels of which different
        numbers of workgroups share a compute unit compare in it."""
        n = self.workgroups
        return replace(
            self,
            cycles=self.cycles / n,
            matrix=self.matrix / n,
            bounds={name: clk / n for name, clk in self.bounds.items()},
            causes={cause: clk / n for cause, clk in self.causes.items()},
            losses=tuple(replace(loss, clk=loss.clk / n) for loss in self.losses),
        )

    def placed(self, place: Callable[[str], str]) -> LoopCycles:
        """The loop with other names of places."""
        return replace(
            self,
            place=place(self.place),
            losses=tuple(replace(loss, place=place(loss.place)) for loss in self.losses),
            conflicts=tuple((op, place(where), factor) for op, where, factor in self.conflicts),
            lanes=tuple(lane.placed(place) for lane in self.lanes),
        )

    def as_json(self) -> dict:
        """Clocks are those of one iteration of one workgroup, with one digit after the point; together: of all that share the compute
        unit. Losses are the twenty largest."""
        return self.of_one._as_json(self.cycles)

    def _as_json(self, together: float) -> dict:
        efficiency = self.efficiency
        return {
            "loop": self.label,
            "place": self.place,
            "instructions": self.instructions,
            "waves": self.waves,
            "workgroups": self.workgroups,
            "cycles": round(self.cycles, 1),
            "alone": round(self.alone, 1),
            "together": round(together, 1),
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


class Sized(Protocol):
    """What is known of a loop before it is walked."""

    @property
    def label(self) -> str: ...

    @property
    def matrix(self) -> float: ...

    @property
    def instructions(self) -> int: ...


Loop = TypeVar("Loop", bound=Sized)


def hottest(loops: Sequence[Loop], trips: Mapping[str, int]) -> Loop | None:
    """The loop that most is spent in: that with most matrix work, else the longest. Where the launch decides how often all loops
    go round (`trips`), and some does, that counts: what is left over behind whole blocks is executed once, if at all.
    """
    counts = [trips.get(x.label) for x in loops]
    known = None not in counts and any(counts)
    often = {x.label: n or 0 for x, n in zip(loops, counts)} if known else {}
    return max(loops, key=lambda x: tuple(n * often.get(x.label, 1) for n in (x.matrix, x.instructions)), default=None)


@dataclass(frozen=True)
class KernelCycles:
    """All innermost loops of a kernel, `hot` the one that most is spent in. outside: clk of what one wave set does once.

    error: what is known of the model's error on this target. notes: what was not modelled. estimate: of the whole launch, or why there
    is none; None where there is no launch. ctas: workgroups of a program. traffic: of one iteration of the hot loop. trips: how often
    the launch has a loop go round, by label, where it decides that. needed: part of the hot loop's matrix work that its products need. staying: programs for each compute unit, where programs go from tile to
    tile; 0 where there is one for each.
    """

    target: str
    num_warps: int
    loops: tuple[LoopCycles, ...]
    outside: float
    error: str
    notes: tuple[str, ...] = ()
    estimate: Estimate | str | None = None
    ctas: int = 1
    traffic: Traffic = Traffic(0, 0)
    trips: dict[str, int] = field(default_factory=dict)
    staying: int = 0
    needed: float = 1.0

    def named(self, names: Mapping[str, str]) -> KernelCycles:
        """The same with files under other names: a compile that is taken from a cache has those of the first that was made."""

        def place(found: str) -> str:
            file, colon, line = found.partition(":")
            return f"{names.get(file, file)}{colon}{line}"

        return replace(self, loops=tuple(loop.placed(place) for loop in self.loops))

    @property
    def hot(self) -> LoopCycles | None:
        """The loop that most is spent in."""
        return hottest(self.loops, self.trips)

    @property
    def work(self) -> float:
        """Operations of matrices in one iteration of a program's hottest loop, what nobody needs left out: by that, instructions which are
        too large for a product would look fast."""
        return self.hot.work * self.ctas * self.needed if self.hot else 0

    def as_json(self) -> dict:
        hot = self.hot
        return {
            "hot": hot.label if hot else None,
            "loops": [x.as_json() for x in self.loops],
            "outside": round(self.outside, 1),
            "traffic": {
                "read": self.traffic.read,
                "received": self.traffic.received,
                "fetched": round(self.traffic.fetched),
            },
            "error": self.error,
            "notes": list(self.notes),
            "estimate": self.estimate.as_json() if self.estimate and not isinstance(self.estimate, str) else None,
        }


@dataclass(frozen=True, kw_only=True)
class Walked(Lowered):
    """A compiled kernel whose loops were walked."""

    cycles: KernelCycles = field(hash=False)
