"""The finished rewriting of one function, as reports read it: places in the source file, names of layouts, loops."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from gluonize.decide.layouts.constructors import constructor
from gluonize.decide.readback.traced_launch import TracedLaunch
from gluonize.diagnostics import TranslationError
from gluonize.gluon.trees.references import References, references
from gluonize.gluon.written import Written
from gluonize.loops.plan.plan import NotPipelined, PipelinePlan
from gluonize.product.report.explain.costs import Costs
from gluonize.product.report.explain.explanation import Choice
from gluonize.product.report.review.correspondence import correspond
from gluonize.read.files.modules import parse_file
from gluonize.trace.model.layouts import Layout, Opaque
from gluonize.write.function.written import WrittenFunction

# A conversion: the statement and the expression that it is written for, what is moved and where to, and in how many loops.
Conversion = tuple[ast.stmt | None, ast.AST | None, Written, Layout, int]


def named_layouts(written: WrittenFunction) -> dict[str, Layout]:
    """The layouts that the translation gives a name."""
    _, constants = written.names.named(references(written.function.node.body), written.taken)
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
    """One function that has been written; noted: the conversions in it; trees: of its kernel."""

    def __init__(
        self,
        written: WrittenFunction,
        noted: Sequence[Conversion],
        trees: References,
        traced: TracedLaunch,
        costs: Costs,
    ):
        self.written, self.noted, self.trees, self.launch, self.costs = written, noted, trees, traced, costs
        self.spelled = {layout: name for name, layout in named_layouts(written).items()}
        fn = written.facts.frame.fn
        self.function = fn.__name__
        self.file = fn.file_name or ""
        self.moved = _moved_lines(self.file, fn)

    def line(self, node: ast.AST) -> int:
        """The line of the source file."""
        return self.file_line(node.lineno)

    def file_line(self, line: int) -> int:
        """The line of the file for one of the traced function, into which helpers may have been put."""
        return self.moved.get(line, self.written.facts.frame.fn.def_file_line_number + line - 1)

    def name(self, layout: Layout) -> str:
        """The layout as the translation spells it."""
        return layout.text if isinstance(layout, Opaque) else constructor(layout, self.spelled)

    def variant(self, name: str, layout: Layout) -> str:
        """What the translation calls the version of a variable in one of its layouts."""
        written = self.written
        own = written.names.variant(name, layout).of
        names, _ = written.names.named([*references(written.function.node.body), own], written.taken)
        return names[own]

    def choice(self, node: ast.AST, kind: str, what: str, **fields: Any) -> Choice:
        return Choice(self.line(node), kind, what, function=self.function, file=self.file, **fields)

    def planned(self) -> Iterator[tuple[PipelinePlan | NotPipelined, ast.For | ast.While]]:
        """Every loop that was considered for pipelining, with what became of it."""
        by_line = {n.lineno: n for n in ast.walk(self.written.facts.tree) if isinstance(n, (ast.For, ast.While))}
        for plan in self.written.loops.plans:
            node = getattr(plan, "loop", None) or by_line.get(getattr(plan, "line", 0))
            if node is not None:
                yield plan, node
