"""Drawings of tiles in LDS: which bank each row of the tile starts in, and what one access asks of every bank."""

from __future__ import annotations

from gluonize.product.report import svg
from gluonize.product.report.layouts.linear_map import BankUse, SharedMap

_CELL = 9.0
MAX_ROWS = 32
MAX_WORDS = 64


def bank_map(stored: SharedMap, banks: int) -> str:
    """The first rows of the tile, one box per 32-bit word, coloured by bank: equal colours in a column may conflict."""
    rows, columns = stored.shape[-2:] if len(stored.shape) > 1 else (1, stored.shape[0])
    per_word = max(1, 32 // stored.bits)
    down = len(stored.shape) > 1 and bool(stored.offset[0][-2])  # the elements of a word lie in a column
    row_step, column_step = (per_word, 1) if down else (1, per_word)
    rows, words = min(rows // row_step, MAX_ROWS), min(columns // column_step, MAX_WORDS)
    margin_x, margin_y = 30.0, 16.0
    parts = [svg.text(margin_x + w * _CELL, margin_y - 5, str(w * column_step), "axis") for w in range(0, words, 8)]
    for row in range(rows):
        if row % 4 == 0:
            parts.append(svg.text(margin_x - 5, margin_y + row * _CELL + 8, str(row * row_step), "axis", "end"))
        for word in range(words):
            place = (row * row_step, word * column_step)
            at = (0,) * (len(stored.shape) - 2) + place if len(stored.shape) > 1 else place[1:]
            byte = stored.byte(at)
            bank = byte // 4 % banks
            parts.append(
                svg.element(
                    "rect",
                    svg.title(f"element ({', '.join(map(str, at))}): byte {byte}, bank {bank}"),
                    x=margin_x + word * _CELL,
                    y=margin_y + row * _CELL,
                    width=_CELL,
                    height=_CELL,
                    fill=f"hsl({_hue(bank, banks)} 48% 58%)",
                    class_="word",
                    data_bank=bank,
                )
            )
    return svg.picture(margin_x + words * _CELL + 2, margin_y + rows * _CELL + 2, parts, "bank of each word", "banks")


def _hue(bank: int, banks: int) -> int:
    """A hue that turns once over all banks."""
    return bank * 360 // banks


def access(use: BankUse) -> str:
    """One row per phase, one column per bank: how many different words are asked of it; more than one is a conflict."""
    margin_x, margin_y, size = 64.0, 16.0, 11.0
    parts = [svg.text(margin_x + b * size, margin_y - 5, str(b), "axis") for b in range(0, use.banks, 8)]
    for i, phase in enumerate(use.phases):
        y = margin_y + i * (size + 2)
        parts.append(svg.text(margin_x - 6, y + 9, f"phase {i}", "axis", "end"))
        for bank in range(use.banks):
            words = phase.get(bank, ())
            kind = "idle" if not words else "served" if len(words) == 1 else "conflict"
            said = f"bank {bank}: {len(words)} word{'s' if len(words) != 1 else ''}"
            x = margin_x + bank * size
            shape = svg.element(
                "rect", svg.title(said), x=x, y=y, width=size - 1, height=size, class_=kind, data_words=len(words)
            )
            parts.append(shape)
            if len(words) > 1:
                parts.append(svg.text(x + size / 2 - 0.5, y + 8.5, str(len(words)), "count", "middle"))
    height = margin_y + len(use.phases) * (size + 2) + 2
    return svg.picture(margin_x + use.banks * size + 2, height, parts, "words asked of each bank", "access")
