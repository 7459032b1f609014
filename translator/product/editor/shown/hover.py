"""What is shown over a place of a generated file or of a source."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from gluonize.diagnostics import InternalError, TranslationError
from gluonize.product.editor.drawings import ask, drawn, layout_of, resolved
from gluonize.product.editor.explained import elsewhere, line_choices, relevant, tiles, values, versions
from gluonize.product.editor.line_map import LineMap
from gluonize.product.editor.made import Made
from gluonize.product.editor.outline import Scope
from gluonize.product.editor.session import PATIENCE, Session, refusal_of
from gluonize.product.editor.shown import hover_text as say
from gluonize.product.report.explain.explanation import Explanation


async def hover(session: Session, path: str, line: int, column: int) -> str | None:
    """Markdown for a place; None where there is nothing to say. line: from 1; column: from 0, in characters."""
    known = await session.settled(path, lambda m: bool(m.pair and (m.explained or m.refusal)))
    document = session.documents.get(path)
    if document is None:
        return None
    if document.relatives is None:
        return say.COMPUTED if "triton" in document.text else None
    word = word_at(document.text, line, column)
    if own := next((m for m in known if m.output == path), None):
        said = await _over_translation(session, own, document.text, line, column, word)
        return said or (say.COMPUTED if own.reading else None)
    parts = [_over_source(session, made, path, document.text, line, word) for made in known]
    return say.joined(parts) or None


def word_at(text: str, line: int, column: int) -> str:
    """The name that a column is in, or at the end of."""
    lines = text.splitlines()
    if not 0 < line <= len(lines):
        return ""
    row = lines[line - 1]
    start = end = min(column, len(row))
    while start and (row[start - 1].isidentifier() or row[start - 1].isdigit()):
        start -= 1
    while end < len(row) and (row[end].isidentifier() or row[end].isdigit()):
        end += 1
    return row[start:end]


async def _over_translation(session: Session, made: Made, text: str, line: int, column: int, word: str) -> str:
    if not made.pair or not (made.explained or made.refusal):
        return say.COMPUTED
    found = made.scope(line, text)
    origin = made.origin(line, text)
    parts = [f"Not explained: {made.refusal}"] * bool(made.refusal)
    if found and word:
        scope, was = found
        explanations = relevant(made.explanations, scope)
        spelled = [
            (c, t) for c, t, place in scope.spelled if t.partition("(")[0].endswith(word) and place.holds(was, column)
        ]
        constant = layout_of(explanations, scope.layout(word, was), word)
        if spelled:
            constructor, name = spelled[-1]
            parts.append(await _layout(session, made, explanations, name, resolved(explanations, constructor)))
        elif constant:
            parts.append(await _layout(session, made, explanations, word, constant))
        else:
            parts.append(_value(made, explanations, scope, was, word) or _line(made, explanations, origin))
    if origin:
        lines, reason = origin
        parts.append(say.origin_text(made.path, lines, _source_lines(made, lines), reason))
    return say.joined(parts)


def _value(made: Made, explanations: Sequence[Explanation], scope: Scope, line: int, word: str) -> str:
    """A variable: what was chosen for the statement that gave it its value."""
    place = scope.definition(word, line)
    if place is None:
        return ""
    lines = made.pair.lines[place.line - 1][0] if made.pair and place.line <= len(made.pair.lines) else ()
    found = values(explanations, made.path, made.explained_lines(lines), word)
    found = found or elsewhere(explanations, made.path, word)
    return say.value_text(word, found) if found else ""


def _line(made: Made, explanations: Sequence[Explanation], origin) -> str:
    lines = made.explained_lines(origin[0]) if origin else ()
    found = [s for s in line_choices(explanations, made.path, lines) if s.choice.kind != "value"]
    return say.choices_text(found)


def _source_lines(made: Made, lines: Sequence[int]) -> list[str]:
    text = made.pair.source.splitlines() if made.pair else []
    return [text[n - 1] for n in lines if n <= len(text)]


async def _layout(
    session: Session, made: Made, explanations: Sequence[Explanation], name: str, constructor: str
) -> str:
    found = tiles(explanations, name)
    said = say.layout_text(name, constructor, found, os.path.basename(made.path))
    if (wanted := drawn(constructor, found, made.file.target)) is None:
        return said
    future = asyncio.wrap_future(ask(session.work, wanted))
    try:
        drawing = await asyncio.wait_for(asyncio.shield(future), PATIENCE)
    except asyncio.TimeoutError:
        return f"{said}\n\n{say.COMPUTED}"
    except (TranslationError, InternalError) as error:
        return f"{said}\n\nNot drawn: {refusal_of(error)}"
    return f"{said}\n\n{say.drawing_text(drawing, wanted)}"


def _over_source(session: Session, made: Made, path: str, text: str, line: int, word: str) -> str:
    """What became of a line of a source, or of one of its variables, in one translation."""
    title = f"*{os.path.basename(made.output)}*"
    if made.explained is None or made.path != path:
        return f"{title}: {made.refusal}" if made.refusal else say.COMPUTED if made.path == path else ""
    was = LineMap(made.explained.text, text).back(line)
    scope = made.explained.outline.at(was) if was else None
    if not was or scope is None:
        return ""
    place = scope.definition(word, was) if word else None
    names = {name for name, _ in scope.bindings}
    found = versions(made.explanations, path, place.line, word, names) if place else ()
    if found:
        said = say.value_text(word, found)
    else:
        here = line_choices(made.explanations, path, [was])
        said = say.choices_text([s for s in here if s.choice.kind != "builtin"])
    results = made.results_of(line, text)
    shown = made.pair.result.splitlines() if made.pair else []
    became = say.became_text(made.output, results, [shown[n - 1] for n in results]) if results else ""
    if made.pair is None and made.reading and made.there:
        became = say.COMPUTED
    note = f"As it was; now: {made.refusal}" if made.refusal else ""
    return "\n\n".join(part for part in (title, note, said, became) if part) if said or became else ""
