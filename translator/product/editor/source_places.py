"""From a line of a translation to its source, and back."""

from __future__ import annotations

from gluonize.product.editor.line_map import LineMap
from gluonize.product.editor.session import Session

WAIT = 10.0  # seconds: who asked to go somewhere would rather wait than stay
Target = tuple[str, int]  # path, line from 1


async def to_source(session: Session, path: str, line: int) -> list[Target]:
    """The lines of the source that a line of a generated file came from; for an inserted line those of the one above it."""
    known = await session.settled(path, lambda m: m.pair is not None, WAIT)
    own = next((m for m in known if m.output == path and m.pair), None)
    if own is None or own.pair is None:
        return []
    text = session.text(path)
    found = own.scope(line, text)
    first = found[0].first if found else 1
    was = LineMap(own.pair.result, text).back(line) or _above(own.pair.result, text, line)
    lines = next((x for n in range(was, first - 1, -1) if (x := own.pair.lines[n - 1][0])), ())
    moved = LineMap(own.pair.source, session.text(own.path))
    return [(own.path, there) for n in lines[:1] if (there := moved.forth(n))]


async def to_translations(session: Session, path: str, line: int) -> list[Target]:
    """The lines that a line of a source became, in every file that is made from it; the first line of each run."""
    known = await session.settled(path, lambda m: m.pair is not None, WAIT)
    out: list[Target] = []
    for made in known:
        if made.pair is None or made.path != path:
            continue
        moved = LineMap(made.pair.result, session.text(made.output))
        results = made.results_of(line, session.text(path))
        starts = [n for n in results if n - 1 not in results]
        out += [(made.output, there) for n in starts if (there := moved.forth(n))]
    return out


def _above(before: str, now: str, line: int) -> int:
    """The line of `before` for the nearest line above one that was edited, 0 where there is none."""
    moved = LineMap(before, now)
    return next((was for n in range(line - 1, 0, -1) if (was := moved.back(n))), 0)
