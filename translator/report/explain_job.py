"""Explain the translation of one launch: translate it once more while watching what the rewriter decides.

The rewriter is observed from outside: a subclass notes the conversions it writes, the rest is read from its state
when it is done. Runs Triton's passes: call it in a child process.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from translator.diagnostics import TranslationError
from translator.frontend.trace import ConstFact, TensorFact
from translator.layout.constructors import constructor
from translator.memory.traced_launch import TracedLaunch
from translator.report.correspondence import correspond
from translator.report.data_mover import TileLoad, tile_loads
from translator.report.explain_accesses import accesses
from translator.report.explain_costs import Costs
from translator.report.explain_values import values
from translator.pipeline.plan import NotPipelined, PipelinePlan
from translator.report.explanation import Choice, Explanation
from translator.request import TranslateRequest
from translator.rewrite import function as rewriter_module, kernel as kernel_module
from translator.rewrite.function import FunctionRewriter
from translator.source.launch_spec import LaunchSpec
from translator.source.module_file import parse_file
from translator.ttgir.layouts import Layout, Opaque


def explain_launches(request: TranslateRequest, stage: str) -> tuple[Explanation, ...]:
    """One explanation per launch, given or derived. Raises: TranslationError for what is refused."""
    from translator.planned_launches import planned_launches

    launches = planned_launches(request).launches
    return tuple(explain_launch(request, spec, stage) for spec in launches)


def explain_launch(request: TranslateRequest, spec: LaunchSpec, stage: str) -> Explanation:
    views = views_of_launch(request, spec)
    kernel, traced = views[0].rw, views[0].launch
    choices: list[Choice] = []
    for view in views:
        if stage == "trace":
            choices += view.traced()
        elif stage == "layout":
            choices += view.placed()
        elif stage == "staging":
            choices += view.staged()
        elif stage == "pipeline":
            choices += view.loops()
        else:
            choices += [*view.values(), *view.conversions(), *view.accesses(), *view.staged(), *view.loops()]
    names = _names(kernel)
    by_layout = {layout: name for name, layout in names.items()}
    layouts = tuple((name, constructor(layout, by_layout, top=True)) for name, layout in names.items())
    chosen = tuple(_ordered(choices))
    rests = tuple(sorted({o for view in views for o in view.rw.record.rests_on}))
    return Explanation(spec.kernel, spec.id, request.target, stage, traced.num_warps, chosen, layouts, rests)


def views_of_launch(request: TranslateRequest, spec: LaunchSpec) -> list[FunctionView]:
    """The finished rewriting of the kernel of one launch, and of its helpers."""
    from translator.translation import translate_launch

    with _observed() as seen:
        _, traced, _ = translate_launch(request, spec)
    kernel = [rw for rw in seen if not rw.path][-1]  # what could not be written as first tried is written again
    costs = Costs(traced.target.name, traced.num_warps)
    return [FunctionView(rw, traced, costs) for rw in (kernel, *_helpers(kernel))]


def loads_of_launch(request: TranslateRequest, spec: LaunchSpec) -> tuple[TileLoad, ...]:
    """The loads of one launch on a target with a tensor data mover, those of helpers included."""
    from translator.translation import translate_launch

    with _observed() as seen:
        translate_launch(request, spec)
    kernel = [rw for rw in seen if not rw.path][-1]
    return tuple(load for rw in [kernel, *_helpers(kernel)] for load in tile_loads(rw))


def _ordered(choices: list[Choice]) -> list[Choice]:
    rank = ("loop", "value", "operation", "staged", "matrix", "access", "builtin", "conversion")
    return sorted(dict.fromkeys(choices), key=lambda c: (c.file, c.function, c.line, rank.index(c.kind)))


class _Watching(FunctionRewriter):
    """Notes each conversion with the statement and expression it is written for."""

    seen: list["_Watching"]

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.noted: list[tuple[ast.stmt | None, ast.AST | None, str, Layout, int]] = []
        self.nodes: list[ast.AST] = []
        self.current: list[ast.stmt] = []
        self.round: Any = None
        self.raw = ""
        type(self).seen.append(self)

    def statement(self, s: ast.stmt) -> None:
        self.current.append(s)
        super().statement(s)
        self.current.pop()

    def emit(self, node: ast.AST, want: Any = None) -> str:
        self.nodes.append(node)
        try:
            return super().emit(node, want)
        finally:
            self.nodes.pop()

    def convert(self, text: str, layout: Layout) -> str:
        if self.record is not self.round:  # only the last round's text is kept
            self.round, self.noted = self.record, []
        node = self.nodes[-1] if self.nodes else None
        self.noted.append((self.current[-1] if self.current else None, node, text, layout, len(self.loops)))
        return super().convert(text, layout)

    def rewrite(self) -> str:
        self.raw = super().rewrite()
        return self.raw


@contextmanager
def _observed() -> Iterator[list[_Watching]]:
    """While active, the rewriters of the kernel and of its helpers are watched; the kernel's is the first."""
    seen: list[_Watching] = []
    watching = type("Watching", (_Watching,), {"seen": seen})
    saved = rewriter_module.FunctionRewriter, kernel_module.FunctionRewriter
    rewriter_module.FunctionRewriter = kernel_module.FunctionRewriter = watching  # type: ignore[misc]
    try:
        yield seen
    finally:
        rewriter_module.FunctionRewriter, kernel_module.FunctionRewriter = saved  # type: ignore[misc]


