"""Write a pipelined loop: LDS rings and the prologue before it, copies ahead and reads in place, waits, and the end.

The author's statements stay where they are. A staged load becomes a read of its LDS slot; right before it the same
load, taken from a copy of its syntax with the loop index renamed, fetches the tile ahead. Statements that addresses
need run ahead too, once more in the prologue; those that the consumer needs as well are written twice.
"""

from __future__ import annotations

import ast

from gluonize.decide.choices.chosen import Choices
from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.loops.loop_range import is_index
from gluonize.facts.syntax import target_of
from gluonize.gluon.code import as_lines, code_of, ended, joined, line, replaced
from gluonize.gluon.layout_names import LayoutNames
from gluonize.gluon.nodes import ONE, Assign, Barrier, Binary, Choose, Code, Current, Node, Number, Previous
from gluonize.gluon.printer import lines, written
from gluonize.gluon.written import Assigned, binary, call, name, operand
from gluonize.loops.copies import l2, multicast
from gluonize.loops.copies.producer import Producer, commit, stores
from gluonize.loops.forms import once, repeated
from gluonize.loops.forms.prologue import prologue, shared_state
from gluonize.loops.forms.waits import wait_for, waits, waits_of_body
from gluonize.loops.loop import counts
from gluonize.loops.loop.loop import PipelinedLoop, Ring
from gluonize.loops.loop.site import LoopSite
from gluonize.loops.passes import early_refill, refill, slices, unroll
from gluonize.loops.passes.passes import read_ahead
from gluonize.loops.plan.plan import NotPipelined, PipelinePlan, run_of_loads
from gluonize.loops.planner.fetched import loaded_by_helpers
from gluonize.read.files.moved_lines import file_line
from gluonize.trace.front.trace import ConstFact
from gluonize.write.calls import calls
from gluonize.write.products import invariant
from gluonize.write.state.edits import Made
from gluonize.write.state.function_loops import FunctionLoops
from gluonize.write.state.gluon_modules import async_module
from gluonize.write.state.unit import Decided, Record, Synthesized
from gluonize.write.state.writing import Convert, Emit, Writing, added

_BACK = {"+": "-", "-": "+"}
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


def emit_statement(site: LoopSite, loop: PipelinedLoop, s: ast.stmt) -> None:
    """Emit a statement of the body of `loop` that pipelining changes."""
    loop.fetch_at(name(loop.ahead))
    indent = "\n" + site.facts.source.indent(s)
    if s in loop.ahead_of:
        made = loop.ahead_of[s]
        web = site.facts.webs.of_definition[(s, target_of(s).id)]
        if web in loop.plan.on_both_sides:
            site.plain(s)
            end = site.facts.source.span(s)[1]
            site.edits.append((end, end, code_of(indent, site.statement_code(made))))
        elif loop.repeats:
            there = repeated.another_follows(site.emit, loop)
            site.edits.replace(s, code_of("if ", there, f":{indent}    ", site.statement_code(made)))
        else:
            site.edits.replace(s, site.statement_code(made))
        return
    if loop.sliced is not None and s is loop.sliced.statement:
        site.edits.replace(s, joined(indent, slices.accumulate(site, loop.sliced)))
        return
    _consumer_statement(site, s)
    permuted = loop.round.permuted.items()
    site.edits.insert_behind(s, [code_of(own, " = ", read) for own, (load, read) in permuted if load is s])
    before, after = fetched_at(site.decided.choices, loop, s)
    start, end = site.facts.source.span(s)
    if before:
        fetches = _fetches(site, loop, before, indent)
        site.edits.append((start, start, code_of(*(code_of(node, indent) for node in fetches))))
    places = [used_last(site.facts, loop, ring) for ring in after]
    for place in dict.fromkeys(places):
        end = site.facts.source.span(place or s)[1]
        fetches = _fetches(site, loop, [ring for ring, own in zip(after, places) if own is place], indent)
        site.edits.append((end, end, code_of(*(code_of(indent, node) for node in fetches))))


