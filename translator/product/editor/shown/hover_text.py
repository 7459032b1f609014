"""What is shown over a place, as Markdown."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence

from gluonize.product.editor.drawings import Drawn
from gluonize.product.editor.explained import Said, Tile
from gluonize.product.report.review.reasons import REASONS
from gluonize.trace.model.layouts import Ints

MOST_GROUPS = 4  # of launches that differ
COMPUTED = "*gluonize: being computed*"


def value_text(name: str, found: Sequence[Said]) -> str:
    """A value: its layout, type and shape, where the layout came from, what it costs."""
    parts = [_value(said, several=len(found) > 1) for said in found[:MOST_GROUPS]]
    return "\n\n".join([f"**{name}**", *parts, *_more(found)])


def choices_text(found: Sequence[Said]) -> str:
    """Everything that was chosen for a line."""
    launches = {launch for said in found for launch in said.launches}
    return "\n".join(f"- {_choice(said, several=set(said.launches) != launches)}" for said in found)


def layout_text(title: str, constructor: str, tiles: Sequence[Tile], source_name: str) -> str:
    """A layout: how it is spelled, and which tiles have it."""
    lines = [f"**{title}**", fenced(constructor, "python")]
    if tiles:
        lines.append("\n".join(f"- {_tile(tile, source_name)}" for tile in tiles[:6]))
    return "\n\n".join(lines)


def drawing_text(drawing: str, what: Drawn) -> str:
    """A drawing, and the command that draws all of it."""
    by = ",".join(map(str, what.shape))
    command = f"gluonize layout {shlex.quote(what.constructor)} --shape {by} --bits {what.bits} -t {what.target}"
    return f"On a tile of {by.replace(',', 'x')}:\n\n{fenced(drawing, 'text')}\n\nAll of it: `{command}`"


def origin_text(path: str, lines: Sequence[int], text: Sequence[str], reason: str) -> str:
    """Where a line of a translation came from, and why it is as it is. text: those lines."""
    why = REASONS.get(reason, "")
    if not lines:
        return f"Not in the source ({why})" if why else ""
    where = f"{os.path.basename(path)}:{lines[0]}" + (f"-{lines[-1]}" if len(lines) > 1 else "")
    said = f"From {where}" + (f" ({why})" if why else "")
    return f"{said}\n\n{fenced(_dedented(text), 'python')}"


def became_text(output: str, lines: Sequence[int], text: Sequence[str]) -> str:
    """What became of a line of a source."""
    numbers = ", ".join(map(str, lines[:6])) + (", ..." if len(lines) > 6 else "")
    return f"In {os.path.basename(output)}, line {numbers}\n\n{fenced(_dedented(text[:6]), 'python')}"


def joined(parts: Iterable[str]) -> str:
    return "\n\n---\n\n".join(part for part in parts if part)


def fenced(text: str, language: str) -> str:
    fence = "````" if "```" in text else "```"
    return f"{fence}{language}\n{text}\n{fence}"


def _value(said: Said, several: bool) -> str:
    c = said.choice
    what = f"`{c.choice}`: {_shape(c.shape, said.dtypes)}"
    lines = [what + (f", *{', '.join(said.launches)}*" if several else "")]
    if c.what.partition(" ")[2]:
        lines.append(f"- {c.what}")
    lines += [f"- {c.origin}: {c.why}"] * bool(c.why)
    lines += [f"- cost: {c.cost}"] * bool(c.cost)
    return "\n".join(lines)


def _choice(said: Said, several: bool) -> str:
    c = said.choice
    shape = f" ({_shape(c.shape, said.dtypes)})" if c.shape else ""
    parts = [f"{c.kind} `{c.what}`{shape}" + (f": `{c.choice}`" if c.choice else "")]
    parts += [f"{c.origin}: {c.why}"] * bool(c.why) + [f"cost: {c.cost}"] * bool(c.cost)
    return "; ".join(parts) + (f" *{', '.join(said.launches)}*" if several else "")


def _tile(tile: Tile, source_name: str) -> str:
    return f"{_shape(tile.shape, tile.dtypes)}: `{tile.of}` ({source_name}:{', '.join(map(str, tile.lines))})"


def _shape(shape: Ints, dtypes: Sequence[str]) -> str:
    return " ".join(x for x in ("x".join(map(str, shape)), "/".join(dtypes)) if x)


def _more(found: Sequence[Said]) -> list[str]:
    return [f"and {len(found) - MOST_GROUPS} more for other launches"] * (len(found) > MOST_GROUPS)


def _dedented(lines: Sequence[str]) -> str:
    indent = min((len(x) - len(x.lstrip()) for x in lines if x.strip()), default=0)
    return "\n".join(line[indent:] for line in lines)
