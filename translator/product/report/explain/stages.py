"""What each stage made of a function, as choices: types, layouts of operations, staged loads, loops, conversions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gluonize.facts.variables.definitions import assigned_fact, definition_node
from gluonize.gluon.printer import printed
from gluonize.gluon.written import converted
from gluonize.loops.plan.partition_schedule import Partitions
from gluonize.loops.plan.schedule import Schedule
from gluonize.product.report.explain.explanation import Choice
from gluonize.product.report.explain.function_view import FunctionView
from gluonize.trace.front.trace import ConstFact, TensorFact
from gluonize.trace.model.layouts import Layout


def traced(view: FunctionView) -> Iterator[Choice]:
    """What every assigned value is: shape and type, or the value where it is known at compile time."""
    for web in view.written.facts.webs.all:
        for d in web.definitions:
            if isinstance(d.node, ast.arg):
                fact = view.written.facts.frame.args.get(d.name)
            else:
                node = definition_node(d)
                fact = view.written.facts.fact(node) if node is not None else None
            if isinstance(fact, TensorFact):
                kind = f"pointer to {fact.pointee}" if fact.is_pointer else fact.dtype
                what = "scalar" if not fact.shape else "tensor"
                yield view.choice(d.node, "value", d.name, choice=what, shape=fact.shape, dtype=kind, origin="source")
            elif isinstance(fact, ConstFact) and isinstance(fact.value, (int, float, bool, str, type(None))):
                yield view.choice(d.node, "value", d.name, choice=f"compile-time {fact.value!r}", origin="source")


def placed(view: FunctionView) -> Iterator[Choice]:
    """The operations that survived Triton's passes, with the layouts of their results."""
    done = set()
    for node in ast.walk(view.written.facts.tree):
        if not hasattr(node, "lineno"):
            continue
        for visit in view.written.facts.visits(node):
            for op in view.launch.anchors.at((*view.written.facts.path, visit), inner=False):
                types = op.results or op.operands
                if types and (key := (node.lineno, op.name, types[0])) not in done:
                    done.add(key)
                    yield view.choice(
                        node,
                        "operation",
                        op.name,
                        choice=view.name(types[0].layout),
                        shape=types[0].shape,
                        dtype=types[0].element,
                        origin="anchor",
                        why="read from Triton's TTGIR at this expression",
                    )


def staged(view: FunctionView) -> Iterator[Choice]:
    """Loads that go through LDS, as Triton's pipeliner does it for the target."""
    for node in ast.walk(view.written.facts.tree):
        for visit in view.written.facts.visits(node) if isinstance(node, ast.Call) else ():
            staged = view.launch.staging.get((*view.written.facts.path, visit))
            if staged is None or staged.shared is None:
                continue
            how = {
                "registers": "through registers",
                "buffer": "buffer copy straight to LDS",
                "tensor": "tensor data mover",
            }
            used = node in view.written.loops.staged
            size = view.costs.bytes(staged.shape, _element(view, node))
            yield view.choice(
                node,
                "staged",
                ast.unparse(node.func) + "(...)",
                choice=view.name(staged.shared) if used else "not staged here",
                shape=staged.shape,
                origin="anchor",
                why=f"Triton's pipeliner stages it: {how.get(staged.copy, 'copy straight to LDS')}, {staged.buffers} buffers",
                cost=f"{size * staged.buffers} bytes of LDS" if used else "",
                bytes=size * staged.buffers if used else 0,
            )
            break


def _element(view: FunctionView, node: ast.AST) -> str:
    fact = view.written.facts.fact(node)
    return fact.dtype if isinstance(fact, TensorFact) else "int8"


def loops(view: FunctionView) -> Iterator[Choice]:
    """Why each loop is pipelined or not."""
    for plan, node in view.planned():
        header = f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}" if isinstance(node, ast.For) else "while"
        if hasattr(plan, "schedule"):
            s = plan.schedule
            why = f"Triton stages {', '.join(load.name for load in plan.loads)} through LDS, and their addresses do not depend on what the loop computes"
            cost = _of_partitions(s) if isinstance(s, Partitions) else _of_schedule(s)
            if not isinstance(s, Partitions) and node in view.written.loops.whole:
                cost += f"; not warp-specialized: {view.written.loops.whole[node]}"
            yield view.choice(
                node,
                "loop",
                header,
                choice=f"{'warp-specialized' if isinstance(s, Partitions) else f'pipelined: {s.mechanism}'}, {s.buffers} buffers",
                origin="anchor",
                why=why,
                cost=cost,
            )
        else:
            origin = "solver" if plan.wanted else "anchor"
            what = "not pipelined, although Triton does it" if plan.wanted else "not pipelined"
            yield view.choice(node, "loop", header, choice=what, origin=origin, why=plan.reason)


def _of_partitions(s: Partitions) -> str:
    return f"{s.producer_warps} more warp{'s' if s.producer_warps > 1 else ''}, which copy; waits at mbarriers"


def _of_schedule(s: Schedule) -> str:
    what = {"wait": "groups", "tensor_wait": "tensor copies"}
    wait = "".join(f", waits for all but {left} {what[kind]}" for kind, left in s.waits)
    return f"{s.prologue} tile{'s' if s.prologue != 1 else ''} in the prologue, fetches tile i + {s.ahead}{wait}"


def conversions(view: FunctionView) -> Iterator[Choice]:
    """Every `convert_layout` of the result, from what to what, and what it moves."""
    for statement, node, text, layout, depth in view.noted:
        shown = view.trees.text(printed(text.code))
        written = view.trees.text(printed(converted(text, view.written.names.spell(layout)).code))
        where = statement or node
        if written not in view.written.function.text or where is None:
            continue
        fact = view.written.facts.fact(node) if node is not None and hasattr(node, "lineno") else None
        if not isinstance(fact, TensorFact) and statement is not None and hasattr(statement, "value"):
            fact = assigned_fact(view.written.facts, statement)
        if not isinstance(fact, TensorFact) or not fact.shape:
            continue
        before = _layout_before(view, node)
        move = view.costs.move(before, layout, fact.shape) if before is not None else "moves data"
        size = view.costs.bytes(fact.shape, fact.dtype)
        what = ast.unparse(node) if node is not None else shown
        yield view.choice(
            where,
            "conversion",
            what if len(what) < 60 else what[:57] + "...",
            choice=f"{view.name(before) if before is not None else '?'} -> {view.name(layout)}",
            shape=fact.shape,
            dtype=fact.dtype,
            origin="solver",
            why="its use needs another layout than the one it is made in",
            cost=f"{size} bytes {move}" if size and move != "registers only" else "free: registers only",
            bytes=0 if move == "registers only" else size,
            depth=depth,
        )


def _layout_before(view: FunctionView, node: ast.AST | None) -> Layout | None:
    if node is None:
        return None
    if isinstance(node, ast.Name):
        web = view.written.facts.webs.of_use.get(node) or next(
            (w for w in view.written.facts.webs.all if w.name == node.id), None
        )
        home = view.written.state(web).home if web is not None else None
        return home if isinstance(home, Layout) else None
    placed = view.written.facts.placed_layouts(node) if hasattr(node, "lineno") else []
    home = placed[0] if placed else view.written.home(node)
    return home if isinstance(home, Layout) else None
