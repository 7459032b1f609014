"""Why each memory access is a buffer operation or keeps its pointers, and which rule each builtin falls under."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gluonize.facts import callees
from gluonize.product.report.explain import data_mover
from gluonize.product.report.explain.explanation import Choice
from gluonize.product.report.explain.function_view import FunctionView
from gluonize.trace.model.elements import bits_of
from gluonize.trace.model.layouts import Layout
from gluonize.write.accesses import addresses, pointers
from gluonize.write.accesses.accesses import access_layout


def accesses(view: FunctionView) -> Iterator[Choice]:
    """Loads, stores and atomics, matrix operations, and the rule row of every other builtin on tensors."""
    function = view.written
    for node in ast.walk(function.facts.tree):
        if not isinstance(node, ast.Call) or not function.facts.visits(node):
            continue
        callee = callees.callee_of(function.facts, node)
        if callee is None or callee.row is None:
            continue
        given = callees.bind(node, callee)
        if callee.row.kind in ("load", "store", "atomic"):
            pointer = given.get("pointer")
            if pointer is not None and function.facts.tensor(pointer) is not None:
                yield _access(view, node, callee.name, pointer)
            elif (
                pointer is None
                and function.facts.kernel.target.supports_tdm
                and data_mover.is_load(function.facts, node)
            ):
                yield _tile(view, node)
        elif callee.row.kind in ("dot", "dot_scaled"):
            yield from _matrix(view, node)
        elif function.facts.tensor(node) is not None:
            row = callee.row
            said = row.becomes or f"gl.{callee.name}"
            cost = (
                "recomputed where another layout is needed"
                if row.cost == "cheap"
                else "converted where another layout is needed"
            )
            why = f"row `{row.name}` ({row.kind}) of rules/builtins.py{': ' + row.note if row.note else ''}"
            yield view.choice(node, "builtin", callee.name, choice=said, origin="rule", why=why, cost=cost)


def _access(view: FunctionView, node: ast.Call, name: str, pointer: ast.expr) -> Choice:
    function = view.written
    fact = function.facts.tensor(pointer)
    assert fact is not None
    layout = access_layout(
        function.facts, function.home, node, pointer, ("tt.load", "tt.store", "tt.atomic_rmw", "tt.atomic_cas")
    )
    how, why = _form(view, node, pointer)
    if function.facts.kernel.target.supports_tdm and data_mover.is_load(function.facts, node):
        reason = data_mover.reason_against(function, node)
        how, why = (how, f"{why}; not by the tensor data mover: {reason}") if reason else (_BY_DATA_MOVER, why)
    width = _width(view, layout, fact.shape, fact.pointee or "")
    return view.choice(
        node,
        "access",
        f"{name}({ast.unparse(pointer)})" if len(ast.unparse(pointer)) < 40 else f"{name}(...)",
        choice=how,
        shape=fact.shape,
        dtype=fact.pointee or "",
        origin="solver",
        why=why,
        cost=(
            f"{width} per lane and instruction, {view.costs.bytes(fact.shape, fact.pointee or '')} bytes"
            if width
            else ""
        ),
        bytes=view.costs.bytes(fact.shape, fact.pointee or ""),
    )


_BY_DATA_MOVER = "copy to LDS by the tensor data mover"


def _tile(view: FunctionView, node: ast.Call) -> Choice:
    """A load of a descriptor's tile, or of its rows."""
    fact = view.written.facts.tensor(node)
    reason = data_mover.reason_against(view.written, node)
    return view.choice(
        node,
        "access",
        ast.unparse(node.func),
        choice="bounds-masked access" if reason else _BY_DATA_MOVER,
        shape=fact.shape,
        dtype=fact.dtype,
        origin="solver",
        why=f"not by the tensor data mover: {reason}" if reason else "the descriptor is one of the tensor data mover",
        bytes=view.costs.bytes(fact.shape, fact.dtype),
    )


def _width(view: FunctionView, layout: object, shape: tuple[int, ...], dtype: str) -> str:
    """The widest access that the layout allows: consecutive elements of one lane, at most 16 bytes."""
    found = view.costs.map(layout, shape) if isinstance(layout, Layout) else None
    return f"up to {min(16, found.vector * bits_of(dtype) // 8)} bytes" if found else ""


def _form(view: FunctionView, node: ast.Call, pointer: ast.expr) -> tuple[str, str]:
    function = view.written
    if node in function.loops.staged:
        return "copy to LDS ahead, read from its slot", "the loop around it is pipelined"
    if node in function.loops.held:
        return "load to registers, an iteration ahead or more", "the loop around it is pipelined"
    plan = pointers.plan_access(function.addressing, function.record, pointer)
    if plan is not None:
        where = "all of the address in the offsets" if plan.fold else "uniform part in the base, offsets not negative"
        if plan.of_any_storage:
            return "buffer operation", f"offsets stay below 2 GiB, whatever the storage of {plan.root} ({where})"
        return "buffer operation", f"storage of {plan.root} is within 2 GiB ({where})"
    address = addresses.address_of(function.facts, function.state, function.addressing.fresh, pointer)
    if address is None:
        return "tensor of pointers", "the address is not a base plus integers"
    split = function.state(address.web).split if address.web else None
    root = split.root if split else addresses.root_parameter(function.facts, address.base)
    if root is None:
        return "tensor of pointers", "its base is not one kernel parameter"
    if root not in function.facts.kernel.small_pointers:
        return "tensor of pointers", f"nothing says that the storage of {root} is within 2 GiB (no `S` in the launch)"
    return "tensor of pointers", "its offsets may be negative from a base that moves"


def _matrix(view: FunctionView, node: ast.Call) -> Iterator[Choice]:
    function = view.written
    fact = function.facts.tensor(node)
    for name in ("tt.dot", "tt.dot_scaled", "amdg.dot_scaled"):
        for op in function.facts.placed(node, name)[:1]:
            result = op.results[0]
            operands = " and ".join(view.name(t.layout) for t in op.operands[:2])
            yield view.choice(
                node,
                "matrix",
                ast.unparse(node.func),
                choice=view.name(result.layout),
                shape=fact.shape if fact else result.shape,
                dtype=fact.dtype if fact else result.element,
                origin="anchor",
                why=f"Triton's choice for these operands on {function.facts.kernel.target.name}; operands in {operands}",
                cost=_registers(view, result.layout, result.shape, fact.dtype if fact else "fp32"),
            )
            return


def _registers(view: FunctionView, layout: Layout, shape: tuple[int, ...], dtype: str) -> str:
    found = view.costs.registers(layout, shape, dtype)
    return f"{found} accumulator registers per lane" if found else ""
