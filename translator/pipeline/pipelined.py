"""A function whose loops are pipelined where they can be; the other statements are written as ever."""

from __future__ import annotations

import ast

from translator.facts.webs import UnrolledLoop
from translator.gluon.written import Written
from translator.pipeline.emit import emit_loop, emit_statement
from translator.pipeline.loop import permuted_read, read_where_used
from translator.pipeline.passes import finish_loop
from translator.pipeline.prepare import prepare
from translator.rewrite.emission import TileRead
from translator.rewrite.function import FunctionRewriter
from translator.ttgir.layouts import Layout


class PipelinedFunction(FunctionRewriter):
    """Rewrites one function of a kernel, pipelined loops included."""

    def prepare_loops(self) -> None:
        prepare(self)

    def finish_loops(self, statements: list[ast.stmt]) -> None:
        inside = {n for s in statements for n in ast.walk(s) if isinstance(n, ast.For)}
        for loop in [loop for loop in self.written_loops if loop.plan.loop in inside]:
            finish_loop(self, loop)
            self.written_loops.remove(loop)

    def statement(self, s: ast.stmt) -> None:
        if not emit_statement(self, s):
            super().statement(s)

    def for_loop(self, s: ast.For) -> None:
        if isinstance(s, UnrolledLoop) or not emit_loop(self, s):
            super().for_loop(s)

    def permuted_tile(self, data: ast.expr, order: tuple[int, ...], layout: Layout) -> Written | None:
        return permuted_read(self, data, order, layout)

    def tile_read_at_use(self, data: ast.expr) -> TileRead | None:
        return read_where_used(self.facts, self.staged, self.loops, data)
