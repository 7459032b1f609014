"""Cycles for a terminal: a table of the loops, and what one loop's time goes to."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from gluonize.judge.cycles.prediction import Estimate, KernelCycles, LoopCycles
from gluonize.judge.cycles.timeline import LETTERS, as_text
from gluonize.rules.targets import target as target_row

MOST_LINES = 10
UNIT = "clk per workgroup"  # and iteration
_COLUMNS = (UNIT, "waves", "instructions", "matrix cores", "bound", "distance", "lost most to")


def table_of_loops(title: str, ours: KernelCycles, theirs: KernelCycles | None) -> Table:
    """A row per loop: clocks of one iteration of one workgroup, how busy matrix cores are, and what bounds them. Triton's rows follow."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("loop")
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name in ("bound", "lost most to") else "right")
    for kernel, name in ((ours, ""), (theirs, "Triton: ")):
        for loop in kernel.loops if kernel else ():
            table.add_row(name + (loop.place or loop.label), *_cells(loop.of_one))
        if kernel and not kernel.loops:
            table.add_row(name + "no loop", f"{kernel.outside:.0f}", *[""] * (len(_COLUMNS) - 1))
    return table


def _cells(loop: LoopCycles) -> tuple[str, ...]:
    efficiency = "" if loop.efficiency is None else f"{loop.efficiency:.1%}"
    lost = next((f"{cause} ({clk:.0f})" for cause, clk in loop.causes.items()), "")
    waves = f"{loop.waves}" if loop.workgroups == 1 else f"{loop.waves} of {loop.workgroups} workgroups"
    cells = (f"{loop.cycles:.0f}", waves, str(loop.instructions), efficiency, loop.bound, f"{loop.distance:.2f}x", lost)
    return cells


def lines_of_loop(loop: LoopCycles) -> Iterator[str]:
    """What one loop needs, what it loses at which lines, and a lane per wave over one iteration."""
    together, loop = loop.cycles, loop.of_one
    shared = f" ({together:.0f} clk for the {loop.workgroups} that share a compute unit)" if loop.workgroups > 1 else ""
    where = f"One iteration of the loop at {loop.place or loop.label}"
    yield f"{where}, {loop.cycles:.0f} clk for a workgroup{shared}; each resource needs:"
    yield "  " + ", ".join(f"{name} {clk:.0f}" for name, clk in sorted(loop.bounds.items(), key=lambda x: -x[1]))
    what = "matrix pipes are idle while their wave is held by" if loop.matrix else "time of a wave"
    yield f"{what}: " + ", ".join(f"{cause} {clk:.0f}" for cause, clk in loop.causes.items())
    for loss in loop.losses[:MOST_LINES]:
        yield f"  {loss.clk:7.0f}  {loss.cause:13} {loss.place or '-':24} {loss.instruction[:60]}"
    for op, place, factor in _worst(loop):
        yield f"  bank conflicts: {op} at {place or '-'} takes {factor:.2g} times as long"
    if loop.unknown:
        yield f"  addresses of {loop.unknown} accesses to LDS are not known: taken as free of conflicts"
    if not loop.repeats:
        yield "  iterations do not repeat exactly: the mean of the last ones"
    yield from as_text(loop.lanes)
    yield "  " + " ".join(f"{letter} {what}" for what, letter in LETTERS.items())


def _worst(loop: LoopCycles) -> list[tuple[str, str, float]]:
    """One per mnemonic, source line and factor."""
    return sorted(set(loop.conflicts), key=lambda x: (-x[2], x[0], x[1]))[:MOST_LINES]


def fetch_line(found: KernelCycles) -> str:
    """What the L2 cache of an XCD fetches for one iteration of the hot loop, "" where that is not known."""
    size, per_clk = found.traffic.fetched, target_row(found.target).timing.fetch_bytes
    if not size or not per_clk:
        return ""
    return (
        f"L2 of an XCD fetches {size / 1024:.0f} KiB for one iteration of all programs on it: {size / per_clk:.0f} clk"
    )


def estimate_line(found: Estimate | str) -> str:
    """The whole launch in a line, or why there is none."""
    if isinstance(found, str):
        return f"no estimate of the whole launch: {found}"
    trips = ", ".join(f"{n} times {label}" for label, n in found.trips.items()) or "no loop"
    said = (
        f"{found.microseconds:.1f} us {found.accuracy}: {found.rounds} round{'s' if found.rounds > 1 else ''}, {trips}"
    )
    if found.bandwidth_bound:
        return said + "; bound by the bandwidth of memory"
    fetching = "; bound by what the L2 caches of XCDs fetch, at the most that they can: take the time for too short"
    return said + (fetching if found.fetch_bound else "")
