"""A pipelined loop drawn over time: which slot holds which tile, when its copy is in flight, when it is read."""

from __future__ import annotations

from gluonize.product.report import svg
from gluonize.product.report.loops.replay import Replay
from gluonize.product.report.loops.timeline import LoopTimeline

_STEP = 92.0
_ROW = 26.0
_LEFT = 118.0
_TOP = 34.0
COLORS = 6
# Where in a step things happen, as fractions of it.
_WAIT, _FETCH, _READ, _END = 0.06, 0.2, 0.42, 0.94


def timeline(loop: LoopTimeline) -> str:
    """The prologue, enough iterations to fill every slot twice, and the end."""
    if loop.replay is None:
        return _serial(loop)
    s = loop.replay
    trips = min(s.buffers + 3, 8)
    copies = s.mechanism == "copies"
    rows = [
        "copies issued" if copies else "loads to registers",
        *("kept" if s.mechanism == "held" else f"slot {i}" for i in range(s.buffers)),
    ]
    rows.append("matrix instructions" if loop.computes else "reads")
    steps = s.prologue + trips + 1
    width, height = _LEFT + steps * _STEP + 8, _TOP + len(rows) * _ROW + 10
    parts = _frame(rows, s, trips, width, height, loop.index)
    for tile in range(trips + s.ahead):
        issued = tile if tile < s.prologue else s.prologue + tile - s.ahead
        if not (tile < s.prologue or 0 <= tile - s.ahead < trips):
            continue
        begin = issued + (_FETCH if tile >= s.prologue else 0.1)
        parts.append(
            _bar(0, begin, begin + 0.3, tile, "issue", f"tile {tile} {'copy issued' if copies else 'load issued'}")
        )
        slot = s.slot_of(tile)
        used = tile < trips
        needed = s.prologue + tile
        stop = needed + _WAIT if used else s.prologue + trips + 0.3
        landed = begin + 0.3 if copies else (issued + (_END if tile >= s.prologue else 0.85))
        flight = "in flight" if copies else "in LDS"
        if copies:
            parts.append(_bar(1 + slot, begin, stop, tile, "flight", f"tile {tile} {flight} to slot {slot}"))
        else:
            parts.append(_bar(0, begin + 0.3, landed, tile, "flight", f"tile {tile} in registers"))
            parts.append(_bar(1 + slot, landed, stop, tile, "flight", f"tile {tile} in slot {slot}"))
        if used:
            parts.append(
                _bar(
                    1 + slot,
                    stop,
                    needed + _END - 0.1,
                    tile,
                    "landed",
                    f"tile {tile} in slot {slot}: read in iteration {tile}",
                )
            )
            parts.append(
                _bar(
                    len(rows) - 1,
                    needed + _READ,
                    needed + _END,
                    tile,
                    "compute",
                    f"iteration {tile} works on tile {tile}",
                )
            )
    return svg.picture(width, height, parts, f"pipeline of `for {loop.index}`, {s.buffers} buffers", "timeline")


def _frame(rows: list[str], s: Replay, trips: int, width: float, height: float, index: str) -> list[str]:
    parts = []
    for i, name in enumerate(rows):
        y = _TOP + i * _ROW
        parts.append(svg.element("rect", x=_LEFT, y=y, width=width - _LEFT - 8, height=_ROW - 4, class_="lane"))
        parts.append(svg.text(_LEFT - 8, y + 15, name, "axis", "end"))
    names = [f"prologue {i}" for i in range(s.prologue)] + [f"{index} = {i}" for i in range(trips)] + ["end"]
    for i, name in enumerate(names):
        x = _LEFT + i * _STEP
        kind = "prologue" if i < s.prologue else "steady" if i < s.prologue + trips else "end"
        parts.append(svg.element("line", x1=x, y1=14, x2=x, y2=height - 6, class_=f"step {kind}"))
        parts.append(svg.text(x + 5, 24, name, f"step-name {kind}"))
        if s.mechanism == "copies" and kind == "steady":
            at = x + _WAIT * _STEP
            said = svg.title(f"wait until at most {s.wait} commit groups are outstanding")
            parts.append(svg.element("line", said, x1=at, y1=_TOP - 4, x2=at, y2=height - 8, class_="wait"))
    return parts


def _bar(row: int, begin: float, end: float, tile: int, kind: str, said: str) -> str:
    x, width = _LEFT + begin * _STEP, max(2.0, (end - begin) * _STEP)
    y = _TOP + row * _ROW + 2
    shape = svg.element("rect", x=x, y=y, width=width, height=_ROW - 8, rx=3, class_=f"t{tile % COLORS} {kind}")
    name = (
        svg.text(x + min(width / 2, 14), y + 13, str(tile), "tile", "middle") if width > 12 and kind != "flight" else ""
    )
    return svg.element("g", svg.title(said) + shape + name, class_="bar", data_tile=tile, data_kind=kind)


def _serial(loop: LoopTimeline) -> str:
    """A loop that loads, waits and computes in turn."""
    trips, parts = 4, []
    width, height = _LEFT + trips * _STEP + 8, _TOP + 2 * _ROW + 10
    for i, name in enumerate(("loads", "matrix instructions" if loop.computes else "compute")):
        y = _TOP + i * _ROW
        parts.append(svg.element("rect", x=_LEFT, y=y, width=width - _LEFT - 8, height=_ROW - 4, class_="lane"))
        parts.append(svg.text(_LEFT - 8, y + 15, name, "axis", "end"))
    for i in range(trips):
        x = _LEFT + i * _STEP
        parts.append(svg.element("line", x1=x, y1=14, x2=x, y2=height - 6, class_="step steady"))
        parts.append(svg.text(x + 5, 24, f"{loop.index} = {i}", "step-name steady"))
        parts.append(_bar(0, i + 0.04, i + 0.55, i, "flight", f"iteration {i}: loads, then waits for them"))
        parts.append(_bar(1, i + 0.55, i + 0.96, i, "compute", f"iteration {i} computes"))
    return svg.picture(width, height, parts, f"`for {loop.index}` is not pipelined", "timeline")
