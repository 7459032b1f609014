"""A layout as one SVG file that needs nothing else: the whole tile and a corner of it, or banks and accesses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gluonize.product.report import svg
from gluonize.product.report.layouts import banks as draw_banks, drawing as draw_layout
from gluonize.product.report.layouts.expression import LayoutView, Pieces
from gluonize.product.report.layouts.linear_map import DistributedMap, SharedMap, bank_use
from gluonize.product.report.layouts.terminal import ctas_text

_COLORS = ("#4269d0", "#c77d0a", "#3ca951", "#d4487f", "#6f5bb8", "#2f9ba8", "#9c6b4e", "#7a7f8c")  # by warp
_STYLE = (
    "text{font:10px monospace;fill:#1b2130}.axis{fill:#626b7f;font-size:9px}.warp-name{fill:#fff}"
    ".area{stroke:#fff;stroke-width:.5}.frame{fill:none;stroke:#1b2130;stroke-dasharray:4 3}"
    ".idle{fill:#dfe3ea}.served{fill:#1f7a37}.conflict{fill:#b3362f}"
    + "".join(f".w{i}{{fill:{color}}}" for i, color in enumerate(_COLORS))
)
_GAP = 14.0


def layout_picture(view: LayoutView, accesses: Sequence[tuple[str, DistributedMap]], banks: int) -> str:
    """accesses: of a layout of LDS, with their names; each is drawn with the words it asks of every bank."""
    placed = view.placed.piece if isinstance(view.placed, Pieces) else view.placed
    if isinstance(placed, DistributedMap):
        parts = [("", draw_layout.overview(placed)), ("", draw_layout.detail(placed))]
    else:
        parts = [("", draw_banks.bank_map(placed, banks)), *_accesses(placed, accesses, banks)]
    if view.starts:
        (_, first), *others = parts
        parts = [(f"the part of the first of {ctas_text(view.starts)}", first), *others]
    return _stacked(view.spelled, parts)


def _accesses(stored: SharedMap, accesses: Sequence[tuple[str, DistributedMap]], banks: int) -> list[tuple[str, str]]:
    return [(name, draw_banks.access(bank_use(held, stored, banks))) for name, held in accesses]


def _stacked(title: str, parts: Sequence[tuple[str, str]]) -> str:
    """Drawings one below the other, each with its name above it."""
    y, width = 18.0, 8.0 + 6.1 * len(title)
    out = [svg.element("style", _STYLE), svg.text(4, 12, title)]
    for name, drawing in parts:
        if name:
            out.append(svg.text(4, y + 8, name))
            y += _GAP
        size = re.match(r'<svg viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing)
        assert size, "bug in gluonize: a drawing without a size"
        out.append(drawing.replace("<svg ", f'<svg x="0" y="{svg.number(y)}" ', 1))
        width, y = max(width, float(size[1])), y + float(size[2]) + _GAP
    whole = svg.picture(width, y, out, title)
    return whole.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"
