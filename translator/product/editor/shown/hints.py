"""Layouts of the variables of a source, beside them."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gluonize.product.editor.explained import Said, versions, written
from gluonize.product.editor.line_map import LineMap
from gluonize.product.editor.made import Made
from gluonize.product.editor.session import Session
from gluonize.product.editor.shown import hover_text as say
from gluonize.read.text.parsed import parsed_text


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
    layouts = {name: text for e in reversed(made.explanations) for name, text in written(e.layouts).items()}
    for scope in made.explained.outline.scopes:
        last: dict[str, str] = {}
        names = {name for name, _ in scope.bindings}
        for name, place in scope.bindings:
            found = versions(made.explanations, path, place.line, name, names)
            line = moved.forth(place.line)
            if not found or line is None or last.get(name) == (label := _label(found, layouts)):
                continue
            last[name] = label
            title = f"*{os.path.basename(made.output)}*"
            yield Hint(line, place.end, label, f"{title}\n\n{say.value_text(name, found)}")


def _label(found: Sequence[Said], layouts: Mapping[str, str]) -> str:
    """`: fp32[64x128] mma (mfma 32x32x8)`: type and shape, the layout's name, and what it is."""
    what = found[0]
    shape = "x".join(map(str, what.choice.shape))
    kind = "/".join(what.dtypes) + (f"[{shape}]" if shape else "")
    names = list(dict.fromkeys(s.choice.choice for s in found))
    told = " | ".join(_told(name, layouts) for name in names[:2]) + (" | ..." if len(names) > 2 else "")
    return f": {kind} {told}" if kind else f": {told}"


def _told(name: str, layouts: Mapping[str, str]) -> str:
    """A layout by its name, and what it is where that is not said by the name; one that is spelled in place, by what it is."""
    if name in layouts:
        return f"{name} ({in_short(layouts[name])})"
    return in_short(name) if "(" in name else name


def in_short(constructor: str) -> str:
    """What a constructor makes in a few words: `blocked 1x8`, `mfma 32x32x8`, `slice 1 of mma`, `operand 0 of mfma 32x32x8`."""
    try:
        call = parsed_text(constructor, mode="eval").body
    except SyntaxError:
        return constructor
    if not isinstance(call, ast.Call):
        return constructor
    kind = next((w for w in reversed(ast.unparse(call.func).split(".")) if w.endswith("Layout")), "")
    named = {k.arg: k.value for k in call.keywords}
    given = [ast.unparse(a) for a in call.args]
    if kind == "SliceLayout" and len(given) == 2:
        return f"slice {given[0]} of {in_short(given[1])}"
    if kind == "DotOperandLayout" and len(given) >= 2:
        return f"operand {given[0]} of {in_short(given[1])}"
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.removesuffix("Layout").removeprefix("AMD")).lower()
    sizes = named.get("instr_shape") or (call.args[0] if kind == "blocked" and call.args else None)
    if isinstance(sizes, (ast.List, ast.Tuple)):
        return f"{kind} {'x'.join(map(ast.unparse, sizes.elts))}"
    return kind or constructor
