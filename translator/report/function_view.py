"""The finished rewriting of one function, as reports read it: places in the source file, names of layouts, loops."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from translator.diagnostics import TranslationError
from translator.layout.constructors import constructor
from translator.memory.traced_launch import TracedLaunch
from translator.pipeline.plan import NotPipelined, PipelinePlan
from translator.report.correspondence import correspond
from translator.report.explain_costs import Costs
from translator.report.explanation import Choice
from translator.rewrite.function import FunctionRewriter
from translator.source.module_file import parse_file
from translator.ttgir.layouts import Layout, Opaque


def named_layouts(rw: FunctionRewriter) -> dict[str, Layout]:
    """The layouts that the translation gives a name."""
    taken = rw.locals | {n.id for n in ast.walk(rw.facts.tree) if isinstance(n, ast.Name)}
    _, constants = rw.names.named(rw.written.variables, taken)  # type: ignore[attr-defined]
    return dict(constants)


def _moved_lines(file: str, fn: Any) -> dict[int, int]:
    """Line of the traced function -> line of the file, where the function is not the file's text; else empty."""
    try:
        text = parse_file(file).text
    except TranslationError:
        return {}
    own = fn.src.splitlines()
    first = fn.def_file_line_number
    if own == text.splitlines()[first - 1 : first - 1 + len(own)]:
        return {}
    lines = correspond(text, "@triton.jit\n" + fn.src).lines
    known = {line.number - 1: line.source[0] for line in lines if line.source}
    out, last = {}, first
    for number in range(1, len(own) + 1):
        last = known.get(number, last)
        out[number] = last
    return out


class FunctionView:
    """One function that has been rewritten."""

    def __init__(self, rw: FunctionRewriter, traced: TracedLaunch, costs: Costs):
        self.rw, self.launch, self.costs = rw, traced, costs
        self.spelled = {layout: name for name, layout in named_layouts(rw).items()}
        self.function = rw.facts.frame.fn.__name__
        self.file = rw.facts.frame.fn.file_name or ""
        self.moved = _moved_lines(self.file, rw.facts.frame.fn)

    def line(self, node: ast.AST) -> int:
        """The line of the source file."""
        return self.file_line(node.lineno)

    def file_line(self, line: int) -> int:
        """The line of the file for one of the traced function, into which helpers may have been put."""
        return self.moved.get(line, self.rw.facts.frame.fn.def_file_line_number + line - 1)

    def name(self, layout: Layout) -> str:
        """The layout as the translation spells it."""
        return layout.text if isinstance(layout, Opaque) else constructor(layout, self.spelled)

    def variant(self, name: str, layout: Layout) -> str:
        """What the translation calls the version of a variable in one of its layouts."""
        rw = self.rw
        taken = rw.locals | {n.id for n in ast.walk(rw.facts.tree) if isinstance(n, ast.Name)}
        hole = rw.names.variant(name, layout)
        names, _ = rw.names.named([*rw.written.variables, hole], taken)  # type: ignore[attr-defined]
        return names[hole]

    def choice(self, node: ast.AST, kind: str, what: str, **fields: Any) -> Choice:
        return Choice(self.line(node), kind, what, function=self.function, file=self.file, **fields)

    def planned(self) -> Iterator[tuple[PipelinePlan | NotPipelined, ast.For | ast.While]]:
        """Every loop that was considered for pipelining, with what became of it."""
        by_line = {n.lineno: n for n in ast.walk(self.rw.facts.tree) if isinstance(n, (ast.For, ast.While))}
        for plan in self.rw.plans:
            node = getattr(plan, "loop", None) or by_line.get(getattr(plan, "line", 0))
            if node is not None:
                yield plan, node
