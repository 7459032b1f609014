"""Explain the translation of one launch: translate it once more while watching what the rewriter decides.

The rewriter is observed from outside: a subclass notes the conversions it writes, the rest is read from its state
when it is done. Runs Triton's passes: call it in a child process.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from gluonize.decide.layouts.constructors import constructor
from gluonize.gluon.written import Written
from gluonize.loops.forms.pipelined import PipelinedFunction
from gluonize.product.report.explain.accesses import accesses
from gluonize.product.report.explain.costs import Costs
from gluonize.product.report.explain.data_mover import TileLoad, tile_loads
from gluonize.product.report.explain.explanation import Choice, Explanation
from gluonize.product.report.explain.function_view import Conversion, FunctionView, named_layouts
from gluonize.product.report.explain.stages import conversions, loops, placed, staged, traced
from gluonize.product.report.explain.values import values
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest
from gluonize.trace.model.layouts import Layout
from gluonize.write.function.written import WrittenFunction
from gluonize.write.state.unit import Unit

# Stage -> what of it is shown.
_PARTS = {"trace": (traced,), "layout": (placed,), "staging": (staged,), "pipeline": (loops,)}
_EVERYTHING = (values, conversions, accesses, staged, loops)


def explain_launches(request: TranslateRequest, stage: str) -> tuple[Explanation, ...]:
    """One explanation per launch, given or derived. Raises: TranslationError for what is refused."""
    from gluonize.planned_launches import planned_launches

    launches = planned_launches(request).launches
    return tuple(explain_launch(request, spec, stage) for spec in launches)


def explain_launch(request: TranslateRequest, spec: LaunchSpec, stage: str) -> Explanation:
    views = views_of_launch(request, spec)
    kernel, launch = views[0].written, views[0].launch
    choices: list[Choice] = []
    for view in views:
        for part in _PARTS.get(stage, _EVERYTHING):
            choices += part(view)
    names = named_layouts(kernel)
    by_layout = {layout: name for name, layout in names.items()}
    layouts = tuple((name, constructor(layout, by_layout, top=True)) for name, layout in names.items())
    chosen = tuple(_ordered(choices))
    rests = tuple(sorted({o for view in views for o in view.written.record.rests_on}))
    return Explanation(spec.kernel, spec.id, request.target, stage, launch.num_warps, chosen, layouts, rests)


def views_of_launch(request: TranslateRequest, spec: LaunchSpec) -> list[FunctionView]:
    """The finished rewriting of the kernel of one launch, and of its helpers."""
    from gluonize.translation import translate_launch

    watching = _watching()
    _, launch, _ = translate_launch(request, spec, watching)
    costs = Costs(launch.target.name, launch.num_warps)
    return [
        FunctionView(seen.written, seen.noted, seen.unit.references, launch, costs) for seen in _reached(watching.seen)
    ]


def loads_of_launch(request: TranslateRequest, spec: LaunchSpec) -> tuple[TileLoad, ...]:
    """The loads of one launch on a target with a tensor data mover, those of helpers included."""
    from gluonize.translation import translate_launch

    watching = _watching()
    translate_launch(request, spec, watching)
    return tuple(load for seen in _reached(watching.seen) for load in tile_loads(seen.written))


def _ordered(choices: list[Choice]) -> list[Choice]:
    rank = ("loop", "value", "operation", "staged", "matrix", "access", "builtin", "conversion")
    return sorted(dict.fromkeys(choices), key=lambda c: (c.file, c.function, c.line, rank.index(c.kind)))


@dataclass(frozen=True, eq=False)
class _Seen:
    """A function that was written, the conversions in it, and what it shares with the others of the kernel."""

    written: WrittenFunction
    noted: list[Conversion]
    unit: Unit


class _Watching(PipelinedFunction):
    """Notes each conversion with the statement and expression it is written for."""

    seen: list[_Seen]

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.noted: list[Conversion] = []
        self.nodes: list[ast.AST] = []
        self.current: list[ast.stmt] = []
        self.round: Any = None

    def statement(self, s: ast.stmt) -> None:
        self.current.append(s)
        super().statement(s)
        self.current.pop()

    def emit(self, node: ast.AST, want: Any = None) -> Written:
        self.nodes.append(node)
        try:
            return super().emit(node, want)
        finally:
            self.nodes.pop()

    def convert(self, text: Written, layout: Layout) -> Written:
        if self.record is not self.round:  # only the last round's text is kept
            self.round, self.noted = self.record, []
        node = self.nodes[-1] if self.nodes else None
        self.noted.append((self.current[-1] if self.current else None, node, text, layout, len(self.layouts.loops)))
        return super().convert(text, layout)

    def rewrite(self) -> WrittenFunction:
        written = super().rewrite()
        type(self).seen.append(_Seen(written, self.noted, self.unit))
        return written


def _watching() -> type[_Watching]:
    """A rewriter that keeps the functions that were written in `seen`, callees first."""
    return type("Watching", (_Watching,), {"seen": []})


def _reached(seen: list[_Seen]) -> list[_Seen]:
    """The kernel as it was written last, and the versions of helpers that it calls, each once: what could not be written as first
    tried is written again."""
    by_record = {id(s.written.record): s for s in seen}  # one text may stand for several versions
    kernel = [s for s in seen if not s.written.facts.path][-1]

    def callees(caller: _Seen) -> list[_Seen]:
        found: list[_Seen] = []
        for index in caller.written.record.helpers:
            inner = by_record[id(caller.unit.helper_versions[index].record)]
            found += [x for x in (inner, *callees(inner)) if x not in found]
        return found

    return [kernel, *callees(kernel)]
