"""A function whose loops are pipelined where they can be; the other statements are written as ever."""

from __future__ import annotations

import ast

from gluonize.facts.webs import UnrolledLoop
from gluonize.loops.forms.emit import announce, emit_around, emit_body, emit_statement
from gluonize.loops.forms.pipelined_walk import PipelinedWalk
from gluonize.loops.loop.site import LoopSite
from gluonize.loops.passes.passes import finish_loop
from gluonize.write.function.rewriter import FunctionRewriter


class PipelinedFunction(FunctionRewriter):
    """Writes one function of a kernel, pipelined loops included."""

    walk = PipelinedWalk

    @property
    def loop_site(self) -> LoopSite:
        """The place that is being written, in or beside a pipelined loop."""
        return LoopSite(
            **vars(self.site),
            addressing=self.layouts.addressing,
            loop_names=self.layouts.loop_names,
            plain=self,
        )

    def finish_loops(self, statements: list[ast.stmt]) -> None:
        if not self.written_loops:
            return
        inside = {n for s in statements for n in ast.walk(s) if isinstance(n, ast.For)}
        for written in [one for one in self.written_loops if one[0].plan.loop in inside]:
            loop, parts = written
            self.layouts.of_loops.finished[loop.plan.loop] = finish_loop(self.loop_site, loop, parts)
            self.written_loops.remove(written)

    def statement(self, s: ast.stmt) -> None:
        if (loop := self.layouts.of_loops.statements.get(s)) is not None:
            emit_statement(self.loop_site, loop, s)
        else:
            super().statement(s)

    def for_loop(self, s: ast.For) -> None:
        if isinstance(s, UnrolledLoop):
            return super().for_loop(s)
        announce(self.record, self.facts, self.layouts.of_loops, self.unit.decided, s)
        loop = self.layouts.of_loops.pipelined.get(s)
        if loop is None:
            return super().for_loop(s)
        loop.reads.begin()
        self.layouts.loops = (*self.layouts.loops, s)
        parts = emit_body(self.loop_site, loop, s)
        self.layouts.loops = self.layouts.loops[:-1]
        self.layouts.demanded.again |= loop.reads.finish()
        parts = emit_around(self.loop_site, self.layouts.of_loops, loop, parts)
        self.written_loops.append((loop, parts))
