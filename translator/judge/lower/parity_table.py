"""Parity and metrics as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from gluonize.judge.lower.metrics import KernelMetrics
from gluonize.judge.lower.parity import KERNEL_ROWS, MAX_INSTRUCTIONS, MIX_ROWS, WIDTH_ROWS, Parity, ratio

# Metrics of which more is better: a ratio above 1 is no cause for alarm.
_MORE_IS_BETTER = ("occupancy", "mma", "lds_dma", "tdm")


def parity_table(parity: Parity) -> Table:
    """Every metric that either side has: translation, Triton, ratio; the hottest loop in columns of its own."""
    table = Table(title=f"{parity.kernel} on {parity.target}", title_justify="left", box=None, pad_edge=False)
    table.add_column("metric")
    for name in ("gluon", "triton", "ratio"):
        table.add_column(name, justify="right")
    loops = parity.translated.loop is not None or parity.triton.loop is not None
    if loops:
        for name in ("loop", "triton", "ratio"):
            table.add_column(name, justify="right")
    mine, other = parity.unrolled()
    in_loop = {name: (ours, theirs) for name, ours, theirs in parity.loop_rows()}
    for name, ours, theirs in parity.rows():
        if not ours and not theirs:
            continue
        cells = [name, str(ours), str(theirs), _ratio(name, ours, theirs)]
        if loops and name in in_loop and any(in_loop[name]):
            inner = in_loop[name]
            cells += [str(inner[0]), str(inner[1]), _ratio(name, inner[0] * other, inner[1] * mine)]
        table.add_row(*cells)
    if mine != other:
        table.add_row("tiles per pass", "", "", "", str(mine), str(other))
    for kind in WIDTH_ROWS:
        ours, theirs = parity.widths(kind)
        if ours or theirs:
            table.add_row(f"{kind} bits", f"{ours:.0f}", f"{theirs:.0f}", _ratio("mma", ours, theirs))
    return table


def parity_summary(parities: Iterable[Parity]) -> Table:
    """One line per kernel and target: the figures that decide."""
    table = Table(box=None, pad_edge=False)
    for name in ("kernel", "target"):
        table.add_column(name)
    for name in ("insns", "loop", "mma", "LDS ops", "VGPRs", "spills", "LDS bytes"):
        table.add_column(name, justify="right")
    table.add_column("")
    for p in parities:
        ours, theirs = p.translated, p.triton
        mine, other = p.unrolled()
        table.add_row(
            p.kernel,
            p.target,
            _ratio("insns", ours.mix.insns, theirs.mix.insns),
            _ratio("insns", ours.loop.insns * other, theirs.loop.insns * mine) if p.same_loop() else "-",
            _pair(ours.mix.mma, theirs.mix.mma),
            _pair(ours.mix.ds, theirs.mix.ds),
            _pair(ours.vgpr, theirs.vgpr),
            _pair(ours.spill, theirs.spill),
            _pair(ours.lds_bytes, theirs.lds_bytes),
            Text(p.note) if p.note else Text("; ".join(p.regressions()), style="yellow"),
        )
    return table


def metrics_summary(compiled: Iterable[tuple[str, str, KernelMetrics]]) -> Table:
    """One line per launch and target, given with their names: the figures that decide."""
    table = Table(box=None, pad_edge=False)
    for name in ("kernel", "target"):
        table.add_column(name)
    for name in ("insns", "loop", "mma", "LDS ops", "VGPRs", "SGPRs", "spills", "LDS bytes", "occupancy"):
        table.add_column(name, justify="right")
    for name, target, m in compiled:
        loop = m.loop.insns if m.loop else "-"
        figures = (m.mix.insns, loop, m.mix.mma, m.mix.ds, m.vgpr, m.sgpr, m.spill, m.lds_bytes, m.occupancy)
        table.add_row(name, target, *map(str, figures))
    return table


def metrics_table(kernel: str, target: str, metrics: KernelMetrics) -> Table:
    """One kernel's metrics, the hottest loop beside the whole."""
    table = Table(title=f"{kernel} on {target}", title_justify="left", box=None, pad_edge=False)
    table.add_column("metric")
    table.add_column("kernel", justify="right")
    if metrics.loop:
        table.add_column("hottest loop", justify="right")
    for name in MIX_ROWS:
        inner = getattr(metrics.loop, name) if metrics.loop else 0
        if getattr(metrics.mix, name) or inner:
            table.add_row(name, str(getattr(metrics.mix, name)), *([str(inner)] if metrics.loop else []))
    for name in KERNEL_ROWS:
        if value := getattr(metrics, name):
            table.add_row(name, str(value))
    for kind, widths in metrics.mix.widths.items():
        table.add_row(f"{kind} bits", ", ".join(f"{bits} x{n}" for bits, n in widths.items()))
    return table


def _ratio(name: str, ours: float, theirs: float) -> Text:
    value = ratio(ours, theirs)
    if value is None:
        return Text("new", style="" if name in _MORE_IS_BETTER else "yellow")
    worse = value > MAX_INSTRUCTIONS and name not in _MORE_IS_BETTER
    return Text(f"{value:.2f}x", style="yellow" if worse else "green" if value <= 1 else "")


def _pair(ours: int, theirs: int) -> str:
    return str(ours) if ours == theirs else f"{ours} / {theirs}"
