"""A ring of LDS buffers: each iteration reads a tile from its slot, while others are on their way to theirs."""

from __future__ import annotations

import ast

from gluonize.decide.choices.chosen import Choices
from gluonize.facts.function import FunctionFacts
from gluonize.facts.loops.loop_range import is_index
from gluonize.facts.syntax import target_of
from gluonize.gluon.code import as_lines, code_of, line
from gluonize.gluon.nodes import ONE, Barrier, Binary, Code, Node, Number, Repeat
from gluonize.gluon.printer import written
from gluonize.gluon.written import Assigned, Written, binary, call, operand
from gluonize.loops.copies import multicast
from gluonize.loops.copies.producer import Producer, commit, stores
from gluonize.loops.copies.waits import wait_for, waits_of_body
from gluonize.loops.forms.prologue import HEADS, fetched_first, made_first
from gluonize.loops.loop import counts
from gluonize.loops.loop.loop import LoopForm, PipelinedLoop, Ring, Statements
from gluonize.loops.loop.site import LoopSite
from gluonize.trace.front.trace import ConstFact
from gluonize.write.state.edits import Made
from gluonize.write.state.function_loops import FunctionLoops
from gluonize.write.state.writing import Emit, Writing

BACK = {"+": "-", "-": "+"}


class RingForm(LoopForm):
    """What all rings have in common."""

    verb = "loaded"

    def ends(self, emit: Emit, loop: PipelinedLoop) -> Written | None:
        return counts.condition(emit, loop, loop.fetch.at)

    def how(self, loop: PipelinedLoop) -> str:
        """How tiles come to LDS, in words."""
        raise NotImplementedError

    def says(self, loop: PipelinedLoop) -> str:
        loads, schedule = loop.plan.loads, loop.plan.schedule
        apart = [load.name for load in loads if loop.mixed and load.stored]
        tiles = listed(load.name for load in loads if not load.held and load.name not in apart)
        held = listed(load.name for load in loads if load.held)
        ahead = f"{schedule.ahead} tile{'s' if schedule.ahead > 1 else ''} ahead"
        said = f"`for {loop.plan.range.index}` is software-pipelined: {tiles} by {self.how(loop)} {ahead}, {slots_of(loop)} each"
        said += f"; {listed(apart)} through registers" if apart else ""
        return f"{said}; {held} {ahead} in registers" if held else said

    def before(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        """The rings and the first tiles."""
        producer = Producer(site, site.addressing, loop)
        lines: list[Made] = [*made_first(site, producer)]
        lines += multicast.before_first(site.record, loop)
        lines += ["", *self.heads(loop)]
        made = fetched_first(site, producer, Number(loop.tile))
        first = Repeat(loop.tile, loop.trips.fetched_before(site.emit, loop), made)
        behind = [node for one in loop.passes for node in one.before(site, loop)]
        counter = [line(f"{loop.counter} = 0")] if loop.counter else []
        return (*as_lines(lines), first, *behind, *counter)

    def heads(self, loop: PipelinedLoop) -> list[str]:
        """The comments at the head of the loop."""
        what = "fetched" if loop.mixed else self.verb
        tail = (
            " Tiles past the end are masked out and still counted."
            if loop.copies and not loop.trips.written_out
            else ""
        )
        return [f"{HEADS[1]}the first tiles are {what} before the loop.{tail}"]

    def top(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        ahead = reads_ahead(loop)
        used = ahead or loop.trips.written_out and _index_used(site.facts, loop)
        top = [*loop.trips.index(site, loop, used), *self.slots(site, loop), *waits_of_body(site, loop)]
        if ahead:
            top.append(line(f"{loop.ahead} = {loop.plan.range.index} + ", counts.distance(site.emit, loop)))
        return tuple(top)

    def slots(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        """The slots, at the top of the body."""
        return loop.trips.slots(site, loop)

    def end(self, site: LoopSite, loop: PipelinedLoop) -> Statements:
        made = stores(site.convert, site.names, loop.rings, self.store_slot(loop), loop.fetched)
        if made and not loop.alternates and site.decided.choices.asks("tile-stores", "fenced"):
            made.insert(0, line("gl.amd.hint.sched_barrier()"))
        counted = [line(f"{loop.counter} += 1")] if loop.counter else []
        return (*loop.trips.where_fetched(site.emit, loop, made), *counted)

    def after(self, site: LoopSite, loops: FunctionLoops, loop: PipelinedLoop) -> Statements:
        waited = self.drains and not loop.trips.written_out
        why = line("# Copies past the last tile must not land in LDS that is used for something else.")
        last = [why, *wait_for(site.record, loop, Number("0"))] if waited else []
        if _copied_over(site.facts, loops, loop):
            last = [line("# Every warp is done with the tiles before others are copied to their place."), Barrier()]
        lines: list[Made] = [*multicast.after_last(site.record, loop, waited)]
        if _shares_place(site, loop):
            lines.append(
                "# Operands do not take the place of tiles: what moves through LDS after them would wait once more."
            )
            lines += [f"{ring.smem}._keep_alive()" for ring in loop.rings]
        lines += [made for one in loop.passes for made in one.after(site, loop)]
        return (*last, *as_lines([*lines, *self.moved_back(site, loop)]))

    def moved_back(self, site: LoopSite, loop: PipelinedLoop) -> list[Code]:
        """Pointers that moved ahead of the last tile."""
        lines: list[Code] = []
        before = written(loop.trips.fetched_before(site.emit, loop))
        one_by_one: list[Code] = []
        for s in loop.plan.runs.rolled_back:
            for made in site.plain.moves(s):
                other = loop.asked(lambda one: one.moved_back(site, loop, made.code))  # noqa: B023
                if other is not None:
                    lines += other
                elif isinstance(site.facts.settled(s.value), ConstFact):
                    move = binary(operand(before), "*", operand(made.value))
                    lines.append(Assigned(made.target, move, BACK[made.sign]).code)
                else:
                    # Each step fits into 32 bits, as it does in the source; several of them may not.
                    one_by_one.append(code_of("    ", Assigned(made.target, made.value, BACK[made.sign]).code))
        if one_by_one:
            lines += [code_of("for _ in ", call("gl.static_range", before), ":"), *one_by_one]
        return lines


class CopiedRing(RingForm):
    """Asynchronous copies fill it."""

    drains = True
    verb = "copied"

    def tiles_ahead(self, loop: PipelinedLoop) -> Node:
        return Binary(loop.depth, "-", ONE)

    def store_slot(self, loop: PipelinedLoop) -> str:
        """That which the copies fill."""
        return loop.free

    def where(self, choices: Choices, rings: list[Ring]) -> tuple[list[Ring], list[Ring]]:
        late = choices.asks("copy-order", "after-reads")
        copied = [] if late else [ring for ring in rings if ring.is_copied]
        return copied, [ring for ring in rings if ring not in copied]

    def closed(self, site: LoopSite, loop: PipelinedLoop, fetched: list[Ring]) -> Statements:
        copied = [ring for ring in fetched if ring.is_copied]
        beside = [node for one in loop.passes for node in one.beside(site, loop, copied)] if copied else []
        return (*(commit(site.record, loop, copied) if copied else ()), *beside)

    def how(self, loop: PipelinedLoop) -> str:
        return by_copies(loop)

    def heads(self, loop: PipelinedLoop) -> list[str]:
        slots = loop.buffers.text
        ahead = int(slots) - 1 if slots.isdigit() else f"{slots} - 1"
        ring = f"{HEADS[0]}{slots} slots: tile k is read while tile k + {ahead} is copied."
        plain = not (loop.trips.written_out or loop.mixed or loop.alternates)
        return [*([ring] if plain else []), *super().heads(loop)]


class StoredRing(RingForm):
    """Tiles go through registers."""

    def where(self, choices: Choices, rings: list[Ring]) -> tuple[list[Ring], list[Ring]]:
        stored = [ring for ring in rings if ring.load.stored] if choices.asks("load-order", "before-reads") else []
        return stored, [ring for ring in rings if ring not in stored]

    def how(self, loop: PipelinedLoop) -> str:
        return "loads to registers"


def listed(names) -> str:
    return ", ".join(f"`{name}`" for name in names)


def slots_of(loop: PipelinedLoop) -> str:
    """`3 LDS buffers`."""
    buffers = loop.plan.schedule.buffers
    return f"{buffers} LDS buffer{'s' if buffers > 1 else ''}"


def by_copies(loop: PipelinedLoop) -> str:
    """What copies the tiles of a loop, in words."""
    schedule = loop.plan.schedule
    if not schedule.tensor_loads:
        return "direct copies"
    return "the tensor data mover" + (" and direct copies" if schedule.grouped else "")


def reads_ahead(loop: PipelinedLoop) -> bool:
    """Whether the body reads the index of the tile ahead."""
    plan = loop.plan
    by_tile = any(load.tile is not None and load.tile.counts_tiles for load in plan.loads)
    compared = not plan.range.asks_rest and not all(load.covered for load in plan.loads)
    return bool(loop.fetch.uses or by_tile or compared or any(one.uses_ahead for one in loop.passes))


def _index_used(facts: FunctionFacts, loop: PipelinedLoop) -> bool:
    """Whether a statement that stays reads the loop index."""
    moved = {n for s in loop.ahead_of if not _computed_here(facts, loop, s) for n in ast.walk(s)}
    moved |= {n for load in loop.plan.loads for n in ast.walk(load.call)}
    return any(
        isinstance(n, ast.Name) and n not in moved and is_index(facts, loop.plan.loop, n)
        for s in loop.plan.loop.body
        for n in ast.walk(s)
    )


def _computed_here(facts: FunctionFacts, loop: PipelinedLoop, s: ast.stmt) -> bool:
    """Whether the consumer has a statement of the producer too."""
    target = target_of(s)
    return facts.webs.of_definition[(s, target.id)] in loop.plan.runs.on_both_sides


def _copied_over(facts: FunctionFacts, loops: FunctionLoops, loop: PipelinedLoop) -> bool:
    """Whether another loop may copy to the place of tiles that were read without a barrier, and no wait is between them: nothing is left
    to wait for behind a loop that is written out."""
    plain = facts.kernel.target.relaxed_lds_reads and facts.kernel.num_warps > 1
    if not (plain and loop.trips.written_out and loop.copies):
        return False
    own = loop.plan.loop
    around = [n for n in facts.nodes if isinstance(n, (ast.For, ast.While)) and n is not own and own in ast.walk(n)]
    others = [other.plan.loop for other in loops.pipelined.values() if other.copies]
    return any(n.lineno > own.lineno or any(n in ast.walk(a) for a in around) for n in others)


def _shares_place(writing: Writing, loop: PipelinedLoop) -> bool:
    """Whether operands of the last tile would take the place of tiles that were read, which Triton keeps to the loop's end.

    What is moved behind the loop then has to wait for them. A single warp does not wait.
    """
    if not loop.trips.written_out or writing.facts.kernel.loops or writing.facts.kernel.num_warps == 1:
        return False
    return loop.plan.loop in writing.record.filled
