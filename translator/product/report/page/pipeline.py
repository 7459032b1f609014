"""The loops of a translation over time, as cards."""

from __future__ import annotations

from html import escape

from gluonize.product.report.loops.drawing import timeline
from gluonize.product.report.loops.timeline import LoopTimeline
from gluonize.product.report.page.on_demand import on_demand


def pipeline_section(loops: tuple[LoopTimeline, ...]) -> str:
    """One card per loop that loads tiles; empty when there are none."""
    if not loops:
        return ""
    lead = (
        '<p class="lead">Time runs to the right, one column per iteration, not to scale. <span class="key flight"></span>on its '
        'way or waiting <span class="key"></span>issued, read or computed <span class="key wait"></span>wait. Equal numbers and '
        "colours are one tile.</p>"
    )
    alike: dict[tuple, list[LoopTimeline]] = {}
    for loop in loops:
        rings = tuple((r.name, r.slots, r.shape) for r in loop.rings)
        alike.setdefault((loop.index, rings, loop.replay, loop.computes, loop.reason), []).append(loop)
    return lead + "".join(_card(group, not number) for number, group in enumerate(alike.values()))


def _card(group: list[LoopTimeline], first: bool) -> str:
    """Loops that are pipelined alike share a card; that of the first has its drawing open."""
    loop = group[0]
    places = ", ".join(f"{escape(x.function)} {'source ' * x.planned}line {x.line}" for x in group)
    heading = f"<h3><code>for {escape(loop.index)}</code> in {places}</h3>"
    s = loop.replay
    if s is None:
        facts = _not_drawn(loop)
    else:
        facts = [
            f"{loop.how or s.mechanism}, {s.buffers} buffer{'s' if s.buffers > 1 else ''}",
            f"{s.prologue} tile{'s' if s.prologue != 1 else ''} in the prologue",
            f"fetches tile i + {s.ahead}",
            *(
                [f"waits for all but {s.wait} groups"]
                if s.mechanism == "copies" and "mbarriers" not in loop.how
                else []
            ),
            ("registers: " if s.mechanism == "held" else "LDS: ") + _rings(loop),
        ]
    items = "".join(f"<li>{escape(fact)}</li>" for fact in facts)
    if s is not None:
        if loop.hazards:
            items += "".join(f'<li class="chip bad">{escape(h)}</li>' for h in loop.hazards)
        elif loop.checked:
            items += f'<li class="chip good">every read gets its tile, for 0 to {loop.checked} iterations</li>'
        items += "".join(f'<li class="chip warn">{escape(r)}</li>' for r in loop.remarks)
    drawing = "" if s is None else f'<div class="scroll">{timeline(loop)}</div>'
    if drawing and not first:
        drawing = on_demand("over time", drawing)
    return f'<div class="card">{heading}<ul class="facts">{items}</ul>{drawing}</div>'


def _not_drawn(loop: LoopTimeline) -> list[str]:
    """Why there is no drawing. What a text does not show is not said to be absent."""
    if loop.planned:
        return [f"not pipelined: {loop.reason}"]
    if loop.rings:
        return ["its slots could not be followed in this text, so it is not drawn", "LDS: " + _rings(loop)]
    return ["no LDS buffers could be followed through it in this text, so it is not drawn"]


def _rings(loop: LoopTimeline) -> str:
    return ", ".join(f"{r.name} {r.slots} x ({r.shape})" for r in loop.rings)
