"""Drawings of distributed layouts: the whole tile by warp, and a corner with the lane and registers of every element."""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.product.report import svg
from gluonize.product.report.layouts.linear_map import DistributedMap, Holder
from gluonize.trace.model.layouts import Ints

OVERVIEW = 190.0
MAX_CELLS = 640
WARP_COLORS = 8
_CELL = 15.0


@dataclass(frozen=True)
class Run:
    """Consecutive elements of one row that one lane holds in registers `registers`."""

    row: int
    column: int
    length: int
    holder: Holder
    copies: int
    registers: tuple[int, ...]


def as_rows(shape: Ints) -> tuple[int, int]:
    """(rows, columns) of the drawing: the last two dimensions; a vector is folded into rows of 64 or less."""
    if len(shape) == 1:
        columns = min(shape[0], 64)
        return shape[0] // columns, columns
    return shape[-2], shape[-1]


def coordinates(shape: Ints, row: int, column: int) -> Ints:
    """The element that the drawing shows at (row, column): of the first matrix where there are more dimensions."""
    if len(shape) == 1:
        return (row * min(shape[0], 64) + column,)
    return (0,) * (len(shape) - 2) + (row, column)


def runs(held: DistributedMap, rows: int, columns: int) -> list[Run]:
    """The elements of the first `rows` x `columns`, neighbours in one lane's registers joined."""
    out: list[Run] = []
    for row in range(rows):
        for column in range(columns):
            copies = held.holders[coordinates(held.shape, row, column)]
            holder = copies[0]
            last = out[-1] if out else None
            if last and last.row == row and (last.holder.warp, last.holder.lane) == (holder.warp, holder.lane):
                if last.registers[-1] + 1 == holder.register and len(copies) == last.copies:
                    registers = (*last.registers, holder.register)
                    out[-1] = Run(row, last.column, last.length + 1, last.holder, last.copies, registers)
                    continue
            out.append(Run(row, column, 1, holder, len(copies), (holder.register,)))
    return out


def detail_size(held: DistributedMap) -> tuple[int, int]:
    """How much of the tile the detail shows: as many whole vectors as stay legible."""
    rows, columns = as_rows(held.shape)
    width = held.vector if held.fastest == len(held.shape) - 1 else 1
    columns = min(columns, max(16, 8 * width))
    return min(rows, 32, max(4, MAX_CELLS // max(1, columns // width))), columns


def overview(held: DistributedMap) -> str:
    """The tile coloured by the warp that holds each element first."""
    rows, columns = as_rows(held.shape)
    scale = OVERVIEW / max(rows, columns)
    height = max(10.0, rows * scale)
    parts = []
    for warp, top, left, bottom, right in _warp_rectangles(held, rows, columns):
        parts.append(
            svg.element(
                "rect",
                svg.title(f"warp {warp}: rows {top} to {bottom - 1}, columns {left} to {right - 1}"),
                x=left * scale,
                y=top * height / rows,
                width=(right - left) * scale,
                height=(bottom - top) * height / rows,
                class_=f"w{warp % WARP_COLORS} area",
            )
        )
        if (right - left) * scale > 16 and (bottom - top) * height / rows > 10:
            x, y = (left + right) / 2 * scale, (top + bottom) / 2 * height / rows + 3.5
            parts.append(svg.text(x, y, f"w{warp}", "warp-name", "middle"))
    shown_rows, shown_columns = detail_size(held)
    parts.append(
        svg.element(
            "rect", x=0.5, y=0.5, width=shown_columns * scale - 1, height=shown_rows * height / rows - 1, class_="frame"
        )
    )
    return svg.picture(columns * scale, height, parts, f"warps over the {rows} x {columns} tile", "overview")


def _warp_rectangles(held: DistributedMap, rows: int, columns: int) -> list[tuple[int, int, int, int, int]]:
    """(warp, top, left, bottom, right): equal neighbours along rows, then equal rows, joined."""
    lines: list[tuple[list[tuple[int, int, int]], int, int]] = []
    for row in range(rows):
        spans: list[tuple[int, int, int]] = []
        for column in range(columns):
            warp = held.holders[coordinates(held.shape, row, column)][0].warp
            if spans and spans[-1][0] == warp:
                spans[-1] = (warp, spans[-1][1], column + 1)
            else:
                spans.append((warp, column, column + 1))
        if lines and lines[-1][0] == spans:
            lines[-1] = (spans, lines[-1][1], row + 1)
        else:
            lines.append((spans, row, row + 1))
    return [(warp, top, left, bottom, right) for spans, top, bottom in lines for warp, left, right in spans]


def detail(held: DistributedMap) -> str:
    """The corner of the tile: one box per vector, with lane and registers; boxes know their lane for highlighting."""
    rows, columns = detail_size(held)
    found = runs(held, rows, columns)
    wide = max(run.length for run in found) >= 4
    cell = _CELL if wide else 30.0
    margin_x, margin_y = 30.0, 16.0
    parts = [
        svg.text(margin_x + c * cell + 2, margin_y - 5, str(c), "axis") for c in range(0, columns, 8 if wide else 4)
    ]
    parts += [
        svg.text(margin_x - 5, margin_y + r * _CELL + 11, _row_label(held.shape, r), "axis", "end") for r in range(rows)
    ]
    for run in found:
        x, y, width = margin_x + run.column * cell, margin_y + run.row * _CELL, run.length * cell
        parts.append(_box(held.shape, run, x, y, width))
    return svg.picture(
        margin_x + columns * cell + 2, margin_y + rows * _CELL + 2, parts, "lanes and registers", "detail"
    )


def _box(shape: Ints, run: Run, x: float, y: float, width: float) -> str:
    h = run.holder
    first, last = run.registers[0], run.registers[-1]
    registers = f"r{first}" if first == last else f"r{first}-{last}"
    at = ", ".join(map(str, coordinates(shape, run.row, run.column)))
    more = f"; {run.copies} copies" if run.copies > 1 else ""
    label = f"element ({at}): warp {h.warp}, lane {h.lane}, {registers}{more}"
    rect = svg.element("rect", x=x, y=y, width=width, height=_CELL, class_=f"w{h.warp % WARP_COLORS}")
    words = (
        f"lane {h.lane}  {registers}"
        if width >= 100
        else f"{h.lane} {registers}" if width >= 44 else f"{h.lane}·{first}" if width >= 28 else str(h.lane)
    )
    name = svg.text(x + width / 2, y + 11, words, "", "middle")
    holder = f"{h.warp}.{h.lane}"
    where = f"{run.row},{run.column},{run.length}"
    return svg.element(
        "g", svg.title(label) + rect + name, class_="box", data_holder=holder, data_at=where, data_first=first
    )


def _row_label(shape: Ints, row: int) -> str:
    return str(row * min(shape[0], 64)) if len(shape) == 1 else str(row)