def used_last(facts: FunctionFacts, loop: PipelinedLoop, ring: Ring) -> ast.stmt | None:
    """The statement that reads a tile which waited in registers last, where half of the products follow, which hide the next one's
    latency: loaded behind it, that one has the same registers. Loaded before, it is moved there at the end of the iteration, and waited for.

    None where it is loaded behind the statement that takes the tile, or what its address is made of changes on the way.
    """
    plan, s = loop.plan, ring.load.statement
    if not ring.held or loop.stages or loop.specialized or loop.refills or loop.written_out:
        return None
    if not isinstance(s, ast.Assign) or s.value is not ring.load.call or not isinstance(s.targets[0], ast.Name):
        return None
    web, at = facts.webs.of_definition[(s, s.targets[0].id)], plan.atoms.index(s)
    reaching = facts.webs.reaching
    uses = {node for node, _ in web.uses if any(d.node is s for d in reaching.get(node, ()))}
    last = max((i for i, atom in enumerate(plan.atoms) if any(n in uses for n in ast.walk(atom))), default=at)
    passed, behind = plan.atoms[at + 1 : last + 1], plan.atoms[last + 1 :]
    place = passed[-1] if passed else s
    if not passed or not isinstance(place, ast.Assign | ast.AugAssign) or place.col_offset != s.col_offset:
        return None
    if any(len(reaching[node]) > 1 for node in uses) or any(atom in loop.ahead_of for atom in passed):
        return None
    products, left = (
        sum(callees.is_dot(facts, n) for atom in atoms for n in ast.walk(atom)) for atoms in (plan.atoms, behind)
    )
    return place if 0 < products <= 2 * left else None


def _fetches(site: LoopSite, loop: PipelinedLoop, rings: list[Ring], indent: str) -> tuple[Node, ...]:
    """What fetches the tiles ahead of `rings`, and closes the group of those that are copied."""
    own = _producer(site, loop)
    condition = None if loop.specialized or loop.repeats else counts.condition(site.emit, loop, loop.round.at)
    made = [own.fetch(ring, loop.free, loop.fetched, condition, indent[1:]) for ring in rings]
    copied = [ring for ring in rings if not ring.held and not ring.load.stored]
    if loop.specialized:
        ready, _ = loop.barriers[loop.group_of(rings[0])]
        if any(ring.load.tile is None for ring in rings):
            made.append(line(f"{async_module(site.record)}.mbarrier_arrive({ready}.index({loop.slot}))"))
    elif copied:
        made += commit(site.record, loop, copied)
    if copied:
        made += as_lines(l2.prefetches(site.facts, site.emit, site.record, loop, copied))
    return counts.where_fetched(site.emit, loop, made)


def _producer(site: LoopSite, loop: PipelinedLoop) -> Producer:
    return Producer(site, site.addressing, loop)


def _consumer_statement(site: LoopSite, s: ast.stmt) -> None:
    """A statement with staged loads; a tile that is only read permuted is named where it lies, in LDS."""
    if isinstance(s, ast.Assign) and s.value in site.staged and isinstance(s.targets[0], ast.Name):
        web = site.facts.webs.of_definition[(s, s.targets[0].id)]
        if len(web.definitions) == 1 and not site.state(web).variants and web.uses:
            code = site.splice(s, {s.value: site.expression(site.staged[s.value].slot())}).code
            site.edits.replace(s, site.statement(Assign(web.name, code, web.name)))
            return
    site.plain(s)


