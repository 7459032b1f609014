"""Microseconds of a whole launch: what is outside of loops, loops by their trip counts, rounds of workgroups, bytes of tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from gluonize.judge.cycles.launch.spread import Spread, compute_units, iteration_clk, spread
from gluonize.judge.cycles.prediction import Estimate, KernelCycles
from gluonize.judge.cycles.traffic import Traffic
from gluonize.read.launches.sites.persistent import Shared
from gluonize.read.spec.launch import LaunchSpec
from gluonize.rules.targets import Target
from gluonize.rules.timing import Timing

_WORD_BYTES = 4


def estimate(
    found: KernelCycles, trips: dict[str, int | None], spec: LaunchSpec, target: Target, timing: Timing
) -> Estimate | str:
    """The estimate of a launch, or why there is none. trips: by the label of the loop."""
    if not target.clock_ghz or not target.compute_units:
        return f"clock and compute units of {target.name} are not published"
    if not spec.grid:
        return "the launch has no grid"
    unknown = [x.place or x.label for x in found.loops if trips.get(x.label) is None]
    if unknown:
        return f"the launch does not decide how often the loop at {unknown[0]} goes round"
    if not found.loops and not found.outside:
        return "the kernel could not be walked"
    full = max((x.workgroups for x in found.loops), default=1)
    launch = spread(spec.grid, found.ctas, full, target, timing)
    clk = found.outside
    for loop in found.loops:
        traffic = found.traffic if loop is found.hot else Traffic(0, 0)
        clk += trips[loop.label] * iteration_clk(loop, traffic, found.ctas, launch, timing)
    computing = launch.rounds * clk / (target.clock_ghz * 1e3)
    size = tensor_bytes(spec)
    moving = size / (timing.memory_tbs * 1e6) if timing.memory_tbs else 0.0
    return Estimate(
        microseconds=max(computing, moving),
        rounds=launch.rounds,
        clk=clk,
        trips={x.label: trips[x.label] for x in found.loops},
        bytes=size,
        bandwidth_bound=moving > computing,
        accuracy=timing.whole_error,
        fetch_bound=_fetch_bound(found, launch, timing),
    )


@dataclass(frozen=True)
class Shares:
    """How programs share the steps of tiles. programs: along all axes; steps: of one program at most; tiles: parts of tiles that it has at most;
    added: sums of others that it adds to its own of one tile at most."""

    programs: int
    steps: int
    tiles: int
    added: int


def shares(spec: LaunchSpec, steps: int, per_unit: int, target: Target, timing: Timing) -> Shares:
    """The shares of a launch with so many steps for each tile, and so many programs for each compute unit."""
    tiles, *others = spec.grid
    apart = math.prod(others)
    room = max(1, int(compute_units(target, timing) * per_unit) // max(1, apart))
    programs = max(1, min(room, tiles * max(1, steps)))
    own = math.ceil(tiles * steps / programs)
    if not tiles % programs or not steps:
        return Shares(programs * apart, own, max(1, tiles // programs), 0)
    return Shares(programs * apart, own, (own + steps - 2) // steps + 1, math.ceil(steps / own))


def estimate_shared(
    found: KernelCycles, steps: int, shared: Shared, spec: LaunchSpec, target: Target, timing: Timing
) -> Estimate | str:
    """The estimate of a launch whose programs share the steps of tiles: all at once, each with its share of the hot loop, its sums of a
    tile that is cut stored, and those of others added one after another. steps: of a tile."""
    if not target.clock_ghz or not target.compute_units:
        return f"clock and compute units of {target.name} are not published"
    hot = found.hot
    if hot is None:
        return "the kernel could not be walked"
    own = shares(spec, steps, shared.per_unit, target, timing)
    launch = spread((own.programs,), found.ctas, hot.workgroups, target, timing)
    clk = found.outside * own.tiles + own.steps * iteration_clk(hot, found.traffic, found.ctas, launch, timing)
    moved = launch.resident * shared.elements * _WORD_BYTES * (own.added + 1) if own.added else 0
    clk += moved / min(timing.port_bytes, timing.l2_bytes)
    computing = launch.rounds * clk / (target.clock_ghz * 1e3)
    size = tensor_bytes(spec)
    moving = size / (timing.memory_tbs * 1e6) if timing.memory_tbs else 0.0
    trips, fetch = {hot.label: own.steps}, _fetch_bound(found, launch, timing)
    bound = moving > computing
    return Estimate(max(computing, moving), launch.rounds, clk, trips, size, bound, timing.whole_error, fetch)


def _fetch_bound(found: KernelCycles, launch: Spread, timing: Timing) -> bool:
    """Whether an iteration of the hot loop would take less time if L2 had all that it is asked for."""
    if found.hot is None:
        return False
    whole, held = found.traffic, replace(found.traffic, fetched=0.0)
    return iteration_clk(found.hot, whole, found.ctas, launch, timing) > iteration_clk(
        found.hot, held, found.ctas, launch, timing
    )


def tensor_bytes(spec: LaunchSpec) -> int:
    """Bytes of all tensors that the launch gives."""
    total = 0
    for value in spec.values.values():
        tensor = value.get("tensor") if isinstance(value, dict) else None
        if tensor:
            bits = "".join(x for x in tensor["dtype"].partition("_")[0] if x.isdigit())
            total += math.prod(tensor["shape"]) * max(1, int(bits or 8) // 8)
    return total


def argument_words(spec: LaunchSpec, offsets: list[int]) -> dict[int, int]:
    """Offset in 32-bit words -> value of the integer arguments. offsets: in bytes, of the kernel's arguments in order."""
    names = [name for name, kind in spec.signature.items() if kind != "constexpr"]
    if any(isinstance(kind, (list, dict)) for kind in spec.signature.values()):
        return {}
    words: dict[int, int] = {}
    for name, offset in zip(names, offsets):
        value, kind = spec.values.get(name), str(spec.signature[name])
        if isinstance(value, int) and kind.lstrip("iu").isdigit() and offset % _WORD_BYTES == 0:
            words[offset // _WORD_BYTES] = value & 0xFFFFFFFF
            if kind.endswith("64"):
                words[offset // _WORD_BYTES + 1] = value >> 32 & 0xFFFFFFFF
    return words


def argument_offsets(assembly: str) -> list[int]:
    """Byte offsets of the kernel's arguments, from the metadata."""
    offsets: list[int] = []
    inside = False
    for line in assembly.rpartition(".amdgpu_metadata")[2].splitlines():
        words = line.replace("- ", "  ").split()
        if words[:1] == [".args:"]:
            inside = True
        elif inside and words[:1] == [".offset:"]:
            offsets.append(int(words[1]))
        elif inside and words[:1] == [".group_segment_fixed_size:"]:
            break
    return offsets
