"""One LDS slot for tiles that Triton keeps in registers: the next tile is copied into it after the last read of this one.

wait for tile i; read it ...; the last read; barrier; copy tile i + 1; what else the body has

Triton hands such tiles from iteration to iteration in registers and moves them through LDS that it uses again for other
things. Two slots would take twice that LDS and more; with one, the copy has the rest of the iteration to arrive in. Where no
matrix instruction is left by then, the loop keeps a ring: nothing would hide the copy.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from translator.pipeline import counts, producer
from translator.pipeline.loop import PipelinedLoop, async_module
from translator.rewrite import dots
from translator.rewrite.splice import replace_spans

if TYPE_CHECKING:
    from translator.rewrite.function import FunctionRewriter


class TooLate(Exception):
    """The last read of a slot leaves no time for a copy; key: (path, line) of the loop, which needs a ring."""

    def __init__(self, key: tuple[tuple[int, ...], int]):
        super().__init__(f"line {key[1]}")
        self.key = key


def check_refills(every: list["FunctionRewriter"]) -> None:
    """Asked when the text is final. Raises: TooLate for a loop whose one slot is read until its end."""
    for rw in every:
        for loop in rw.pipelined_loops.values():
            if loop.refills and not loop.hidden:
                raise TooLate((rw.path, loop.plan.loop.lineno))


def place_copies(rw: "FunctionRewriter", loop: PipelinedLoop, s: ast.For) -> None:
    """Copy the next tiles after the statement of the body that reads the slots last; the body has been emitted."""
    copied = [ring for ring in loop.rings if not ring.held]
    last = _last_reader([_emitted(rw, statement) for statement in s.body], [ring.smem for ring in copied])
    loop.hidden = any(dots.is_dot(rw, n) for behind in s.body[last + 1 :] for n in ast.walk(behind))
    loop.fetch_at(loop.ahead)
    condition = counts.condition(rw, loop, loop.ahead)
    lines = ["gl.barrier()", *(producer.fetch(rw, loop, ring, loop.free, condition) for ring in copied)]
    if producer.closes_group(loop, copied):
        lines.append(f"{async_module(rw)}.commit_group()")
    lines = ["# Every warp has read this tile: the next one takes its place.", *counts.where_fetched(rw, loop, lines)]
    indent, end = rw.source.indent(s.body[0]), rw.source.line_end(s.body[last])
    rw.edits.append((end, end, "".join(f"\n{indent}{line}" for line in lines)))


def _emitted(rw: "FunctionRewriter", statement: ast.stmt) -> str:
    """The text that a statement has become, with what was inserted before it."""
    start, end = rw.source.starts[statement.lineno - 1], rw.source.line_end(statement)
    return replace_spans(rw.source.text, start, end, [e for e in rw.edits if start <= e[0] and e[1] <= end])


def _last_reader(texts: list[str], rings: list[str]) -> int:
    """The number of the last text that reads one of `rings`, also by a name for its slot."""
    names, last = list(rings), 0
    for i, text in enumerate(texts):
        if any(re.search(rf"\b{name}\b(?!\.dtype|\.shape)", text) for name in names):
            last = i
        for name in rings:
            names += re.findall(rf"^ *(\w+) = {name}\.index\(\w+\)(?:\.permute\([^)]*\))?$", text, re.M)
    return last