def fetched_at(choices: Choices, loop: PipelinedLoop, s: ast.stmt) -> tuple[list[Ring], list[Ring]]:
    """(what is fetched before `s`, what is fetched after it) for the run of load statements that it belongs to.

    Copies go before the run: LDS is read while they are in flight; late: behind it, so that reads do not wait for room in the queue
    of memory. Loads to registers go after it: the tile that they replace is on its way to the matrix cores by then, which frees
    registers; early: before it, where all tiles go that way. Tiles that wait in registers are taken before the next ones replace them.
    """
    if loop.plan.once:
        return [], []
    late, early = choices.asks("copy-order", "after-reads"), choices.asks("load-order", "before-reads")
    first, last = run_of_loads(loop.plan, s)
    run = loop.plan.atoms[first : last + 1]
    rings = [ring for ring in loop.rings if ring.load.statement in run and ring not in loop.early]
    if loop.refills:  # copies come after the last read
        return [], [ring for ring in rings if ring.held] if s is run[-1] else []
    copied = [ring for ring in rings if not ring.held and not ring.load.stored]
    before = [] if late and not loop.specialized else copied
    if early and loop.plan.schedule.mechanism == "registers":
        before = [ring for ring in rings if ring.load.stored]
    after = [ring for ring in rings if ring not in before]
    return before if s is run[0] else [], after if s is run[-1] else []


def emit_body(site: LoopSite, loop: PipelinedLoop, s: ast.For) -> None:
    """The statements of the body, and what stands at its top."""
    index = loop.plan.index
    if loop.stages:
        rounds = ", written once per buffer: slots are literals" if loop.first else ""
        site.record.choose(
            f"warps of `for {index}` alternate between memory and compute in {len(loop.stages)} stages{rounds}"
        )
    elif loop.first:
        site.record.choose(f"`for {index}` is written once per buffer: slots are literals")
    site.block(s.body)
    if loop.prefetch and not loop.stages and not loop.first:
        loop.round.prefetched = read_ahead(site, loop)
    loop.round.copies_again = refill.fills(_producer(site, loop)) if loop.refills else ()
    if loop.early:
        names = " and ".join(f"`{ring.load.name}`" for ring in loop.early)
        be, them = ("is", "it") if len(loop.early) == 1 else ("are", "them")
        site.record.choose(f"{names} {be} copied again as soon as both groups of warps have read {them}")
        loop.round.copies_again = early_refill.again(site, _producer(site, loop))
    if loop.repeats:
        site.record.choose(f"copies past the end of `for {index}` fetch its last tile once more")
    if loop.stores_early:
        site.record.choose(
            f"tiles of `for {index}` are stored as soon as both groups of warps have read those that they replace"
        )
    loop.round.top = once.first(_producer(site, loop)) if loop.plan.once else tuple(_top(site, loop))
    loop.round.waits = waits_of_body(site, loop) if loop.stages else ()


def announce(record: Record, facts: FunctionFacts, loops: FunctionLoops, decided: Decided, s: ast.For) -> None:
    """Note how a loop is written, and what that rests on."""
    loop = loops.pipelined.get(s)
    if (reason := loops.whole.get(s)) is not None:
        record.choose(f"`for {facts.source.of(s.target)}` is not warp-specialized: {reason}")
    if loop is None:
        for kept in loops.plans:
            if isinstance(kept, NotPipelined) and kept.wanted and kept.line == s.lineno:
                record.keep_loop(file_line(facts.frame.fn, s.lineno), facts.source.of(s.target), kept.reason)
        return
    plan = loop.plan
    record.choose(_chosen(plan, loop))
    for called in loaded_by_helpers(facts, s.body):
        record.keep_loop(
            file_line(facts.frame.fn, s.lineno), facts.source.of(s.target), f"a tile is loaded by {called}"
        )
    if plan.shallower and not decided.choices.number("depth"):
        record.explain(plan.shallower)
    for line, reason in plan.not_tiles:
        record.choose(
            f"the load in line {file_line(facts.frame.fn, line)} is not one for the tensor data mover: {reason}"
        )
    record.obligations |= plan.assumed | loop.assumed


