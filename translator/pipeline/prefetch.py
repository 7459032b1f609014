"""Operands read from LDS one iteration ahead, so that the product of a tile does not wait for its own reads.

Before:                                         After:
                                                    a = a_smem.index(0).load(a_operand)
    for k in ...:                                   for k in ...:
        slot = k % NUM_BUFFERS                          slot = (k + 1) % NUM_BUFFERS
        copy tile k + NUM_BUFFERS - 1                   copy tile k + NUM_BUFFERS - 1
        a = a_smem.index(slot).load(a_operand)          acc = cdna5.wmma(a, b, acc)
        acc = cdna5.wmma(a, b, acc)                     a = a_smem.index(slot).load(a_operand)

The tile that is read has to have landed an iteration earlier: three buffers at least. What is read in the last iteration is
not used.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from translator.pipeline.body import LDS_READ
from translator.pipeline.dot_parts import dot_parts
from translator.facts.syntax import loads

FEWEST_BUFFERS = 3


@dataclass(frozen=True)
class Prefetched:
    """Lines without indentation. first: reads of tile 0, before the loop; body: of the loop, below its first lines."""

    first: tuple[str, ...]
    body: tuple[str, ...]


def prefetched(texts: list[str], dots: list[bool], slot: str, fresh: Callable[[str], str]) -> Prefetched | None:
    """The statements of a body with its reads at the end; None where something else than its one product uses them.

    slot: the variable with the slot to read; fresh: gives a name that the function does not use.
    """
    if dots.count(True) != 1:
        return None
    at = dots.index(True)
    parts = dot_parts(texts[at], fresh)
    if parts is None:
        return None
    before = [s for text in texts[:at] for s in _statements(text)] + [line for _, line in parts.operands]
    after = [textwrap.dedent(text) for text in (parts.after, *texts[at + 1 :]) if text.strip()]
    assigned = {name for text in (*before, parts.matrix, *after) for name in _names(text, ast.Store)}
    aliases: dict[str, str] = {}
    reads: dict[str, str] = {}
    others: list[str] = []
    for text in before:
        target, value = _assignment(text)
        for name, tile in aliases.items():
            value = re.sub(rf"\b{name}\b", tile, value)
        if target and LDS_READ.search(value) and f".index({slot})" in value:
            reads[target] = value
        elif target and re.fullmatch(rf"\w+\.index\({slot}\)(\.permute\([^()]*\))?", value):
            aliases[target] = value
        else:
            others.append(text)
    inputs = {name for value in reads.values() for name in _names(value, ast.Load)}
    used = {name for text in (*others, *after) for name in loads(ast.parse(text))}
    if not reads or inputs & assigned or used & {*reads, *aliases} or {*aliases} & {*_names(parts.matrix, ast.Load)}:
        return None
    ahead = [f"{name} = {value}" for name, value in reads.items()]
    first = [line.replace(f".index({slot})", ".index(0)") for line in ahead]
    comment = "# The next tile's operands, read while this tile is multiplied."
    return Prefetched(tuple(first), (*others, parts.matrix, *after, comment, *ahead))


def _statements(text: str) -> list[str]:
    """Each statement of `text` with the comments above it."""
    text = textwrap.dedent(text)
    lines, out, start = text.splitlines(), [], 0
    for statement in ast.parse(text).body:
        out.append("\n".join(lines[start : statement.end_lineno]))
        start = statement.end_lineno
    return out


def _assignment(text: str) -> tuple[str, str]:
    """(name, value) of a plain assignment to a name; else ("", text)."""
    body = ast.parse(text).body
    if len(body) != 1 or not isinstance(body[0], ast.Assign) or not isinstance(body[0].targets[0], ast.Name):
        return "", text
    return body[0].targets[0].id, ast.get_source_segment(text, body[0].value)


def _names(text: str, context: type) -> set[str]:
    return {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}
