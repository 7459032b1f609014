"""Layouts of the variables of a source, beside them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gluonize.product.editor.explained import Said, versions
from gluonize.product.editor.line_map import LineMap
from gluonize.product.editor.made import Made
from gluonize.product.editor.session import Session
from gluonize.product.editor.shown import hover_text as say


@dataclass(frozen=True)
class Hint:
    """line: from 1; column: in characters, where the variable ends. tooltip: Markdown."""

    line: int
    column: int
    label: str
    tooltip: str


def hints(session: Session, path: str) -> list[Hint]:
    """Those of one translation of a source: of the target that was asked for, else of the first that is known."""
    known = [m for m in session.of(path) if m.explained and m.path == path]
    known.sort(key=lambda m: m.file.target != session.settings.target)
    return list(_hints(known[0], path, session.text(path))) if known else []


def _hints(made: Made, path: str, text: str) -> Iterator[Hint]:
    """A variable has one where it is bound, again only where its layout is another."""
    assert made.explained is not None
    moved = LineMap(made.explained.text, text)
    for scope in made.explained.outline.scopes:
        last: dict[str, str] = {}
        names = {name for name, _ in scope.bindings}
        for name, place in scope.bindings:
            found = versions(made.explanations, path, place.line, name, names)
            line = moved.forth(place.line)
            if not found or line is None or last.get(name) == _label(found):
                continue
            last[name] = _label(found)
            title = f"*{os.path.basename(made.output)}*"
            yield Hint(line, place.end, _label(found), f"{title}\n\n{say.value_text(name, found)}")


def _label(found: Sequence[Said]) -> str:
    layouts = list(dict.fromkeys(s.choice.choice for s in found))
    return ": " + " | ".join(layouts[:2]) + (" | ..." if len(layouts) > 2 else "")