def emit_around(site: LoopSite, loops: FunctionLoops, loop: PipelinedLoop, s: ast.For) -> None:
    """The loop's header, and what stands before and behind the loop."""
    plan, source = loop.plan, site.facts.source
    first = source.first_line(s)
    before, outer = source.offset(first, 0), source.indent(s)
    gap: list[Code] = [("",)] if first > 1 and source.lines[first - 2].strip() else []
    gap += invariant.lines_before(site.hoisted, s)
    if plan.once:
        site.edits.append((before, before, ended(_block(gap, outer))))
        site.edits.append((source.span(s)[0], source.span(s.iter)[1], once.header(site.emit, loop)))
        loop.round.end = tuple(_after(site, loops, loop))
        return
    if loop.first:
        start, end = source.span(s.target)[0], source.span(s.iter)[1]
        site.edits.append((start, end, unroll.header(site.emit, loop)))
    elif loop.written_out:
        site.edits.replace(s.target, loop.tile)
        site.edits.replace(s.iter, call("gl.static_range", counts.tiles(site.emit, loop)))
    else:
        site.edits.replace(s.iter, calls.emit_iterator(site, s.iter))
    loop.round.before = (
        as_lines(shared_state(_producer(site, loop))) if loop.specialized else prologue(site, _producer(site, loop))
    )
    if loop.round.prefetched is not None:
        site.record.choose(f"`for {plan.index}` reads operands from LDS one iteration ahead")
        loop.round.before = (*loop.round.before, *waits(site.emit, site.record, loop)[1:], *loop.round.prefetched.first)
    first_lines = [*_block(gap, outer), *lines(loop.round.before, outer), ""]
    site.edits.append((before, before, ended(first_lines)))
    loop.round.end = tuple(_tail(site.emit, site.convert, site.names, site.decided.choices, loop))
    loop.round.after = tuple(_after(site, loops, loop))


def _chosen(plan: PipelinePlan, loop: PipelinedLoop) -> str:
    """One line on how a loop is written, as `translate` prints it."""
    through = ", ".join(f"`{load.name}`" for load in plan.loads if loop.mixed and load.stored)
    tiles = ", ".join(f"`{load.name}`" for load in plan.loads if not load.held and not (loop.mixed and load.stored))
    held = ", ".join(f"`{load.name}`" for load in plan.loads if load.held)
    if loop.only_holds:
        return f"`for {plan.index}` is software-pipelined: {held} to registers, an iteration ahead"
    if plan.once:
        return f"`for {plan.index}` runs at most once and is a branch: {tiles} at its top"
    schedule = plan.schedule
    how = "direct copies" if loop.copies else "loads to registers"
    if loop.copies and schedule.tensor_loads:
        how = "the tensor data mover" + (" and direct copies" if schedule.grouped else "")
    if loop.refills:
        refilled = f"`for {plan.index}` is software-pipelined: {tiles} by {how} into one LDS buffer each"
        refilled += ", filled again after its last read"
        return f"{refilled}; {held} 1 tile ahead in registers" if held else refilled
    slots = f"{schedule.buffers} LDS buffer{'s' if schedule.buffers > 1 else ''}"
    if loop.specialized:
        copying = (
            "one more warp copies" if schedule.producer_warps == 1 else f"{schedule.producer_warps} more warps copy"
        )
        warps = f"{copying} {tiles} into {slots} each"
        return f"`for {plan.index}` is warp-specialized: {warps}, the kernel's {schedule.consumer_warps} warps compute"
    ahead = f"{schedule.ahead} tile{'s' if schedule.ahead > 1 else ''} ahead"
    staged = f"`for {plan.index}` is software-pipelined: {tiles} by {how} {ahead}, {slots} each"
    if through:
        staged += f"; {through} through registers"
    return f"{staged}; {held} {ahead} in registers" if held else staged


