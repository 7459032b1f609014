"""Write a pipelined loop: LDS rings and the prologue before it, copies ahead and reads in place, waits, and the end.

The author's statements stay where they are. A staged load becomes a read of its LDS slot; right before it the same
load, taken from a copy of its syntax with the loop index renamed, fetches the tile ahead. Statements that addresses
need run ahead too, once more in the prologue; those that the consumer needs as well are written twice.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from gluonize.decide.choices.chosen import Choices
from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.syntax import target_of
from gluonize.gluon.code import code_of, ended, joined, replaced
from gluonize.gluon.nodes import Assign, Code, Node
from gluonize.gluon.printer import lines
from gluonize.gluon.written import name
from gluonize.loops.copies.producer import Producer
from gluonize.loops.copies.waits import waits_of_body
from gluonize.loops.loop.loop import LoopParts, PipelinedLoop, Ring
from gluonize.loops.loop.site import LoopSite
from gluonize.loops.plan.plan import NotPipelined, run_of_loads
from gluonize.loops.plan.schedule import Copied, Held, Stored
from gluonize.loops.planner.fetched import loaded_by_helpers
from gluonize.read.text.moved_lines import file_line
from gluonize.write.products import invariant
from gluonize.write.state.function_loops import FunctionLoops
from gluonize.write.state.unit import Decided, Record


def emit_statement(site: LoopSite, loop: PipelinedLoop, s: ast.stmt) -> None:
    """Emit a statement of the body of `loop` that pipelining changes."""
    loop.fetch.be(name(loop.ahead))
    indent = "\n" + site.facts.source.indent(s)
    if s in loop.ahead_of:
        _run_ahead(site, loop, s, indent)
        return
    if (made := loop.asked(lambda one: one.statement(site, s))) is not None:
        site.edits.replace(s, joined(indent, made))
        return
    _consumer_statement(site, s)
    permuted = loop.reads.permuted.items()
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


def _run_ahead(site: LoopSite, loop: PipelinedLoop, s: ast.stmt, indent: str) -> None:
    """A statement of the producer: it stands for a tile ahead, and behind the author's where the consumer needs that too."""
    made = site.plain.statement_code(loop.ahead_of[s])
    if site.facts.webs.of_definition[(s, target_of(s).id)] in loop.plan.runs.on_both_sides:
        site.plain.plain_statement(s)
        end = site.facts.source.span(s)[1]
        site.edits.append((end, end, code_of(indent, made)))
        return
    moved = loop.asked(lambda one: one.moved(site, loop, made, None))
    site.edits.replace(s, made if moved is None else joined(indent, moved))


def used_last(facts: FunctionFacts, loop: PipelinedLoop, ring: Ring) -> ast.stmt | None:
    """The last statement that reads a tile which waited in registers, where half of the products or more follow it and hide the latency of
    the next tile. Loaded behind it, the next tile can have the same registers; loaded before it, that tile is moved there at the end of the
    iteration, and the move waits for it.

    None where the next tile is loaded right behind the statement that takes this one. So it is where what its address is made of changes
    on the way.
    """
    plan, s = loop.plan, ring.load.statement
    if (
        not ring.held
        or not isinstance(plan.schedule, Copied | Stored | Held)
        or loop.alternates
        or loop.trips.written_out
    ):
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
    producer = Producer(site, site.addressing, loop)
    ends = loop.form.ends(site.emit, loop) if all(one.masks_end for one in loop.passes) else None
    made = [producer.fetch(ring, loop.free, loop.fetched, ends, indent[1:]) for ring in rings]
    return loop.trips.where_fetched(site.emit, loop, [*made, *loop.form.closed(site, loop, rings)])


def _consumer_statement(site: LoopSite, s: ast.stmt) -> None:
    """A statement with staged loads; a tile that is only read permuted is named where it lies, in LDS."""
    if isinstance(s, ast.Assign) and s.value in site.staged and isinstance(s.targets[0], ast.Name):
        web = site.facts.webs.of_definition[(s, s.targets[0].id)]
        if len(web.definitions) == 1 and not site.state(web).variants and web.uses:
            code = site.splice(s, {s.value: site.expression(site.staged[s.value].slot())}).code
            site.edits.replace(s, site.statement(Assign(web.name, code, web.name)))
            return
    site.plain.plain_statement(s)


def fetched_at(choices: Choices, loop: PipelinedLoop, s: ast.stmt) -> tuple[list[Ring], list[Ring]]:
    """(what is fetched before `s`, what is fetched after it) for the run of load statements that it belongs to."""
    first, last = run_of_loads(loop.plan, s)
    run = loop.plan.atoms[first : last + 1]
    again = loop.copied_again
    before, after = loop.form.where(choices, [r for r in loop.rings if r.load.statement in run and r not in again])
    return before if s is run[0] else [], after if s is run[-1] else []


def emit_body(site: LoopSite, loop: PipelinedLoop, s: ast.For) -> LoopParts:
    """Emits the statements of the body; -> what stands at its top and between them."""
    if loop.trips.in_rounds and not loop.alternates:
        site.record.choose(f"`for {loop.plan.range.index}` is written once per buffer: slots are literals")
    for said in (said for one in loop.passes for said in one.says(loop)):
        site.record.choose(said)
    site.plain.block(s.body)
    for one in loop.passes:
        one.begin(site, loop)
    refills = loop.asked(lambda one: one.refills(site, loop))
    again = loop.form.again(site, loop) if refills is None else refills
    top = loop.form.top(site, loop)
    return LoopParts(top=top, waits=waits_of_body(site, loop) if loop.alternates else (), again=again)


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
    record.choose(loop.form.says(loop))
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


def emit_around(site: LoopSite, loops: FunctionLoops, loop: PipelinedLoop, parts: LoopParts) -> LoopParts:
    """Emits the loop's header and what stands before it; -> `parts` with that, and with what stands at its end and behind it."""
    s, source = loop.plan.loop, site.facts.source
    first = source.first_line(s)
    before, outer = source.offset(first, 0), source.indent(s)
    gap: list[Code] = [("",)] if first > 1 and source.lines[first - 2].strip() else []
    gap += invariant.lines_before(site.hoisted, s)
    loop.form.header(site, loop)
    start = loop.form.before(site, loop)
    above = [*lines(start, outer), ""] if start else []
    site.edits.append((before, before, ended([*_block(gap, outer), *above])))
    end = loop.form.end(site, loop)
    return replace(parts, before=start, end=end, after=loop.form.after(site, loops, loop))


def _block(lines: list[Code], indent: str) -> list[Code]:
    """Lines behind an indentation; empty ones stay empty."""
    return [code_of(indent, replaced(line, "\n", "\n" + indent)) if line != ("",) else line for line in lines]


__all__ = ["announce", "emit_around", "emit_body", "emit_statement", "fetched_at"]
