"""Finding the layouts of a function whose loops are pipelined: they are planned first, and tiles ahead want layouts too."""

from __future__ import annotations

import ast
from collections.abc import Container, Mapping

from gluonize.facts.function import FunctionFacts
from gluonize.facts.syntax import arguments_of, target_of
from gluonize.facts.webs import UnrolledLoop, Web
from gluonize.gluon.written import Written
from gluonize.loops.copies.producer import Producer
from gluonize.loops.forms.emit import fetched_at
from gluonize.loops.forms.prepare import prepare
from gluonize.loops.forms.twins import Planning
from gluonize.loops.loop.ahead import is_pure
from gluonize.loops.loop.loop import PipelinedLoop, Ring
from gluonize.loops.loop.reads import permuted_read, read_where_used
from gluonize.loops.plan.tiles.strided import StridedTile
from gluonize.trace.model.layouts import Layout
from gluonize.write.accesses import uniform_parts
from gluonize.write.layouts.demand_walk import DemandWalk
from gluonize.write.state.layouts import TileRead
from gluonize.write.state.site import Spot

# Statements that nothing needs once the tensor data mover fetches a loop's tiles: pointers, masks, and what only they used.


def unneeded(
    facts: FunctionFacts, pipelined_loops: Mapping[ast.For, PipelinedLoop], pipelined_statements: Container[ast.stmt]
) -> frozenset[ast.stmt]:
    """Assignments whose values were only used for addresses and masks that are not computed any more."""
    gone: set[ast.Name] = set()
    kept: set[int] = set()
    for loop in pipelined_loops.values():
        for load in loop.plan.loads:
            if isinstance(load.tile, StridedTile):
                gone |= {n for a in arguments_of(load.call) for n in ast.walk(a) if isinstance(n, ast.Name)}
                names = [n for node in load.tile.nodes for n in ast.walk(node) if isinstance(n, ast.Name)]
                kept |= {web.index for n in names if (web := facts.webs.of_use.get(n)) is not None}
    if not gone:
        return frozenset()
    blocks = _blocks(facts.tree)
    # A web may go when its definitions do nothing else; it goes when no use is left.
    candidates = {
        w.index: w for w in facts.webs.all if w.index not in kept and _plain(facts, pipelined_statements, w, blocks)
    }
    touched = {web.index for n in gone if (web := facts.webs.of_use.get(n)) is not None}
    grew = True
    while grew:
        inner = {
            i for w in candidates.values() if w.index in touched for d in w.definitions for i in _uses(facts, d.value)
        }
        grew = not inner <= touched
        touched |= inner
    candidates = {i: w for i, w in candidates.items() if i in touched}
    shrank = True
    while shrank:
        statements = {d.node for w in candidates.values() for d in w.definitions}
        within = gone | {n for s in statements for n in ast.walk(s) if isinstance(n, ast.Name)}
        full = [b for b in blocks.values() if all(s in statements for s in b)]
        stay = {
            i
            for i, w in candidates.items()
            if any(n not in within for n, _ in w.uses) or any(d.node in b for d in w.definitions for b in full)
        }
        shrank = bool(stay)
        candidates = {i: w for i, w in candidates.items() if i not in stay}
    return frozenset(d.node for w in candidates.values() for d in w.definitions)


def _uses(facts: FunctionFacts, value: ast.expr | None) -> set[int]:
    names = [n for n in ast.walk(value) if isinstance(n, ast.Name)] if value is not None else []
    return {web.index for n in names if (web := facts.webs.of_use.get(n)) is not None}


def _plain(
    facts: FunctionFacts, pipelined_statements: Container[ast.stmt], web: Web, blocks: dict[ast.stmt, list[ast.stmt]]
) -> bool:
    """Whether all definitions are assignments to this name alone, on lines of their own, without effects."""
    for d in web.definitions:
        s = d.node
        if not isinstance(s, (ast.Assign, ast.AugAssign)) or s not in blocks or s in pipelined_statements:
            return False
        target = target_of(s)
        if not isinstance(target, ast.Name) or not is_pure(facts, s.value) or getattr(s, "iteration", None) is not None:
            return False
        before = facts.source.lines[s.lineno - 1][: s.col_offset].strip()
        after = facts.source.lines[s.end_lineno - 1].encode()[s.end_col_offset :].decode().strip()
        if before or (after and not after.startswith("#")):
            return False
    return bool(web.uses)


def _blocks(tree: ast.AST) -> dict[ast.stmt, list[ast.stmt]]:
    """Each statement with the block it stands in; loops that are written out are left out."""
    out: dict[ast.stmt, list[ast.stmt]] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, UnrolledLoop):
            return
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                for s in block:
                    out[s] = block
                    visit(s)

    visit(tree)
    return out


class PipelinedWalk(DemandWalk):
    """Finds the layouts of one function, pipelined loops included."""

    def prepare(self) -> None:
        prepare(self.planning())
        uniform_parts.mark(self.addressing, self.states, self.of_loops.pipelined)
        self.of_loops.dropped = unneeded(self.facts, self.of_loops.pipelined, self.of_loops.statements)

    def planning(self) -> Planning:
        """What planning the loops takes."""
        return Planning(
            self.facts,
            self.unit.decided,
            self.unit.moving,
            self.of_loops,
            self.addressing.guards,
            self.pushed,
            self.added_parameters,
            self.loop_names,
            self.state,
            self.make_cheap,
        )

    def ask_statement(self, s: ast.stmt) -> None:
        if s in self.of_loops.pipelined and not isinstance(s, UnrolledLoop):
            self.ask_loop(self.of_loops.pipelined[s], s)
            return
        if (loop := self.of_loops.statements.get(s)) is None:
            super().ask_statement(s)
            return
        own = loop.ahead_of.get(s)
        wanted = loop.asked(lambda one: one.wants(self.spot, s))
        if wanted is not None:
            self.ask_all(wanted)
        elif own is None:
            super().ask_statement(s)
        else:
            if self.facts.webs.of_definition[(s, target_of(s).id)] in loop.plan.runs.on_both_sides:
                super().ask_statement(s)
            super().ask_statement(own)
        for rings in fetched_at(self.unit.decided.choices, loop, s):
            self.ask_fetches(loop, rings)

    def ask_fetches(self, loop: PipelinedLoop, rings: list[Ring]) -> None:
        producer = Producer(self.asking, self.addressing, loop)
        for ring in rings:
            self.ask_all(producer.wants(ring))

    def ask_loop(self, loop: PipelinedLoop, s: ast.For) -> None:
        """What a pipelined loop wants: its body, and in front of it the first tiles, with what their addresses need."""
        loop.reads.begin()
        super().ask_statement(s)
        self.demanded.again |= loop.reads.finish()
        for atom in loop.plan.atoms:
            if atom in loop.ahead_of:
                super().ask_statement(loop.ahead_of[atom])
            self.ask_fetches(loop, [ring for ring in loop.rings if ring.load.statement is atom])
        started = [ahead.definitions[0].node for _, ahead in loop.doubled]
        for moved in (*loop.plan.runs.rolled_back, *started):
            super().ask_statement(moved)

    def permuted_tile(self, spot: Spot, data: ast.expr, order: tuple[int, ...], layout: Layout) -> Written | None:
        return permuted_read(spot, data, order, layout)

    def tile_read_at_use(self, data: ast.expr) -> TileRead | None:
        return read_where_used(self.facts, self.of_loops.staged, self.loops, data)