def _top_written_out(facts: FunctionFacts, emit: Emit, loop: PipelinedLoop, index_used: bool) -> list[Node]:
    """The loop index as a value, where it is used, and the slots of a loop that is written out."""
    lines = []
    if index_used:
        value = counts.index_value(facts, loop, counts.prologue_index(emit, loop))
        lines.append(code_of(f"{loop.plan.index} = ", value))
    chosen = [*as_lines(lines), Choose(loop.slot, Binary(Current(loop.tile), "%", loop.depth))]
    return [*chosen, Choose(loop.free, unroll.last_slot(Current(loop.tile), loop.depth))] if loop.copies else chosen


def _top_refilled(facts: FunctionFacts, emit: Emit, loop: PipelinedLoop, index_used: bool) -> list[Node]:
    """The loop index as a value, where it is used and the loop is written out: there is no slot to compute."""
    if not loop.written_out or not index_used:
        return []
    return [line(f"{loop.plan.index} = ", counts.index_value(facts, loop, counts.prologue_index(emit, loop)))]


def _top(writing: Writing, loop: PipelinedLoop) -> list[Node]:
    plan = loop.plan
    top: list[Node] = []
    by_tile = any(load.tile is not None and load.tile.counts_tiles for load in plan.loads)
    compared = not plan.asks_rest and not all(load.covered for load in plan.loads)
    uses_ahead = bool(loop.index_names or by_tile or loop.l2_ahead or compared)
    if loop.first:
        top += unroll.top(writing.emit, loop)
    elif loop.refills:
        top += _top_refilled(writing.facts, writing.emit, loop, uses_ahead or _index_used(writing.facts, loop))
    elif loop.written_out:
        top += _top_written_out(writing.facts, writing.emit, loop, uses_ahead or _index_used(writing.facts, loop))
    elif not loop.only_holds:
        number = Current(counts.tile_number(writing.emit, loop))
        if loop.counter or plan.step is not None:
            top.append(line(f"gl.assume({loop.counter or plan.index} >= 0)"))
        read = number if loop.round.prefetched is None else Binary(number, "+", ONE)
        top.append(Choose(loop.slot, Binary(read, "%", loop.depth)))
        if loop.specialized:
            return [*top, line(f"{loop.phase} = (", number, " // ", loop.buffers, ") & 1")]
        if loop.copies:
            top.append(
                Choose(loop.free, _free_slot(writing.facts, writing.record, writing.decided.choices, loop, number))
            )
    top += waits_of_body(writing, loop)
    if uses_ahead:
        top.append(line(f"{loop.ahead} = {plan.index} + ", counts.distance(writing.emit, loop)))
    return top


def _free_slot(facts: FunctionFacts, record: Record, choices: Choices, loop: PipelinedLoop, number: Node) -> Node:
    """The slot of the tile ahead: one remainder less, or in the form that the compiler can tell apart from `slot`.

    Of indices `i % n` and `(i + c) % n` it knows that they differ. Where it does not, it puts a barrier between a read
    and a store or a copy of the tensor data mover; one in a stage would pair the wrong stages. Between reads and other
    copies that stand before them, and within one warp, it puts none, and the shorter form leaves registers. Where one warp stores tiles beside
    copies, LLVM folds addresses of a selected slot only.
    """
    behind_reads = loop.plan.schedule.tensor_loads or choices.asks("copy-order", "after-reads")
    told_apart = behind_reads and (loop.stages or choices.asks("slot-form", "told-apart"))
    if told_apart or loop.mixed and facts.kernel.num_warps > 1 or loop.round.prefetched is not None:
        return unroll.last_slot(number, loop.depth)
    return Previous(Number(loop.slot), loop.depth, "" if loop.mixed else added(facts, record, PREVIOUS_SLOT))


def _tail(emit: Emit, convert: Convert, names: LayoutNames, choices: Choices, loop: PipelinedLoop) -> list[Node]:
    made = stores(convert, names, loop.rings, loop.store_slot, loop.fetched)
    if made and not loop.stages and choices.asks("tile-stores", "fenced"):
        made.insert(0, line("gl.amd.hint.sched_barrier()"))
    return [*counts.where_fetched(emit, loop, made), *([line(f"{loop.counter} += 1")] if loop.counter else [])]


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
    return facts.webs.of_definition[(s, target.id)] in loop.plan.on_both_sides


