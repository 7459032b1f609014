"""A function whose loops are pipelined where they can be; the other statements are written as ever."""

from __future__ import annotations

import ast

from translator.facts.syntax import target_of
from translator.facts.webs import UnrolledLoop
from translator.gluon.written import Written
from translator.pipeline import slices
from translator.pipeline.emit import announce, emit_around, emit_body, emit_statement, fetched_at
from translator.pipeline.loop import PipelinedLoop, Ring, permuted_read, read_where_used
from translator.pipeline.loop_site import LoopSite
from translator.pipeline.passes import finish_loop
from translator.pipeline.producer import Producer
from translator.pipeline.prepare import prepare
from translator.pipeline.twins import Planning
from translator.pipeline.unneeded import unneeded
from translator.rewrite import uniform_parts
from translator.rewrite.function_rewriter import FunctionRewriter
from translator.rewrite.site import TileRead
from translator.ttgir.layouts import Layout


class PipelinedFunction(FunctionRewriter):
    """Rewrites one function of a kernel, pipelined loops included."""

    def prepare_loops(self) -> None:
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

    @property
    def loop_site(self) -> LoopSite:
        """The place that is being written, in or beside a pipelined loop."""
        return LoopSite(
            **vars(self.site),
            addressing=self.addressing,
            loop_names=self.loop_names,
            plain=self.plain_statement,
            statement_text=self.statement_text,
            block=self.block,
            moves=self.moves,
            conversions_after=self.conversions_after,
            variant_name=self.variant_name,
        )

    def finish_loops(self, statements: list[ast.stmt]) -> None:
        if not self.written_loops:
            return
        inside = {n for s in statements for n in ast.walk(s) if isinstance(n, ast.For)}
        for loop in [loop for loop in self.written_loops if loop.plan.loop in inside]:
            finish_loop(self.loop_site, loop)
            self.written_loops.remove(loop)

    def ask_statement(self, s: ast.stmt) -> None:
        if s in self.of_loops.pipelined and not isinstance(s, UnrolledLoop):
            self.ask_loop(self.of_loops.pipelined[s], s)
            return
        if (loop := self.of_loops.statements.get(s)) is None:
            super().ask_statement(s)
            return
        own = loop.ahead_of.get(s)
        if loop.sliced is not None and s is loop.sliced.statement:
            self.ask_all(slices.wants(self.site, loop.sliced))
        elif own is None:
            super().ask_statement(s)
        else:
            if self.facts.webs.of_definition[(s, target_of(s).id)] in loop.plan.on_both_sides:
                super().ask_statement(s)
            super().ask_statement(own)
        for rings in fetched_at(self.unit.decided.choices, loop, s):
            self.ask_fetches(loop, rings)

    def ask_fetches(self, loop: PipelinedLoop, rings: list[Ring]) -> None:
        producer = Producer(self.writing, self.addressing, self.holes, loop)
        for ring in rings:
            self.ask_all(producer.wants(ring))

    def ask_loop(self, loop: PipelinedLoop, s: ast.For) -> None:
        """What a pipelined loop wants: its body, and in front of it the first tiles, with what their addresses need."""
        loop.round.begin()
        super().ask_statement(s)
        self.demanded.again |= loop.round.finish()
        for atom in loop.plan.atoms:
            if atom in loop.ahead_of:
                super().ask_statement(loop.ahead_of[atom])
            self.ask_fetches(loop, [ring for ring in loop.rings if ring.load.statement is atom])
        started = [ahead.definitions[0].node for _, ahead in loop.doubled]
        for moved in (*loop.plan.rolled_back, *started):
            super().ask_statement(moved)

    def statement(self, s: ast.stmt) -> None:
        if (loop := self.of_loops.statements.get(s)) is not None:
            emit_statement(self.loop_site, loop, s)
        else:
            super().statement(s)

    def for_loop(self, s: ast.For) -> None:
        if isinstance(s, UnrolledLoop):
            return super().for_loop(s)
        announce(self.record, self.facts, self.of_loops, self.unit.decided, s)
        loop = self.of_loops.pipelined.get(s)
        if loop is None:
            return super().for_loop(s)
        loop.round.begin()
        self.loops = (*self.loops, s)
        emit_body(self.loop_site, loop, s)
        self.loops = self.loops[:-1]
        self.demanded.again |= loop.round.finish()
        emit_around(self.loop_site, self.of_loops, loop, s)
        self.written_loops.append(loop)

    def permuted_tile(self, data: ast.expr, order: tuple[int, ...], layout: Layout) -> Written | None:
        return permuted_read(self.site, data, order, layout)

    def tile_read_at_use(self, data: ast.expr) -> TileRead | None:
        return read_where_used(self.facts, self.of_loops.staged, self.loops, data)
