"""How the iterations of a pipelined loop are counted: by the author's header, each in a text of its own, or in rounds of one per buffer."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from gluonize.decide.choices.chosen import Choices
from gluonize.facts.function import FunctionFacts
from gluonize.gluon.code import code_of, line
from gluonize.gluon.nodes import ONE, Binary, Choose, Current, Least, Node, Number, Previous, Repeat, When
from gluonize.gluon.written import Written, binary, call, literal, name, operand, times
from gluonize.loops.loop import counts
from gluonize.loops.loop.loop import LoopBody, PipelinedLoop, Statements, Trips
from gluonize.loops.loop.site import LoopSite
from gluonize.write.calls import calls
from gluonize.write.state.unit import Record, Synthesized
from gluonize.write.state.writing import Emit, added

# Of `gl.where(slot == 0, count - 1, slot - 1)` LLVM makes a subtraction with overflow, in vector registers, where there are three
# slots or more, though the slot is the same for all lanes. For two there is no difference.
PREVIOUS_SLOT = Synthesized(
    "previous_slot",
    '''@gluon.jit
def previous_slot(slot, count: gl.constexpr):
    """The slot before `slot` in a ring of `count`; before slot 0 the last one."""
    # As an unsigned number, -1 is greater than any slot.
    return gl.minimum((slot - 1).to(gl.uint32), count - 1).to(gl.int32)
''',
)


class Rolled(Trips):
    """The author's header: one text for all iterations."""

    def number(self, emit: Emit, loop: PipelinedLoop) -> Written:
        if loop.counter:
            return name(loop.counter)
        index, step = name(loop.plan.range.index), loop.plan.range.step
        return index if step is None else binary(index, "//", operand(emit(step)))

    def header(self, site: LoopSite, loop: PipelinedLoop) -> None:
        site.edits.replace(loop.plan.loop.iter, calls.emit_iterator(site, loop.plan.loop.iter))

    def slots(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        number = Current(self.number(site.emit, loop))
        top: list[Node] = []
        if loop.counter or loop.plan.range.step is not None:
            top.append(line(f"gl.assume({loop.counter or loop.plan.range.index} >= 0)"))
        read = Binary(number, "+", ONE) if loop.reads_ahead else number
        top.append(Choose(loop.slot, Binary(read, "%", loop.depth)))
        if loop.free != loop.slot and loop.copies:
            top.append(Choose(loop.free, _free_slot(site.facts, site.record, site.decided.choices, loop, number)))
        return tuple(top)


@dataclass(frozen=True)
class WrittenOut(Trips):
    """Each iteration has a text of its own: their number is known, and small."""

    written_out = True

    def number(self, emit: Emit, loop: PipelinedLoop) -> Written:
        return name(loop.tile)

    def fetched_before(self, emit: Emit, loop: PipelinedLoop) -> Node:
        return Least(loop.tiles_ahead, Number(counts.tiles(emit, loop)))

    def where_fetched(self, emit: Emit, loop: PipelinedLoop, statements: Iterable[Node]) -> Statements:
        """Only for the tiles that are not fetched before the loop."""
        found = tuple(statements)
        if not found:
            return ()
        tile = Binary(Current(loop.tile), "+", loop.depth)
        if loop.tiles_ahead != loop.depth:
            tile = Binary(tile, "-", ONE)
        return (When(tile, Number(counts.tiles(emit, loop)), found),)

    def under_way(self, emit: Emit, loop: PipelinedLoop, left: Node) -> Node:
        return Least(left, Binary(Binary(Number(counts.tiles(emit, loop)), "-", ONE), "-", Current(loop.tile)))

    def header(self, site: LoopSite, loop: PipelinedLoop) -> None:
        site.edits.replace(loop.plan.loop.target, loop.tile)
        site.edits.replace(loop.plan.loop.iter, call("gl.static_range", counts.tiles(site.emit, loop)))

    def index(self, site: LoopSite, loop: PipelinedLoop, used: bool) -> Statements:
        value = counts.index_value(site.facts, loop, counts.prologue_index(site.emit, loop))
        return (line(f"{loop.plan.range.index} = ", value),) if used else ()

    def slots(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        read = Choose(loop.slot, Binary(Current(loop.tile), "%", loop.depth))
        return (read, Choose(loop.free, last_slot(Current(loop.tile), loop.depth))) if loop.copies else (read,)

    def count(self, emit: Emit, loop: PipelinedLoop) -> str:
        return counts.tiles(emit, loop).text


@dataclass(frozen=True)
class Rounds(Rolled):
    """Literal ring indices: the body once per LDS buffer, so that no slot is computed at run time. first: the index of the first
    tile of a round.

    Before:                                         After:
        for k in range(0, gl.cdiv(K, BLOCK_K)):         for k_first in range(0, gl.cdiv(K, BLOCK_K), NUM_BUFFERS):
            slot = k % NUM_BUFFERS                          for slot in gl.static_range(NUM_BUFFERS):
            ...                                                 k = k_first + slot
                                                                ...
    """

    first: str

    in_rounds = True

    def header(self, site: LoopSite, loop: PipelinedLoop) -> None:
        """`k_first in range(0, gl.cdiv(K, BLOCK_K), NUM_BUFFERS)`."""
        plan, source = loop.plan, site.facts.source
        start, end = source.span(plan.loop.target)[0], source.span(plan.loop.iter)[1]
        low = literal(0) if plan.range.low is None else site.emit(plan.range.low)
        step = loop.buffers if plan.range.step is None else times(loop.buffers, operand(site.emit(plan.range.step)))
        made = call("range", low, site.emit(plan.range.high), step)
        site.edits.append((start, end, code_of(f"{self.first} in ", made)))

    def index(self, site: LoopSite, loop: PipelinedLoop, used: bool) -> Statements:
        plan = loop.plan
        number = (
            name(loop.slot) if plan.range.step is None else times(name(loop.slot), operand(site.emit(plan.range.step)))
        )
        counted = any(load.tile is not None and load.tile.counts_tiles for load in plan.loads)
        names = {n.id for s in plan.loop.body for n in ast.walk(s) if isinstance(n, ast.Name)}
        return (line(f"{plan.range.index} = {self.first} + ", number),) if counted or plan.range.index in names else ()

    def slots(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        return (Choose(loop.free, last_slot(Number(loop.slot), loop.depth)),)

    def nodes(self, loop: PipelinedLoop, body: LoopBody) -> Statements:
        inner = LoopBody(body.top, body.steps, ()).nodes
        return (Repeat(loop.slot, loop.depth, inner), *body.end)


def last_slot(number: Node, depth: Node) -> Node:
    """The slot of the tile that is as far ahead of tile `number` as can be."""
    return Binary(Binary(Binary(number, "+", depth), "-", ONE), "%", depth)


def _free_slot(facts: FunctionFacts, record: Record, choices: Choices, loop: PipelinedLoop, number: Node) -> Node:
    """The slot of the tile ahead: one remainder less, or in the form that the compiler can tell apart from `slot`.

    Of indices `i % n` and `(i + c) % n` it knows that they differ. Where it does not, it puts a barrier between a read
    and a store or a copy of the tensor data mover; one in a stage would pair the wrong stages. Between reads and other
    copies that stand before them, and within one warp, it puts none, and the shorter form leaves registers. Where one warp stores tiles beside
    copies, LLVM folds addresses of a selected slot only.
    """
    behind_reads = loop.plan.schedule.tensor_loads or choices.asks("copy-order", "after-reads")
    told_apart = behind_reads and (loop.alternates or choices.asks("slot-form", "told-apart"))
    if told_apart or loop.mixed and facts.kernel.num_warps > 1 or loop.reads_ahead:
        return last_slot(number, loop.depth)
    return Previous(Number(loop.slot), loop.depth, "" if loop.mixed else added(facts, record, PREVIOUS_SLOT))


__all__ = ["Rolled", "Rounds", "WrittenOut", "last_slot"]
