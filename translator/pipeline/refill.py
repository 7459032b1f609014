"""One LDS slot for tiles that Triton keeps in registers: the next tile is copied into it after the last read of this one.

wait for tile i; read it ...; the last read; barrier; copy tile i + 1; what else the body has

Triton hands such tiles from iteration to iteration in registers and moves them through LDS that it uses again for other
things. Two slots would take twice that LDS and more; with one, the copy has the rest of the iteration to arrive in. Where no
matrix instruction is left by then, the loop keeps a ring: nothing would hide the copy. Where LDS has no room for a ring, operands
that are read after all others are read with them, to registers (`PipelinePlan.reads_early`).
"""

from __future__ import annotations

import ast
import re

from translator.facts import products
from translator.facts.function import FunctionFacts
from translator.facts.source_text import replace_spans
from translator.numbered import numbered
from translator.pipeline import counts, producer
from translator.pipeline.clusters import before_next
from translator.pipeline.loop import PipelinedLoop
from translator.rewrite.emission import Emission
from translator.rewrite.gluon_modules import async_module


class TooLate(Exception):
    """The last read of a slot leaves no time for a copy; key: (path, line) of the loop, which needs a ring."""

    def __init__(self, key: tuple[tuple[int, ...], int]):
        super().__init__(f"line {key[1]}")
        self.key = key


def check_refills(every: list[Emission]) -> None:
    """Asked when the text is final. Raises: TooLate for a loop whose one slot is read until its end."""
    for rw in every:
        for loop in rw.pipelined_loops.values():
            if loop.refills and not loop.hidden:
                raise TooLate((rw.facts.path, loop.plan.loop.lineno))


def place_copies(rw: Emission, loop: PipelinedLoop, s: ast.For) -> None:
    """Copy the next tiles after the statement of the body that reads the slots last; the body has been emitted."""
    copied = [ring for ring in loop.rings if not ring.held]
    texts = [_emitted(rw, statement) for statement in s.body]
    rings = [ring.smem for ring in copied]
    early: dict[str, str] = {}
    last = _last_reader(texts, rings)
    while (
        loop.plan.reads_early
        and not _multiplies(rw.facts, s.body[last + 1 :])
        and _read_early(rw, texts, last, rings, early)
    ):
        start, end = _span(rw.facts, s.body[last])
        rw.edits = [e for e in rw.edits if not (start <= e[0] and e[1] <= end)] + [(start, end, texts[last])]
        last = _last_reader(texts, rings)
    loop.hidden = _multiplies(rw.facts, s.body[last + 1 :])
    loop.fetch_at(loop.ahead)
    condition = counts.condition(rw, loop, loop.ahead)
    lines = [
        "gl.barrier()",
        *before_next(rw, loop),
        *(producer.fetch(rw, loop, ring, loop.free, condition) for ring in copied),
    ]
    if producer.closes_group(loop, copied):
        lines.append(f"{async_module(rw)}.commit_group()")
    reads = [f"{name} = {read}" for read, name in early.items()]
    lines = ["# Every warp has read this tile: the next one takes its place.", *counts.where_fetched(rw, loop, lines)]
    indent, end = rw.facts.source.indent(s.body[0]), rw.facts.source.line_end(s.body[last])
    rw.edits.append((end, end, "".join(f"\n{indent}{line}" for line in [*reads, *lines])))


def _read_early(rw: Emission, texts: list[str], last: int, rings: list[str], early: dict[str, str]) -> bool:
    """Take operands from variables, where the text `last` reads them from LDS; False where it does more than that.

    early: the variable of each read.
    """
    slot = "|".join([*(rf"{ring}\.index\(0\)" for ring in rings), *_slot_names(texts, rings)])
    reads = re.compile(rf"\b({slot})(?:\.permute\([^)]*\))?\.load\(\w+\)")
    names, text = dict(early), texts[last]
    for found in reads.finditer(texts[last]):
        stem = found.group(1).partition("_smem")[0]
        if found.group(0) not in names:
            names[found.group(0)] = numbered(f"{stem}_early", {*rw.facts.source_names, *names.values()}.__contains__)
        text = text.replace(found.group(0), names[found.group(0)])
    if _last_reader([*texts[:last], text], rings) == last:
        return False
    texts[last] = text
    rw.locals |= {*names.values()}
    early.update(names)
    return True


def _multiplies(facts: FunctionFacts, statements: list[ast.stmt]) -> bool:
    return any(products.multiplies(facts, statement) for statement in statements)


def _span(facts: FunctionFacts, statement: ast.stmt) -> tuple[int, int]:
    return facts.source.starts[statement.lineno - 1], facts.source.line_end(statement)


def _emitted(rw: Emission, statement: ast.stmt) -> str:
    """The text that a statement has become, with what was inserted before it."""
    start, end = _span(rw.facts, statement)
    return replace_spans(rw.facts.source.text, start, end, [e for e in rw.edits if start <= e[0] and e[1] <= end])


def _slot_names(texts: list[str], rings: list[str]) -> list[str]:
    """What tiles are called where they lie in LDS."""
    pattern = re.compile(rf"^ *(\w+) = (?:{'|'.join(rings)})\.index\(\w+\)(?:\.permute\([^)]*\))?$", re.M)
    return [name for text in texts for name in pattern.findall(text)]


def _last_reader(texts: list[str], rings: list[str]) -> int:
    """The number of the last text that reads one of `rings`, also by a name for its slot."""
    names = [*rings, *_slot_names(texts, rings)]
    read = re.compile(rf"\b(?:{'|'.join(names)})\b(?!\.dtype|\.shape)")
    return max((i for i, text in enumerate(texts) if read.search(text)), default=0)
