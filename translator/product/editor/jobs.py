"""What child processes do for the editor: each is a function of texts and requests, and nothing in it runs a user's code."""

from __future__ import annotations

from dataclasses import dataclass

from gluonize.product.editor.outline import Outline, read_outline
from gluonize.product.project.cache.recorded import Reads, recorded
from gluonize.product.report.explain.explanation import Explanation
from gluonize.product.report.review.correspondence import correspond
from gluonize.read.files.modules import parse_file
from gluonize.request import TranslateRequest
from gluonize.rules.targets import target as target_row
from gluonize.trace.model.layouts import Ints

ROWS, COLUMNS = 16, 110  # of a drawing: what one looks at beside the code, without scrolling far
NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)  # what `ast.parse` raises


@dataclass(frozen=True)
class Explained:
    """The translation of a source: text is the source's, as it was explained."""

    explanations: tuple[Explanation, ...]
    path: str
    text: str
    outline: Outline


@dataclass(frozen=True)
class Pair:
    """A translation beside its source. lines: for every line of the result the lines of the source that it came from, and a key of
    `reasons.REASONS`."""

    source: str
    result: str
    lines: tuple[tuple[Ints, str], ...]
    outline: Outline


def explain(request: TranslateRequest, path: str) -> tuple[Explained, Reads]:
    """Explain every launch of a request whose source is the file at `path`. Raises: TranslationError for what is refused."""
    from gluonize.product.report.explain.job import explain_launches

    def run() -> Explained:
        found = explain_launches(request, "rewrite")
        text = parse_file(path).text
        return Explained(found, path, text, read_outline(text))

    return recorded(run)


def read_pair(source: str, result: str) -> Pair | None:
    """Both texts side by side; None while one of them is no Python."""
    try:
        found = correspond(source, result)
        outline = read_outline(result)
    except NO_PYTHON:
        return None
    return Pair(source, result, tuple((line.source, line.reason) for line in found.lines), outline)


def draw(expression: str, shape: Ints, bits: int, target: str) -> str:
    """The layout that an expression spells, on a tile: what `gluonize layout` prints, cut to what fits beside the code.

    Raises: TranslationError for what is no layout, or does not map onto the tile.
    """
    from gluonize.product.report.layouts.expression import view_layout
    from gluonize.product.report.layouts.terminal import common_accesses, conflict_lines, layout_lines
    from gluonize.product.report.layouts.linear_map import SharedMap

    row = target_row(target)
    view = view_layout(expression, shape, bits)
    lines = ["".join(text for text, _ in line) for line in layout_lines(view, row.lds_banks)][1:]
    if len(lines) > ROWS + 2:
        lines = [*lines[: ROWS + 2], f"... {len(lines) - ROWS - 2} more rows"]
    if isinstance(view.placed, SharedMap):
        for name, held in common_accesses(view.placed, row.warp_size).items():
            first = next(conflict_lines(held, view.placed, row.lds_banks))
            lines += [f"{name}:", "".join(text for text, _ in first)]
    return "\n".join(line.rstrip() if len(line) <= COLUMNS else f"{line[:COLUMNS]}..." for line in lines)