def _after(site: LoopSite, loops: FunctionLoops, loop: PipelinedLoop) -> list[Node]:
    waited = loop.copies and not loop.specialized and not loop.written_out and not loop.plan.once
    why = line("# Copies past the last tile must not land in LDS that is used for something else.")
    last = [why, *wait_for(site.record, loop, Number("0"))] if waited else []
    if _copied_over(site.facts, loops, loop):
        last = [line("# Every warp is done with the tiles before others are copied to their place."), Barrier()]
    return [*last, *as_lines(_lines_after(site, loop, waited))]


def _copied_over(facts: FunctionFacts, loops: FunctionLoops, loop: PipelinedLoop) -> bool:
    """Whether another loop may copy to the place of tiles that were read without a barrier, and no wait is between them: nothing is left
    to wait for behind a loop that is written out."""
    plain = facts.kernel.target.relaxed_lds_reads and facts.kernel.num_warps > 1
    if not (plain and loop.written_out and loop.copies):
        return False
    own = loop.plan.loop
    around = [n for n in facts.nodes if isinstance(n, (ast.For, ast.While)) and n is not own and own in ast.walk(n)]
    others = [other.plan.loop for other in loops.pipelined.values() if other.copies]
    return any(n.lineno > own.lineno or any(n in ast.walk(a) for a in around) for n in others)


def _lines_after(site: LoopSite, loop: PipelinedLoop, waited: bool) -> list[Made]:
    lines: list[Made] = []
    lines += multicast.after_last(site.record, loop, waited)
    if loop.plan.once:
        return lines
    if _shares_place(site, loop):
        lines.append(
            "# Operands do not take the place of tiles: what moves through LDS after them would wait once more."
        )
        lines += [f"{ring.smem}._keep_alive()" for ring in loop.rings]
    if loop.sliced is not None:
        lines += slices.join(site.facts, site.names, site.conversions_after, loop.sliced)
    before = written(counts.fetched_before(site.emit, loop))
    tiles = operand(before)
    if loop.specialized and loop.plan.rolled_back:
        # The moves happen in the producer.
        tiles = name(site.loop_names.fresh("tiles", loop.plan.loop))
        lines.append(Assigned(tiles, counts.trips(site.emit, loop)).code)
    one_by_one: list[Code] = []
    for s in loop.plan.rolled_back:
        for made in site.moves(s):
            if loop.repeats:
                lines += repeated.moved_after(site.emit, loop, made.code)
                continue
            if not (loop.only_holds or loop.specialized or isinstance(site.facts.settled(s.value), ConstFact)):
                # Each step fits into 32 bits, as it does in the source; several of them may not.
                one_by_one.append(code_of("    ", Assigned(made.target, made.value, _BACK[made.sign]).code))
                continue
            move = made.value if loop.only_holds else binary(tiles, "*", operand(made.value))
            lines.append(Assigned(made.target, move, made.sign if loop.specialized else _BACK[made.sign]).code)
    if one_by_one:
        lines += [code_of("for _ in ", call("gl.static_range", before), ":"), *one_by_one]
    return lines


def _shares_place(writing: Writing, loop: PipelinedLoop) -> bool:
    """Whether operands of the last tile would take the place of tiles that were read, which Triton keeps to the loop's end.

    What is moved behind the loop then has to wait for them. A single warp does not wait.
    """
    if not loop.written_out or writing.facts.kernel.loops or writing.facts.kernel.num_warps == 1:
        return False
    return loop.plan.loop in writing.record.filled


def _block(lines: list[Code], indent: str) -> list[Code]:
    """Lines behind an indentation; empty ones stay empty."""
    return [code_of(indent, replaced(line, "\n", "\n" + indent)) if line != ("",) else line for line in lines]


__all__ = ["announce", "emit_around", "emit_body", "emit_statement", "fetched_at"]