def _helpers(rw: FunctionRewriter) -> list[FunctionRewriter]:
    """The helper versions that a function calls, callees of callees included, each once."""
    found: list[FunctionRewriter] = []
    for index in rw.record.helpers:
        inner = rw.unit.helper_versions[index][0]
        found += [x for x in (inner, *_helpers(inner)) if x not in found]
    return found


def _names(rw: FunctionRewriter) -> dict[str, Layout]:
    taken = rw.locals | {n.id for n in ast.walk(rw.tree) if isinstance(n, ast.Name)}
    _, constants = rw.names.resolve(rw.raw, taken)  # type: ignore[attr-defined]
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
    """The finished rewriting of one function, as choices."""

    def __init__(self, rw: FunctionRewriter, traced: TracedLaunch, costs: Costs):
        self.rw, self.launch, self.costs = rw, traced, costs
        self.spelled = {layout: name for name, layout in _names(rw).items()}
        self.function = rw.frame.fn.__name__
        self.file = rw.frame.fn.file_name or ""
        self.moved = _moved_lines(self.file, rw.frame.fn)

    def line(self, node: ast.AST) -> int:
        """The line of the source file."""
        return self.file_line(node.lineno)

    def file_line(self, line: int) -> int:
        """The line of the file for one of the traced function, into which helpers may have been put."""
        return self.moved.get(line, self.rw.frame.fn.def_file_line_number + line - 1)

    def name(self, layout: Layout) -> str:
        """The layout as the translation spells it."""
        return layout.text if isinstance(layout, Opaque) else constructor(layout, self.spelled)

    def variant(self, name: str, layout: Layout) -> str:
        """What the translation calls the version of a variable in one of its layouts."""
        rw = self.rw
        taken = rw.locals | {n.id for n in ast.walk(rw.tree) if isinstance(n, ast.Name)}
        text, _ = rw.names.resolve(f"{rw.raw}\n{rw.names.variant(name, layout)}", taken)  # type: ignore[attr-defined]
        return text.rpartition("\n")[2]

    def choice(self, node: ast.AST, kind: str, what: str, **fields: Any) -> Choice:
        return Choice(self.line(node), kind, what, function=self.function, file=self.file, **fields)

    def traced_fact(self, node: ast.AST) -> TensorFact | ConstFact | None:
        fact = self.rw.fact(node)
        return fact if isinstance(fact, (TensorFact, ConstFact)) else None

    # Stages -----------------------------------------------------------------------------------------------------

    def traced(self) -> Iterator[Choice]:
        """What every assigned value is: shape and type, or the value where it is known at compile time."""
        for web in self.rw.webs.all:
            for d in web.definitions:
                if isinstance(d.node, ast.arg):
                    fact = self.rw.frame.args.get(d.name)
                else:
                    node = self.rw.definition_node(d)
                    fact = self.rw.fact(node) if node is not None else None
                if isinstance(fact, TensorFact):
                    kind = f"pointer to {fact.pointee}" if fact.is_pointer else fact.dtype
                    what = "scalar" if not fact.shape else "tensor"
                    yield self.choice(
                        d.node, "value", d.name, choice=what, shape=fact.shape, dtype=kind, origin="source"
                    )
                elif isinstance(fact, ConstFact) and isinstance(fact.value, (int, float, bool, str, type(None))):
                    yield self.choice(d.node, "value", d.name, choice=f"compile-time {fact.value!r}", origin="source")

    def placed(self) -> Iterator[Choice]:
        """The operations that survived Triton's passes, with the layouts of their results."""
        done = set()
        for node in ast.walk(self.rw.tree):
            if not hasattr(node, "lineno"):
                continue
            for visit in self.rw.visits(node):
                for op in self.launch.anchors.at((*self.rw.path, visit), inner=False):
                    types = op.results or op.operands
                    if types and (key := (node.lineno, op.name, types[0])) not in done:
                        done.add(key)
                        yield self.choice(
                            node,
                            "operation",
                            op.name,
                            choice=self.name(types[0].layout),
                            shape=types[0].shape,
                            dtype=types[0].element,
                            origin="anchor",
                            why="read from Triton's TTGIR at this expression",
                        )

    def staged(self) -> Iterator[Choice]:
        """Loads that go through LDS, as Triton's pipeliner does it for the target."""
        for node in ast.walk(self.rw.tree):
            for visit in self.rw.visits(node) if isinstance(node, ast.Call) else ():
                staged = self.launch.staging.get((*self.rw.path, visit))
                if staged is None or staged.shared is None:
                    continue
                how = {
                    "registers": "through registers",
                    "buffer": "buffer copy straight to LDS",
                    "tensor": "tensor data mover",
                }
                used = node in self.rw.staged
                size = self.costs.bytes(staged.shape, self._element(node))
                yield self.choice(
                    node,
                    "staged",
                    ast.unparse(node.func) + "(...)",
                    choice=self.name(staged.shared) if used else "not staged here",
                    shape=staged.shape,
                    origin="anchor",
                    why=f"Triton's pipeliner stages it: {how.get(staged.copy, 'copy straight to LDS')}, {staged.buffers} buffers",
                    cost=f"{size * staged.buffers} bytes of LDS" if used else "",
                    bytes=size * staged.buffers if used else 0,
                )
                break

    def _element(self, node: ast.AST) -> str:
        fact = self.rw.fact(node)
        return fact.dtype if isinstance(fact, TensorFact) else "int8"

    def planned(self) -> Iterator[tuple[PipelinePlan | NotPipelined, ast.For | ast.While]]:
        """Every loop that was considered for pipelining, with what became of it."""
        by_line = {n.lineno: n for n in ast.walk(self.rw.tree) if isinstance(n, (ast.For, ast.While))}
        for plan in self.rw.plans:
            node = getattr(plan, "loop", None) or by_line.get(getattr(plan, "line", 0))
            if node is not None:
                yield plan, node

    def loops(self) -> Iterator[Choice]:
        """Why each loop is pipelined or not."""
        for plan, node in self.planned():
            header = (
                f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}" if isinstance(node, ast.For) else "while"
            )
            if hasattr(plan, "schedule"):
                s = plan.schedule
                why = f"Triton stages {', '.join(load.name for load in plan.loads)} through LDS, and their addresses do not depend on what the loop computes"
                wait = f", waits for all but {s.wait} groups" if s.mechanism == "copies" and s.grouped else ""
                wait += f", waits for all but {s.tensor_wait} tensor copies" if s.tensor_loads else ""
                cost = f"{s.prologue} tile{'s' if s.prologue != 1 else ''} in the prologue, fetches tile i + {s.ahead}{wait}"
                if s.mechanism == "partitions":
                    cost = f"{s.producer_warps} more warp{'s' if s.producer_warps > 1 else ''}, which copy; waits at mbarriers"
                elif node in self.rw.whole:
                    cost += f"; not warp-specialized: {self.rw.whole[node]}"
                yield self.choice(
                    node,
                    "loop",
                    header,
                    choice=f"{'warp-specialized' if s.mechanism == 'partitions' else f'pipelined: {s.mechanism}'}, {s.buffers} buffers",
                    origin="anchor",
                    why=why,
                    cost=cost,
                )
            else:
                origin = "solver" if plan.wanted else "anchor"
                what = "not pipelined, although Triton does it" if plan.wanted else "not pipelined"
                yield self.choice(node, "loop", header, choice=what, origin=origin, why=plan.reason)

    def values(self) -> Iterator[Choice]:
        return values(self)

    def accesses(self) -> Iterator[Choice]:
        return accesses(self)

    def conversions(self) -> Iterator[Choice]:
        """Every `convert_layout` of the result, from what to what, and what it moves."""
        for statement, node, text, layout, depth in self.rw.noted:  # type: ignore[attr-defined]
            written = f"gl.convert_layout({text}, {self.rw.names.spell(layout)})"
            where = statement or node
            if written not in self.rw.raw or where is None:  # type: ignore[attr-defined]
                continue
            fact = self.rw.fact(node) if node is not None and hasattr(node, "lineno") else None
            if not isinstance(fact, TensorFact) and statement is not None and hasattr(statement, "value"):
                fact = self.rw.assigned_fact(statement)
            if not isinstance(fact, TensorFact) or not fact.shape:
                continue
            before = self._layout_before(node, fact)
            move = self.costs.move(before, layout, fact.shape) if before is not None else "moves data"
            size = self.costs.bytes(fact.shape, fact.dtype)
            what = ast.unparse(node) if node is not None else text
            yield self.choice(
                where,
                "conversion",
                what if len(what) < 60 else what[:57] + "...",
                choice=f"{self.name(before) if before is not None else '?'} -> {self.name(layout)}",
                shape=fact.shape,
                dtype=fact.dtype,
                origin="solver",
                why="its use needs another layout than the one it is made in",
                cost=f"{size} bytes {move}" if size and move != "registers only" else "free: registers only",
                bytes=0 if move == "registers only" else size,
                depth=depth,
            )

    def _layout_before(self, node: ast.AST | None, fact: TensorFact) -> Layout | None:
        if node is None:
            return None
        if isinstance(node, ast.Name):
            web = self.rw.webs.of_use.get(node) or next((w for w in self.rw.webs.all if w.name == node.id), None)
            home = self.rw.state(web).home if web is not None else None
            return home if isinstance(home, Layout) else None
        placed = self.rw.placed_layouts(node) if hasattr(node, "lineno") else []
        home = placed[0] if placed else self.rw.home(node)
        return home if isinstance(home, Layout) else None
