"""Predicted cycles of the hottest loops as cards: what bounds them, what their time goes to, and every wave over one iteration."""

from __future__ import annotations

from html import escape

from gluonize.judge.cycles.prediction import KernelCycles, LoopCycles
from gluonize.product.report import svg
from gluonize.product.report.checks import Checked
from gluonize.product.report.page.on_demand import on_demand, plain

_WIDTH, _LEFT, _ROW = 1000.0, 74.0, 20.0
_AXIS = 18.0
_THINNEST = 0.4  # of a column of the drawing: what is shorter is not seen
_WORK = ("matrix", "vector", "LDS", "memory", "other")
MOST_LANES = 8
MOST_LINES = 8


def cycles_section(checked: tuple[Checked, ...]) -> str:
    """A card per launch whose translation compiled; empty when there is none."""
    found = [entry for entry in checked if entry.gluon is not None and entry.gluon.cycles is not None]
    cards = [_card(entry, not number) for number, entry in enumerate(found)]
    if not cards:
        return ""
    keys = " ".join(f'<span class="key work-{name.lower()}"></span>{name}' for name in _WORK)
    lead = f'<p class="lead">Clocks of the shader per workgroup and iteration, predicted; workgroups: that share a compute unit. {keys} <span class="key held"></span>held</p>'
    return lead + "".join(cards)


def _card(entry: Checked, first: bool) -> str:
    ours, theirs = entry.gluon.cycles, entry.triton.cycles if entry.triton else None
    parts = [_table(ours, theirs)]
    if (hot := ours.hot) is not None:
        drawing = f'<div class="scroll">{_lanes(hot)}</div>'
        parts += [_losses(hot.of_one), (on_demand if first else plain)("every wave over one iteration", drawing)]
    parts += [f'<p class="soft">{escape(note)}</p>' for note in (*ours.notes, f"Accuracy: {ours.error}.")]
    name, content = escape(entry.spec.id), "".join(parts)
    return plain(name, content, kind="card", open=True) if first else on_demand(name, content, kind="card")


def _table(ours: KernelCycles, theirs: KernelCycles | None) -> str:
    head = "".join(
        f"<th>{x}</th>"
        for x in ("loop", "clk per workgroup", "workgroups", "matrix cores", "bound", "distance", "lost most to")
    )
    rows = []
    for kernel, name in ((ours, ""), (theirs, "Triton, ")):
        for loop in (x.of_one for x in kernel.loops) if kernel else ():
            efficiency = "" if loop.efficiency is None else f"{loop.efficiency:.1%}"
            most = next(iter(loop.causes), "")
            cells = (
                name + (loop.place or loop.label),
                f"{loop.cycles:.0f}",
                str(loop.workgroups),
                efficiency,
                loop.bound,
            )
            cells += (f"{loop.distance:.2f}x", most)
            rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _losses(loop: LoopCycles) -> str:
    items = "".join(
        f"<li><b>{x.clk:.0f}</b> {escape(x.cause)}: <code>{escape(x.instruction[:70])}</code> {escape(x.place)}</li>"
        for x in loop.losses[:MOST_LINES]
    )
    what = "Matrix pipes are idle for" if loop.matrix else "Waves spend"
    return f'<ul class="plain"><li>{what} (clk of an iteration of a workgroup)</li>{items}</ul>' if items else ""


def _lanes(loop: LoopCycles) -> str:
    """A row per wave of one iteration; a pointer on a span says what it is and at which line."""
    lanes = loop.lanes[:MOST_LANES]
    end = max((span.end for lane in lanes for span in lane.spans), default=1.0)
    scale = (_WIDTH - _LEFT) / end
    parts = _axis(end, scale, len(lanes) * _ROW)
    for row, lane in enumerate(lanes):
        y = row * _ROW + _AXIS
        parts.append(svg.text(0, y + 12, f"wave {lane.wave}", "soft"))
        for span in lane.spans:
            width = (span.end - span.start) * scale
            if width < _THINNEST:
                continue
            kind = f"work-{span.what.lower()}" if span.what in _WORK else "held"
            said = f"{span.what if kind != 'held' else 'held by: ' + span.what}, {span.end - span.start:.0f} clk {span.place}"
            parts.append(
                svg.element(
                    "rect",
                    svg.title(said),
                    x=_LEFT + span.start * scale,
                    y=y,
                    width=width,
                    height=_ROW - 6,
                    class_=kind,
                )
            )
    return svg.picture(_WIDTH, len(lanes) * _ROW + _AXIS, parts, f"waves over one iteration at {loop.place}", "lanes")


def _axis(end: float, scale: float, height: float) -> list[str]:
    """Clocks above the lanes, at most ten round numbers."""
    step = next(n * 10**power for power in range(9) for n in (1, 2, 5) if end / (n * 10**power) <= 10)
    parts = [svg.text(0, 10, "clk", "axis")]
    for clk in range(0, int(end) + 1, step):
        x = _LEFT + clk * scale
        parts.append(svg.element("line", x1=x, x2=x, y1=_AXIS - 4, y2=height + _AXIS, class_="tick"))
        parts.append(svg.text(x, 10, str(clk), "axis", "start" if not clk else "middle" if x < _WIDTH - 20 else "end"))
    return parts
