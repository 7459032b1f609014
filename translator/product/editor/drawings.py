"""Drawings of layouts, made ahead of their being asked for."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from gluonize.product.editor.explained import Tile, bits, constructors, relevant, tile_of, tiles
from gluonize.product.editor.outline import Outline
from gluonize.product.editor.work import Work
from gluonize.product.report.explain.explanation import Explanation
from gluonize.product.report.layouts.inlined import inlined
from gluonize.product.report.layouts.job import MAX_ELEMENTS
from gluonize.read.text.parsed import parsed_text
from gluonize.trace.model.layouts import Ints


@dataclass(frozen=True)
class Drawn:
    """What is drawn: a layout on the largest tile that has it. bits: of an element."""

    constructor: str
    shape: Ints
    bits: int
    target: str


def drawn(constructor: str, found: Sequence[Tile], target: str) -> Drawn | None:
    """What to draw of a layout that tiles have; None where neither they nor the layout itself name a shape."""
    tile = next((t for t in found if math.prod(t.shape) <= MAX_ELEMENTS), None)
    shape = tile.shape if tile else tile_of(constructor)
    return Drawn(constructor, shape, bits(tile.dtypes if tile else ()), target) if shape else None


def ask(work: Work, wanted: Drawn) -> Future:
    """The text of a drawing."""
    arguments = (wanted.constructor, wanted.shape, wanted.bits, wanted.target)
    return work.ask(("draw", *arguments), "explain", work.draw, *arguments)


def wanted(outline: Outline, explanations: Sequence[Explanation], target: str) -> list[Drawn]:
    """The layouts that the functions of a translation name, then those that they spell in place."""
    named, spelled = [], []
    for scope in outline.scopes:
        own = relevant(explanations, scope)
        for name in dict.fromkeys(name for name, _ in scope.bindings):
            place = scope.definition(name, scope.last)
            if found := layout_of(own, scope.layout(name, place.line if place else scope.last), name):
                named.append(drawn(found, tiles(own, name), target))
        spelled += [
            drawn(resolved(own, constructor), tiles(own, text), target) for constructor, text, _ in scope.spelled
        ]
    return [one for one in dict.fromkeys([*named, *spelled]) if one]


def resolved(explanations: Sequence[Explanation], constructor: str) -> str:
    """A constructor with layouts of the translation for those of its names that the text gives by a function."""
    try:
        tree = parsed_text(constructor, mode="eval").body
    except SyntaxError:
        return constructor
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    known = {name: found for name in names if (found := next(iter(constructors(explanations, name)), ""))}
    return ast.unparse(inlined(tree, {name: parsed_text(text, mode="eval").body for name, text in known.items()}))


def layout_of(explanations: Sequence[Explanation], spelled: str, name: str) -> str:
    """The constructor of a named layout: as the text spells it, else as the translation has it; "" for what is no layout."""
    return spelled or next(iter(constructors(explanations, name)), "")
