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

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gluonize.decide.choices.chosen import Choices
from gluonize.facts.function import FunctionFacts
from gluonize.gluon.code import code_of, line
from gluonize.gluon.nodes import (
    ONE,
    Assign,
    Binary,
    Current,
    Named,
    Node,
    Number,
    Read,
    Slot,
    binds,
    mapped,
    places,
    reads,
    walk,
)
from gluonize.loops.copies.waits import waits_before
from gluonize.loops.loop.loop import Fresh, LoopBody, LoopPass, PipelinedLoop, Step
from gluonize.loops.loop.site import LoopSite
from gluonize.loops.passes.dot_parts import dot_parts
from gluonize.loops.passes.slices import SlicedDot
from gluonize.loops.passes.steps import check_apart, take_steps
from gluonize.loops.plan.schedule import Copied

FEWEST_BUFFERS = 3


@dataclass(frozen=True)
class Prefetched:
    """first: reads of tile 0, before the loop; body: of the loop, below its first lines."""

    first: tuple[Node, ...]
    body: tuple[Node, ...]


def asked(facts: FunctionFacts, choices: Choices, loop: PipelinedLoop, sliced: SlicedDot | None) -> LoopPass | None:
    """Reads ahead, where a choice asks for them and the loop can have them."""
    # Workgroups of a cluster wait for each other, with all of their warps.
    wanted = choices.asks("operand-reads", "one-ahead") and facts.kernel.num_ctas == 1
    return ReadsAhead() if wanted and _can_read_ahead(loop) else None


def _can_read_ahead(loop: PipelinedLoop) -> bool:
    """Whether another tile can have landed when one is read, and its slot is known an iteration ahead."""
    deep = isinstance(loop.plan.schedule, Copied) and loop.plan.schedule.buffers >= FEWEST_BUFFERS
    return deep and not (
        loop.trips.written_out
        or loop.trips.in_rounds
        or loop.alternates
        or any(one.statements() for one in loop.passes)
    )


class ReadsAhead(LoopPass):
    """found: what becomes of the body as it is written now, None where its reads stay where they are."""

    def __init__(self) -> None:
        self.found: Prefetched | None = None

    @property
    def reads_ahead(self) -> bool:
        return self.found is not None

    def left(self, loop: PipelinedLoop) -> int:
        return 2 if self.found is None else FEWEST_BUFFERS

    def begin(self, site: LoopSite, loop: PipelinedLoop) -> None:
        steps, _ = take_steps(site.facts, site.reads, site.edits.copy(), loop.plan.loop)
        check_apart(site.facts, steps)
        self.found = _of(loop, steps, functools.partial(site.loop_names.fresh, loop=loop.plan.loop))

    def before(self, site: LoopSite, loop: PipelinedLoop) -> tuple[Node, ...]:
        if self.found is None:
            return ()
        site.record.choose(f"`for {loop.plan.range.index}` reads operands from LDS one iteration ahead")
        return (*waits_before(site, loop), *self.found.first)

    def body(self, loop: PipelinedLoop, body: LoopBody, fresh: Fresh) -> LoopBody:
        if self.found is None:
            return body
        return replace(body, steps=(Step((), _of(loop, body.steps, fresh).body, True),))


def _of(loop: PipelinedLoop, steps: Sequence[Step], fresh: Fresh) -> Prefetched | None:
    return prefetched([step.statements for step in steps], [step.multiplies for step in steps], loop.slot, fresh)


def prefetched(
    steps: list[tuple[Node, ...]], dots: list[bool], slot: str, fresh: Callable[[str], str]
) -> Prefetched | None:
    """The statements of a body with its reads at the end; None where something else than its one product uses them.

    steps: what each of the author's statements has become; dots: which of them multiply. slot: the variable with the slot to
    read; fresh: gives a name that the function does not use.
    """
    if dots.count(True) != 1:
        return None
    at = dots.index(True)
    parts = dot_parts(steps[at], fresh)
    if parts is None:
        return None
    before = [*(s for step in steps[:at] for s in step), *parts.operands]
    after = [*([parts.after] if parts.after is not None else []), *(s for step in steps[at + 1 :] for s in step)]
    tiles: dict[str, Node] = {}
    ahead: list[Assign] = []
    others: list[Node] = []
    for s in before:
        read = _instead(s, tiles)
        value = read.value if isinstance(read, Assign) else None
        if value is None or not _of_slot(value, slot):
            others.append(s)
        elif any(isinstance(n, Read) for n in walk(value)):
            ahead.append(replace(read, code=code_of(read.target, " = ", value)))
        elif len(value) == 1:
            tiles |= dict.fromkeys((read.target, read.name), value[0])
        else:
            others.append(s)
    rest = (*others, *parts.matrix, *after)
    early = reads(tuple(ahead)) & binds((*before, *rest))
    late = {*tiles, *binds(tuple(ahead))} & reads((*others, *after)) | {*tiles} & reads(parts.matrix)
    if not ahead or early or late or _of_slot(rest, slot):
        return None
    comment = line("# The next tile's operands, read while this tile is multiplied.")
    following = [_at(read, slot, slot, Binary(Current(), "+", ONE)) for read in ahead]
    return Prefetched(tuple(_at(read, slot, "0", Number("0")) for read in ahead), (*rest, comment, *following))


def _of_slot(node: Node | tuple, slot: str) -> bool:
    return any(isinstance(place, Slot) and place.index == slot for place in places(node))


def _instead(node: Node, tiles: dict[str, Node]) -> Node:
    """`node` with the slots of tiles for the variables that name them."""
    if isinstance(node, Named):
        return tiles.get(node.name, node)
    return mapped(node, lambda part: _instead(part, tiles))


def _at(node: Node, slot: str, index: str, tile: Node) -> Node:
    """`node` with another tile, from another slot."""
    if isinstance(node, Slot) and node.index == slot:
        return replace(node, index=index, tile=tile)
    return mapped(node, lambda part: _at(part, slot, index, tile))
